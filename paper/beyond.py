"""What else the paper says of the model: densities, crowds, and that a best one may not exist."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rejoint as rj
from paper.framework import Done, Expected, Experiment, Section, Table, Text, save_figure
from paper.table4 import quiet

TOPICS = ("density", "crowd", "best approximation")


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """One cell for each topic."""
    return [{"topic": topic, "seed": 0} for topic in TOPICS]


def work(topic: str, seed: int) -> dict[str, Any]:
    """The numbers of one topic."""
    rng = np.random.default_rng(seed)
    return {"density": density, "crowd": crowd, "best approximation": border}[topic](rng)


def density(rng: np.random.Generator) -> dict[str, Any]:
    """Bits a record, on new records of the Asia network, of models made from 1,000."""
    truth = rj.datasets.asia()
    old, new = truth.sample(1_000, random_state=rng), truth.sample(50_000, random_state=rng)
    result = rj.estimate(old, random_state=0)
    alone = rj.LowRankPMF([1.0], [old.marginal([n])[:, None] for n in old.names], old.domain)
    seen = {tuple(row) for row in np.asarray(old.codes).tolist()}
    unseen = np.mean([tuple(row) not in seen for row in np.asarray(new.codes).tolist()])
    bits = {"truth": truth, "ours": result.pmf, "independence": alone}
    found = {k: float(-p.log_prob(new).mean() / np.log(2)) for k, p in bits.items()}
    return found | {"rank": result.pmf.rank, "unseen": float(unseen)}


def crowd(rng: np.random.Generator) -> dict[str, Any]:
    """Labels of 2,000 items by 15 workers of unequal skill, each item seen by 4 of them."""
    items, workers, labels, each = 2_000, 15, 3, 4
    truth = rng.choice(labels, size=items, p=[0.5, 0.3, 0.2])
    skill = rng.uniform(0.35, 0.95, size=workers)
    right = rng.random((items, workers)) < skill
    codes = np.where(right, truth[:, None], rng.integers(labels, size=(items, workers)))
    order = np.argsort(rng.random((items, workers)), axis=1)
    codes = np.where(order < each, codes, -1).astype(np.int16)
    votes = np.stack([(codes == k).sum(axis=1) for k in range(labels)], axis=1)
    majority = np.argmax(votes + 1e-6 * rng.random(votes.shape), axis=1)
    data = rj.Records(rj.Domain.of_shape([labels] * workers), codes)
    result = rj.estimate(data, rank=labels, random_state=0)
    posterior = np.asarray(result.pmf.classes(data))
    # A class is named after the label that its members are given most often.
    named = np.argmax([votes[posterior.argmax(axis=1) == f].sum(axis=0) for f in range(labels)], 1)
    ours = named[posterior.argmax(axis=1)]
    return {
        "majority": float(np.mean(majority != truth)),
        "ours": float(np.mean(ours != truth)),
        "known skills": float(np.mean(known_skills(codes, skill, labels) != truth)),
    }


def known_skills(codes: Any, skill: Any, labels: int) -> Any:
    """The best guess of one who knows every worker's skill and the shares of the labels."""
    score = np.log(np.tile([0.5, 0.3, 0.2], (len(codes), 1)))
    for k in range(labels):
        hit = np.where(codes == k, skill + (1 - skill) / labels, (1 - skill) / labels)
        score[:, k] += np.where(codes >= 0, np.log(hit), 0.0).sum(axis=1)
    return score.argmax(axis=1)


def border(rng: np.random.Generator) -> dict[str, Any]:
    """One of three switches is on: no best rank 2 approximation without constraints."""
    a, b = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    table = np.zeros((2, 2, 2))
    table[1, 0, 0] = table[0, 1, 0] = table[0, 0, 1] = 1 / 3
    size, free = [], []
    for n in (1, 10, 100, 1_000, 10_000):
        # (n/3) ((a + b/n)^3 - a^3), of rank 2, tends to the table while its parts grow.
        tilted = a + b / n
        first = n / 3 * np.einsum("i,j,k->ijk", tilted, tilted, tilted)
        second = n / 3 * np.einsum("i,j,k->ijk", a, a, a)
        free.append(float(np.linalg.norm(first - second - table) / np.linalg.norm(table)))
        size.append(float(np.linalg.norm(first)))
    names = ("s1", "s2", "s3")
    tables = rj.Marginals.from_tables({names: table}, kind="shares")
    ours = {f: quiet(tables, f, "auto", random_state=0).error for f in (1, 2, 3)}
    return {"free": free, "size": size, **{f"rank {f}": error for f, error in ours.items()}}


