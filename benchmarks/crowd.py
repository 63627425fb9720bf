"""Crowd labels: does the default fit find the best optimum, and the hidden labels?

Workers label items, each worker a few of them. The hidden class of an item is its true label, a
variable is a worker, and most cells are missing: the likelihood has popular poor optima.
Five shapes differ in size, number of labels and kinds of workers.
"""

import argparse
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from time import process_time

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import Policy
from rejoint.estimation.priors import first_prior
from rejoint.solver import Limits

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """Sizes of a crowd's labels, and the shares of each kind of worker."""

    items: int
    workers: int
    labels: int
    votes: int  # labels of an item
    kinds: Mapping[str, float] = field(default_factory=dict)
    balance: float = 5.0  # Dirichlet parameter of the shares of the true labels
    busy: float = 0.0  # how unequal workers are: work falls as 1 / number ** busy
    hard: float = 0.0  # share of items that look like one of two labels


SHAPES = {
    "adversaries": Shape(
        800, 160, 2, 6, {"good": 0.2, "fair": 0.3, "spammer": 0.3, "adversary": 0.2}, busy=1.0
    ),
    "biased": Shape(1000, 120, 3, 4, {"good": 0.2, "fair": 0.3, "biased": 0.5}, 2.0, busy=1.0),
    "confused": Shape(
        800, 110, 4, 5, {"good": 0.15, "fair": 0.25, "confused": 0.4, "spammer": 0.2}, busy=1.0
    ),
    "spammers": Shape(
        2600, 170, 5, 6, {"good": 0.25, "fair": 0.25, "spammer": 0.35, "biased": 0.15}, busy=1.2
    ),
    "hard items": Shape(
        500, 60, 5, 6, {"good": 0.3, "fair": 0.4, "biased": 0.15, "spammer": 0.15}, hard=0.4
    ),
}


def confusion(kind: str, labels: int, rng: np.random.Generator) -> Array:
    """Probability of each answer (rows) given the true label (columns)."""
    right = {"good": rng.uniform(0.75, 0.97), "fair": rng.uniform(0.45, 0.75)}.get(kind, 0.8)
    table = np.full((labels, labels), (1 - right) / (labels - 1))
    np.fill_diagonal(table, right)
    if kind == "spammer":  # answers whatever the item is
        table = np.tile(rng.dirichlet(np.full(labels, 0.5))[:, None], labels)
    elif kind == "biased":  # one answer far too often
        table = 0.5 * table
        table[rng.integers(labels)] += 0.5
    elif kind == "adversary":  # answers in a wrong order
        table = np.roll(table, 1, axis=0)
    elif kind == "confused":  # takes two labels for one
        a, b = rng.choice(labels, 2, replace=False)
        table[:, [a, b]] = table[:, [a, b]].mean(axis=1, keepdims=True)
    return table


def draw_crowd(shape: Shape, seed: int) -> tuple[NDArray[np.int8], NDArray[np.intp]]:
    """Answers, items by workers, -1 where there is none; and the true labels."""
    rng = np.random.default_rng([seed, shape.items, shape.workers])
    truth = rng.choice(
        shape.labels, shape.items, p=rng.dirichlet(np.full(shape.labels, shape.balance))
    )
    kinds = rng.choice(list(shape.kinds), shape.workers, p=list(shape.kinds.values()))
    tables = [confusion(kind, shape.labels, rng) for kind in kinds]
    work = rng.permutation(1.0 / np.arange(1, shape.workers + 1) ** shape.busy)
    answers = np.full((shape.items, shape.workers), -1, dtype=np.int8)
    hard, other = rng.random(shape.items) < shape.hard, rng.integers(shape.labels, size=shape.items)
    for item, label in enumerate(truth):
        seen = rng.choice(shape.workers, shape.votes, replace=False, p=work / work.sum())
        for worker in seen:
            looks = other[item] if hard[item] and rng.random() < 0.5 else label
            answers[item, worker] = rng.choice(shape.labels, p=tables[worker][:, looks])
    return answers[:, (answers >= 0).any(axis=0)], truth


