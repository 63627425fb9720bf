"""
Filling in a survey: best guesses, how sure they are, and what they leave open
==============================================================================

1,500 people were asked seven questions. Many did not answer all of them, and who did not say what
they earn is no accident: the self-employed and the well-off often keep it to themselves. Dropping
incomplete answers then gives a wrong mean; so does filling the gaps with one value.

:class:`rejoint.JointImputer` learns the joint of all answers from those that are there, and fills
each gap from what the same person did answer.
"""

import warnings

import numpy as np
import pandas as pd

import rejoint as rj

# %%
# The survey is made here, so that the truth is known: four kinds of households, which the imputer
# does not see.
rng = np.random.default_rng(0)
n = 1500
kind = rng.choice(4, size=n, p=[0.3, 0.3, 0.2, 0.2])


def answers(levels, shares):
    """One answer for each person, with the shares of their kind of household."""
    return [levels[rng.choice(len(levels), p=shares[k])] for k in kind]


truth = pd.DataFrame(
    {
        "age": pd.Categorical(
            answers(
                ["18-34", "35-54", "55+"],
                [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.05, 0.15, 0.8], [0.2, 0.6, 0.2]],
            ),
            ["18-34", "35-54", "55+"],
            ordered=True,
        ),
        "work": pd.Categorical(
            answers(
                ["employed", "self-employed", "retired", "student"],
                [[0.5, 0.05, 0, 0.45], [0.9, 0.1, 0, 0], [0.1, 0, 0.9, 0], [0.2, 0.8, 0, 0]],
            )
        ),
        "home": answers(["rented", "owned"], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.2, 0.8]]),
        "children": answers(
            [0, 1, 2, 3],
            [
                [0.9, 0.08, 0.02, 0],
                [0.2, 0.3, 0.35, 0.15],
                [0.9, 0.05, 0.05, 0],
                [0.3, 0.3, 0.3, 0.1],
            ],
        ),
        "car": np.array(answers([True, False], [[0.2, 0.8], [0.8, 0.2], [0.5, 0.5], [0.95, 0.05]])),
        "content": answers(
            [1, 2, 3, 4, 5],
            [
                [0.1, 0.3, 0.3, 0.2, 0.1],
                [0.05, 0.15, 0.4, 0.3, 0.1],
                [0.05, 0.1, 0.2, 0.35, 0.3],
                [0.05, 0.05, 0.2, 0.3, 0.4],
            ],
        ),
        "income": np.exp(rng.normal(np.log([16, 38, 24, 70])[kind], 0.25)).round(1),
    }
).astype({"children": "Int64", "car": "boolean", "content": "Int64"})

survey = truth.copy()
for name in truth:
    survey.loc[rng.random(n) < 0.15, name] = None
silent = np.where(truth["work"] == "self-employed", 0.7, 0.1)
survey.loc[rng.random(n) < silent, "income"] = None
survey.head()

# %%
# Best guesses. The frame comes back as it was, types and categories included, and every answer
# that was there is the same. Numbers get their expectation, rounded where they are whole, other
# columns their most probable value.
with warnings.catch_warnings(action="ignore", category=rj.Remark):
    imputer = rj.JointImputer(random_state=0).fit(survey)
print(imputer.result_.choice)
filled, sure = imputer.impute(survey, confidence=True)
print(f"{survey.isna().sum().sum()} answers were missing, {filled.isna().sum().sum()} are now")
filled.head()

# %%
# How often are most probable values right, and do the probabilities say so? Incomes count as right
# within their bin.
filled, sure = imputer.set_params(method="mode").impute(survey, confidence=True)
gone = survey.isna().to_numpy()
right = np.column_stack(
    [
        imputer.pmf_.domain[name].encode(filled[name])
        == imputer.pmf_.domain[name].encode(truth[name])
        for name in survey
    ]
)[gone]
sure = sure.to_numpy()[gone]
print(f"right: {right.mean():.0%}; they should be, they say: {sure.mean():.0%}")
bins = np.array([0.0, 0.4, 0.55, 0.7, 0.85, 1.0])
place = np.digitize(sure, bins[1:-1])
reliability = [(sure[place == k].mean(), right[place == k].mean()) for k in range(len(bins) - 1)]

# %%
# For a mean, best guesses are not enough: all of them are typical, so that the mean looks more
# certain than it is. **Multiple imputation** draws the gaps several times, each time from another
# posterior draw of the model, and Rubin's rules (:func:`rejoint.pool`) put the results together:
# the variance within the tables, and that between them.
tables = imputer.impute(survey, n_draws=20)
means = np.array([table["income"].mean() for table in tables])
pooled = rj.pool(means, [table["income"].var() / n for table in tables])
print(pooled)

said = survey["income"].dropna()
estimates = {
    "those who said": (said.mean(), np.sqrt(said.var() / len(said))),
    "gaps = median": (survey["income"].fillna(said.median()).mean(), np.nan),
    "20 draws": (pooled.estimate, pooled.std_error),
}
for label, (mean, error) in estimates.items():
    print(f"{label:>15}: {mean:5.1f} +- {1.96 * error:.1f}")
print(f"{'the truth':>15}: {truth['income'].mean():5.1f}")

# %%
# Left: of the guesses that are 60 % sure, 60 % are right. Right: the mean income, and the 20 tables
# behind it.
import matplotlib.pyplot as plt

fig, (left, right_ax) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot([0.2, 1], [0.2, 1], color="0.8")
left.plot(*np.transpose(reliability), "o-")
left.set(xlabel="probability of the guess", ylabel="share that is right", title="Filled answers")
for y, (mean, error) in enumerate(estimates.values()):
    bar = None if np.isnan(error) else 1.96 * error
    right_ax.errorbar(mean, y, xerr=bar, fmt="o", capsize=4)
right_ax.plot(means, np.full(len(means), 2.18), "|", color="C2")
right_ax.axvline(truth["income"].mean(), color="0.6", linestyle="--")
right_ax.set(yticks=range(3), yticklabels=estimates, ylim=(-0.5, 2.5), xlabel="mean income")
right_ax.set_title("Mean income (dashed: the truth)")
plt.show()
