"""
A classifier for rows with missing values
=========================================

A classifier is trained on complete records and then has to live with what comes: a laboratory that
did not answer, a question that was skipped. Most methods need missing values filled first. A model
of features *and* label leaves a missing value out, and says how much less it knows without it.

The data are scikit-learn's: 569 tumours, 30 numbers measured on each (cut into bins on the way),
and whether it was benign.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rejoint as rj

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

# %%
# Ours as it comes, and two that take numbers uncut. Training data are complete for all.
ours = rj.JointClassifier(random_state=0).fit(X_train, y_train)
rivals = {
    "logistic regression, mean filled in": make_pipeline(
        SimpleImputer(), StandardScaler(), LogisticRegression()
    ),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}
for rival in rivals.values():
    rival.fit(X_train, y_train)
print(ours.result_.choice)

# %%
# A single row: what is known about it, piece by piece, and what the model makes of that.
row = X_test.iloc[0]
known = []
for name in ["mean texture", "mean radius", "worst concavity", "worst area"]:
    known.append(name)
    share = ours.predict_proba([{n: row[n] for n in known}])[0]
    print(f"{name:16} = {row[name]:<8.4g} malignant with {share[1]:.0%}")
print("in fact:", y_test.iloc[0])

# %%
# Now cells of the test part are lost at random, more and more of them.
rng = np.random.default_rng(0)
lost = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9]
models = {"JointClassifier": ours, **rivals}
errors = {name: [] for name in models}
losses = {name: [] for name in models}
for share in lost:
    gaps = X_test.mask(rng.random(X_test.shape) < share)
    for name, model in models.items():
        shares = model.predict_proba(gaps)
        found = model.classes_[shares.argmax(axis=1)]
        errors[name].append(np.mean(found != y_test))
        losses[name].append(log_loss(y_test, shares, labels=model.classes_))

# %%
# Complete rows are told a little better by those who see the numbers uncut. As most cells go
# missing, the joint loses least, and it knows what it does not know: its log-loss, which punishes
# being sure and wrong, stays below that of guessing by the shares of the labels (grey).
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, what, values in zip(axes, ["error", "log-loss"], [errors, losses], strict=True):
    for name in models:
        ax.plot(lost, values[name], "o-", label=name)
    ax.set_xlabel("share of cells missing at prediction")
    ax.set_ylabel(what)
shares = y_train.value_counts(normalize=True)
axes[0].axhline(np.mean(y_test != shares.idxmax()), color="#b8b8b8", zorder=0)
axes[1].axhline(-np.log(y_test.map(shares)).mean(), color="#b8b8b8", zorder=0)
axes[1].set_ylim(0, 1.5)
axes[0].legend(frameon=False)