def as_records(answers: NDArray[np.int8], labels: int) -> rj.Records:
    """The answers over workers that share one set of labels."""
    names = [f"w{n}" for n in range(answers.shape[1])]
    return rj.Records(rj.Domain.of(dict.fromkeys(names, labels)), answers)


def share_wrong(classes: NDArray[np.intp], truth: NDArray[np.intp], labels: int) -> float:
    """Share of items whose class is not their label, classes named as fits best."""
    table = np.zeros((labels, labels))
    np.add.at(table, (classes, truth), 1)
    best = max(sum(table[f, t] for f, t in enumerate(p)) for p in permutations(range(labels)))
    return float(1 - best / len(truth))


def majority(answers: NDArray[np.int8], labels: int) -> NDArray[np.intp]:
    """The label with the most votes for each item."""
    return np.argmax([(answers == k).sum(axis=1) for k in range(labels)], axis=0)


def best_of_40(data: InMemory, records: rj.Records, rank: int, seed: int) -> float:
    """The lowest objective of 40 starts that are all followed to the end."""
    policy = Policy(explore=Limits(max_steps=2000, progress=1e-9, exact=-1.0))
    solver = Em(prior=first_prior(data, policy))
    found = rj.estimate(records, rank, solver, n_init=40, random_state=seed, policy=policy)
    return min(run.objective for run in found.starts)


def with_rank(pmf: rj.LowRankPMF, rank: int) -> rj.LowRankPMF:
    """The model with light classes in the place of those that the fit had no use for."""
    if pmf.rank == rank:
        return pmf
    more = rank - pmf.rank
    weights = np.concatenate([(1 - 0.01 * more) * np.asarray(pmf.weights), np.full(more, 0.01)])
    own = [np.asarray(a) @ np.asarray(pmf.weights) for a in pmf.factors]
    factors = [np.column_stack([a, *[m] * more]) for a, m in zip(pmf.factors, own, strict=True)]
    return rj.LowRankPMF(weights, factors, pmf.domain)


def trials(seeds: int, solver: str) -> Iterator[tuple[str, bool, float, float, float, float]]:
    """For each shape and seed: whether the best optimum was found, by how much not, and errors."""
    for name, shape in SHAPES.items():
        for seed in range(seeds):
            answers, truth = draw_crowd(shape, seed)
            records = as_records(answers, shape.labels)
            data = InMemory.of(records)
            best = best_of_40(data, records, shape.labels, 1000 + seed)
            begun = process_time()
            found = rj.estimate(records, shape.labels, solver, random_state=seed)
            seconds = process_time() - begun
            # Of solver="map" and Bayes the prior is another one in the end: followed back here.
            back = rj.estimate(
                records,
                shape.labels,
                Em(prior=first_prior(data, Policy())),
                start=with_rank(found.pmf.representative, shape.labels),
                random_state=0,
            )
            lost = min(run.objective for run in back.starts) - best
            wrong = share_wrong(found.pmf.classes(records).argmax(axis=1), truth, shape.labels)
            voted = share_wrong(majority(answers, shape.labels), truth, shape.labels)
            yield name, lost < 0.1, lost, wrong, voted, seconds


def main() -> None:
    """Print a line for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", rj.Remark)
    print("solver  shape         best of 40  most lost  wrong  majority  CPU s")
    for solver in ("map", "auto"):
        rows = list(trials(asked.seeds, solver))
        for name in SHAPES:
            mine = [row[1:] for row in rows if row[0] == name]
            hit, lost, wrong, voted, seconds = (list(part) for part in zip(*mine, strict=True))
            print(
                f"{solver:7} {name:13} {sum(hit):4} of {len(hit)} {max(lost):10.2f} "
                f"{np.mean(wrong):6.1%} {np.mean(voted):9.1%} {np.mean(seconds):6.2f}",
                flush=True,
            )
        print(f"{solver:7} {'all':13} {sum(row[1] for row in rows):4} of {len(rows)}", flush=True)


if __name__ == "__main__":
    main()
