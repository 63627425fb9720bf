"""The other estimators of the table."""

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

import rejoint as rj

Array = NDArray[np.float64]


def draw(
    truth: rj.LowRankPMF, size: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], rj.Records]:
    """Records together with the hidden classes they were drawn from."""
    classes = rng.choice(truth.rank, size=size, p=np.asarray(truth.weights))
    codes = np.empty((size, len(truth.domain)), dtype=np.int16)
    for n, factor in enumerate(truth.factors):
        steps = np.cumsum(np.asarray(factor), axis=0)
        picked = (steps[:, classes] < rng.random(size)).sum(axis=0)
        codes[:, n] = np.minimum(picked, len(factor) - 1)
    return classes, rj.Records(truth.domain, codes)


def oracle(truth: rj.LowRankPMF, data: rj.Records, classes: NDArray[np.intp]) -> Array:
    """Counts of levels within the known classes, divided by the *observed* count."""
    rank, codes = truth.rank, np.asarray(data.codes)
    weights = np.bincount(classes, minlength=rank) / len(classes)
    factors = []
    for n, size in enumerate(truth.domain.shape):
        seen = codes[:, n] >= 0
        cell = codes[seen, n].astype(np.intp) * rank + classes[seen]
        counts = np.bincount(cell, minlength=size * rank).reshape(size, rank)
        total = counts.sum(axis=0)
        factors.append(np.where(total > 0, counts / np.maximum(total, 1), 1 / size))
    return rj.LowRankPMF(weights, factors).to_dense()


def empirical(data: rj.Records) -> Array:
    """Shares of the complete records."""
    codes = np.asarray(data.codes)
    complete = codes[(codes >= 0).all(axis=1)].astype(np.intp)
    shape = data.domain.shape
    index = np.ravel_multi_index(tuple(complete.T), shape)
    counts = np.bincount(index, minlength=int(np.prod(shape))).reshape(shape)
    return counts / max(len(complete), 1)


def independence(data: rj.Records) -> Array:
    """The product of the variables' own shares."""
    factors = [data.marginal([name])[:, None] for name in data.names]
    return rj.LowRankPMF([1.0], factors).to_dense()


def has_stepmix() -> bool:
    """Whether StepMix is installed (extra ``bench``)."""
    return find_spec("stepmix") is not None


def stepmix(data: rj.Records, rank: int, seed: int) -> Array:
    """StepMix's latent class model, missing cells by full information likelihood."""
    from stepmix import StepMix

    codes = np.asarray(data.codes).astype(float)
    codes[codes < 0] = np.nan
    model = StepMix(
        n_components=rank,
        measurement="categorical_nan",
        n_init=3,
        max_iter=1000,
        random_state=seed,
        progress_bar=0,
        verbose=0,
    )
    model.fit(codes)
    pis = np.asarray(model.get_parameters()["measurement"]["pis"]).T  # (N I, F)
    parts = np.split(pis, np.cumsum(data.domain.shape)[:-1])
    weights = np.asarray(model.get_parameters()["weights"])
    return rj.LowRankPMF(weights, [p / p.sum(axis=0) for p in parts]).to_dense()