def expected(done: Done) -> Iterable[Expected]:
    """Each topic's claim."""
    found = {cell.settings["topic"]: cell.values for cell in done}
    bits, people, edge = (found[topic] for topic in TOPICS)
    why = "an estimate cannot code better than the truth, but for the noise of 50,000 records"
    yield Expected("density: bits above the truth", bits["ours"] - bits["truth"], -0.01, 0.1, why)
    why = "the variables are dependent: half a bit is lost without it"
    yield Expected("density: gain", bits["independence"] - bits["ours"], 0.3, 3, why)
    why = "workers differ in skill, which votes ignore"
    yield Expected("crowd: ours / majority", people["ours"] / people["majority"], 0.3, 0.95, why)
    why = "no one beats known skills but by chance (2,000 items: one percent)"
    yield Expected("crowd: loss", people["ours"] - people["known skills"], -0.01, 0.04, why)
    why = "the errors of the unbounded sequence fall like 1/n"
    yield Expected("free rank 2, n = 10,000", edge["free"][-1], 0, 1e-3, why)
    why = "the best nonnegative rank 2 model is at a distance, and rank 3 is exact"
    yield Expected("ours, rank 2", edge["rank 2"], 0.2, 0.8, why)
    yield Expected("ours, rank 3", edge["rank 3"], 0, 1e-5, why)


def section(done: Done, folder: Path) -> Section:
    """Three short topics."""
    found = {cell.settings["topic"]: cell.values for cell in done}
    parts: list[Any] = []
    if "density" in found:
        parts += density_parts(found["density"])
    if "crowd" in found:
        parts += crowd_parts(found["crowd"])
    if "best approximation" in found:
        parts += border_parts(found["best approximation"], folder)
    return Section("What else the paper says of the model", parts)


def density_parts(found: Mapping[str, Any]) -> list[Any]:
    """Density estimation."""
    rows = [[k, f"{found[k]:.3f}"] for k in ("truth", "ours", "independence")]
    return [
        Text(
            "Density estimation. The model is a mixture of products, long used to estimate "
            "densities of discrete records: `estimate` fits it, `log_prob` evaluates it. Bits a "
            "record on 50,000 new records of the Asia network, from 1,000 records (rank found by "
            f"itself: {found['rank']}):"
        ),
        Table(["model", "bits a record"], rows),
        Text(
            f"Counting whole records gives no finite number: {found['unseen']:.1%} of the new "
            "records do not occur among the old ones."
        ),
    ]


def crowd_parts(found: Mapping[str, Any]) -> list[Any]:
    """Crowdsourcing."""
    words = {
        "majority": "majority of the votes",
        "ours": "hidden class, `pmf.classes(data)`",
        "known skills": "best guess if all skills were known",
    }
    return [
        Text(
            "Crowdsourcing (Dawid and Skene 1979). Workers are the variables, items the records, "
            "the true label is the hidden class, and the factors are the workers' tables of "
            "confusion; nearly all cells are missing. 2,000 items, 15 workers of unequal skill, "
            "each item labelled by 4 of them, 3 labels (seed 0); share of wrong labels:"
        ),
        Table(["method", "wrong"], [[words[k], f"{found[k]:.1%}"] for k in words]),
    ]


def border_parts(found: Mapping[str, Any], folder: Path) -> list[Any]:
    """That a best approximation may not exist."""
    ours = ", ".join(f"{found[f'rank {f}']:.2g}" for f in (1, 2, 3))
    return [
        Text(
            "A best approximation may not exist. Without constraints, a tensor of rank 3 can be a "
            'limit of tensors of rank 2: for "exactly one of three switches is on", each with '
            "probability 1/3, the sequence `(n/3) ((a + b/n)^3 - a^3)` has rank 2 and comes as "
            "near as one likes, while its two parts grow without bound and cancel. No rank 2 "
            "tensor is nearest. The paper says that constraints mitigate this. Here they remove "
            "it: weights and factor columns lie on simplices, a compact set on which every "
            "objective of rejoint that is continuous has its minimum, and nothing can cancel. "
            f"Relative errors of `factorize` at rank 1, 2, 3: {ours}. The price is that "
            "the nonnegative rank may be larger than the rank."
        ),
        Text(
            "What remains: the best model need not be unique (`identifiability` says when it is), "
            "nor need a fit find it. So `factorize` tries several starts, `stop` says in words how "
            "the best one ended and what to try, and `history` shows it; the algebraic start, "
            "which has no constraints, fails loudly where eigenvalues collide or are complex and "
            "is projected onto the simplex before it is polished. KL divergence is infinite where "
            "the model has a zero and the table does not: that objective's minimum exists as well, "
            "since it is lower semicontinuous."
        ),
        draw(found, folder),
    ]


def draw(found: Mapping[str, Any], folder: Path) -> Any:
    """Error and size of the parts of the sequence that has no limit of its rank."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    ax.plot(found["size"], found["free"], "o-", color="tab:red", label="rank 2, no constraints")
    ax.axhline(found["rank 2"], color="tab:blue", label="rank 2 on the simplex (rejoint)")
    ax.set(xscale="log", yscale="log", xlabel="norm of each of its two parts")
    ax.set_ylabel("relative error")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    caption = "Ever nearer, ever larger: no best rank 2 approximation without constraints."
    return save_figure(figure, folder, "beyond", caption)


EXPERIMENT = Experiment("beyond", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
