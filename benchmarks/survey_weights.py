"""Coverage of 90 % intervals of weighted and clustered surveys of random models.

``python benchmarks/survey_weights.py`` draws surveys of models of eight variables with three levels
and three classes, 1,000 records each, and prints how many intervals of shares, P(x), and of
conditional shares, P(x | y), hold the truth:

log-normal   weights that have nothing to do with the answers, design effect 2.5, as counts
             (``sample_weight``, scaled to 1,000) and as ``survey_weight``
selected     who answers depends on the first variable; weights undo it
towns        50 clusters of 20 whose classes differ, with an intra-class correlation of 0.05 or 0.2

By default 24 models, some five minutes of computing; ``--models`` takes more, ``--auto`` leaves
the number of classes open, ``--seed`` is that of the first model.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rejoint as rj

RECORDS, LEVELS, VARIABLES, CLASSES = 1_000, 3, 8, 3
TOWN = 20  # records of a cluster
LEVEL = 0.9
ASKED = 5  # variables that are asked about


class Survey(NamedTuple):
    """Records of a truth, and the arguments that say how they were drawn."""

    title: str
    truth: rj.LowRankPMF
    records: rj.Records
    weights: dict[str, Any]


def random_truth(rng: np.random.Generator) -> rj.LowRankPMF:
    """Return a random model."""
    factors = [rng.dirichlet(np.ones(LEVELS), CLASSES).T for _ in range(VARIABLES)]
    return rj.LowRankPMF(rng.dirichlet(np.full(CLASSES, 3.0)), factors)


def surveys(seed: int) -> Iterator[Survey]:
    """Yield surveys of one truth, with and without what is known of them."""
    rng = np.random.default_rng(1000 + seed)
    truth = random_truth(rng)
    plain = truth.sample(RECORDS, random_state=seed)
    weight = np.exp(rng.normal(0.0, np.sqrt(np.log(2.5)), RECORDS))
    counts = weight * RECORDS / weight.sum()
    yield Survey("log-normal weights, as counts", truth, plain, {"sample_weight": counts})
    yield Survey("log-normal weights, survey_weight", truth, plain, {"survey_weight": weight})
    people = truth.sample(10 * RECORDS, random_state=seed + 1)
    chance = np.array([1.0, 0.5, 0.1])[people.codes[:, 0]]
    chosen = np.flatnonzero(rng.random(len(people)) < chance)[:RECORDS]
    some, weight = people.take(chosen), 1.0 / chance[chosen]
    yield Survey("selected, without weights", truth, some, {})
    yield Survey("selected, survey_weight", truth, some, {"survey_weight": weight})
    for correlation in (0.05, 0.2):
        codes = [town_codes(truth, correlation, rng) for _ in range(RECORDS // TOWN)]
        clustered = rj.Records(truth.domain, np.vstack(codes))
        towns = np.repeat(np.arange(RECORDS // TOWN), TOWN)
        title = f"towns, correlation {correlation:g}"
        yield Survey(f"{title}, without clusters", truth, clustered, {})
        yield Survey(f"{title}, clusters", truth, clustered, {"clusters": towns})


def town_codes(
    truth: rj.LowRankPMF, correlation: float, rng: np.random.Generator
) -> NDArray[np.signedinteger[Any]]:
    """Draw the records of a cluster, whose classes have weights of their own."""
    weights = rng.dirichlet(truth.weights * (1.0 / correlation - 1.0))
    mine = rj.LowRankPMF(weights, truth.factors, truth.domain)
    return mine.sample(TOWN, random_state=int(rng.integers(2**31))).codes


def held(pmf: rj.LowRankPMF, truth: rj.LowRankPMF) -> tuple[float, float]:
    """Return how many intervals of shares, and of conditional shares, hold the truth."""
    shares, conditional = [], []
    names = truth.domain.names[:ASKED]
    for name in names:
        found = pmf.interval(name, level=LEVEL)
        true = truth.marginal(name)
        shares += [*((found.low <= true) & (true <= found.high))]
        for other in names:
            for level in truth.domain[other].levels if other != name else ():
                found = pmf.interval(name, given={other: level}, level=LEVEL)
                true = truth.condition({other: level}).marginal(name)
                conditional += [*((found.low <= true) & (true <= found.high))]
    return float(np.mean(shares)), float(np.mean(conditional))


def main() -> None:
    """Print one line for each kind of survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--auto", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", rj.Remark)
    found, effects = defaultdict(list), defaultdict(list)
    rank: Any = "auto" if asked.auto else CLASSES
    for seed in range(asked.seed, asked.seed + asked.models):
        for survey in surveys(seed):
            data = rj.Records.of(survey.records, **survey.weights)
            result = rj.estimate(data, rank, "bayes", random_state=0)
            found[survey.title].append(held(result.pmf, survey.truth))
            effects[survey.title].append(1.0 if data.design is None else data.design.effect)
    print(f"{'':44}  deff   P(x)  P(x | y)  (standard errors)")
    for title, rows in found.items():
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
        effect = np.mean(effects[title])
        print(f"{title:44}  {effect:4.2f}  {mean[0]:5.3f}  {mean[1]:5.3f}     {error.round(3)}")


if __name__ == "__main__":
    main()
