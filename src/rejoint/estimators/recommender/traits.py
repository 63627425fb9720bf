"""Traits: hidden classes at points of a space, so that few numbers describe thousands of them.

A user is a point ``z`` of ``traits`` numbers, normal a priori, and an item a smooth map from
points to the probabilities of its levels:

    log P(level i | z) = const + sum_j V[i, j] (b_j + [j < 2] a_j . z),

with ``V`` (I, I - 1) orthonormal polynomials in the number of the level: each trait moves ratings
up or down (j = 0) and apart or together (j = 1), ``b`` gives each item its own shape. At F points
this is a :class:`LowRankPMF` of F classes with equal weights. It needs I - 1 + 2 traits numbers an
item in place of (I - 1) F, so that it holds hundreds of classes where free columns hold a few.

The fit is EM. Every sweep has fresh points (a shifted Sobol sequence), so that none are overfitted;
the items' numbers are pulled to their mean over items by normal priors, whose variances are
estimated too (empirical Bayes: the posterior variances count). The models of the last sweeps, each
at its own points, are averaged: one model of ``models x points`` classes.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from rejoint.arrays import FloatArray
from rejoint.check import whole
from rejoint.estimators.recommender.rating_model import UserEvidence, posterior_blocks

#: A step is shortened to this length: far from the maximum the quadratic model is no guide.
LONGEST = 3.0


def newton_step(
    items: FloatArray,
    counts: FloatArray,
    columns: FloatArray,
    places: FloatArray,
    basis: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Raise each item's expected log-likelihood and log-prior by one Newton step.

    Parameters
    ----------
    items : (N, K)
        I - 1 numbers of shape, then T times as many slopes as there are traits.
    counts, columns : (N, I, F)
        Expected counts of levels at points, and their probabilities now.
    places : (F, traits)
        The points.
    basis : (I, I - 1)
        Polynomials of the levels.
    mean, precision : (K,)
        Normal prior.

    Returns
    -------
    items : (N, K)
        After the step.
    spread : (N, K)
        Posterior variance of each number (Laplace).
    """
    expected = counts.sum(axis=1, keepdims=True) * columns
    traits = places.shape[1]
    kinds = (items.shape[1] - basis.shape[1]) // traits
    rest = basis.T @ (counts - expected)  # (N, I - 1, F)
    slope = np.concatenate(
        [rest.sum(axis=2), (rest[:, :kinds] @ places).reshape(len(items), -1)], axis=1
    )
    slope -= precision * (items - mean)
    bend = curvature(expected, columns, places, basis, kinds)
    index = np.arange(items.shape[1])
    bend[:, index, index] += precision
    inverse = np.asarray(np.linalg.inv(bend), dtype=np.float64)
    step = (inverse @ slope[:, :, None])[:, :, 0]
    length = np.abs(step).max(axis=1, keepdims=True)
    step *= np.minimum(1.0, LONGEST / np.maximum(length, LONGEST))
    return items + step, np.asarray(inverse[:, index, index])


def curvature(
    expected: FloatArray, columns: FloatArray, places: FloatArray, basis: FloatArray, kinds: int
) -> FloatArray:
    """Minus the second derivatives of the log-likelihood of each item, (N, K, K).

    With ``C`` the covariance of the polynomials under a point's column, weighted by its counts:
    shapes meet in ``sum C``, shapes and slopes in ``sum C z``, slopes in ``sum C z z'``.
    """
    number, size, _ = columns.shape
    traits, degrees = places.shape[1], size - 1
    bend = np.empty((number, degrees + kinds * traits, degrees + kinds * traits))
    levels = -expected @ columns.transpose(0, 2, 1)
    levels[:, np.arange(size), np.arange(size)] += expected.sum(axis=2)
    bend[:, :degrees, :degrees] = basis.T @ levels @ basis
    means = basis[:, :kinds].T @ columns  # (N, T, F)
    pairs = (places[:, :, None] * places[:, None, :]).reshape(len(places), -1)
    for t in range(kinds):
        off = expected * (basis[:, t, None] - means[:, t, None])  # (N, I, F)
        shared = basis.T @ off  # (N, I - 1, F): C of polynomial t with all others
        here = slice(degrees + t * traits, degrees + (t + 1) * traits)
        bend[:, :degrees, here] = shared @ places
        bend[:, here, :degrees] = bend[:, :degrees, here].transpose(0, 2, 1)
        for s in range(t, kinds):
            there = slice(degrees + s * traits, degrees + (s + 1) * traits)
            bend[:, here, there] = (shared[:, s] @ pairs).reshape(number, traits, traits)
            bend[:, there, here] = bend[:, here, there]
    return bend


#: Prior guess at the variances over items: of shapes, of moves up and down, of moves apart.
VARIANCES = (1.0, 3.0, 0.1)

#: Numbers that the averaged model may hold (levels of all items x classes): 64 MB.
MOST_NUMBERS = 2**23

#: Numbers in a block of items' columns: 8 MB.
ITEM_BLOCK = 2**20

#: Observed cells that a sweep looks at, but for the last ones, which look at all.
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Traits:
    """Solver of :class:`JointRecommender`: users as points in a space of a few traits.

    Parameters
    ----------
    traits : int
        Dimensions of the space; those that are not needed shrink.
    points : int
        Points that stand for the space in one model, taken down to a power of two. Fewer are used
        where items are so many that the model would not fit into 64 MB.
    sweeps : int
        Sweeps of EM before the first model is kept.
    models : int
        Models that are averaged, five sweeps apart.

    Examples
    --------
    >>> Traits(traits=3)
    Traits(traits=3, points=256, sweeps=100, models=20)
    """

    traits: int = 5
    points: int = 256
    sweeps: int = 100
    models: int = 20

    #: Sweeps from one model that is kept to the next.
    stride = 5

    def __post_init__(self) -> None:
        for name in ("traits", "points", "sweeps", "models"):
            whole(name, getattr(self, name))

    def within(self, levels: int) -> tuple[int, int]:
        """Points of a model and number of models that fit, for all items' levels."""
        most = max(MOST_NUMBERS // levels, 16)
        points = 2 ** int(np.log2(min(self.points, most)))
        return points, int(np.clip(most // points, 1, self.models))


class TraitFit(NamedTuple):
    """Log columns of all models side by side (N I, R), and log-likelihood of each sweep."""

    log_columns: FloatArray
    history: tuple[float, ...]


@dataclass
class TraitState:
    """The items' numbers (N, K), their mean over items and their precisions."""

    items: FloatArray
    mean: FloatArray
    precision: FloatArray


def fit_traits(
    evidence: UserEvidence, size: int, solver: Traits, rng: np.random.Generator
) -> TraitFit:
    """Fit to the cells of ``evidence``; every item has ``size`` levels.

    Examples
    --------
    >>> from scipy import sparse
    >>> cells = sparse.csr_array(np.eye(4)[[0, 2, 0, 2, 1, 3, 1, 3]])
    >>> fit = fit_traits(UserEvidence(cells), 2, Traits(1, 16, 2, 1), np.random.default_rng(0))
    >>> fit.log_columns.shape
    (4, 16)
    """
    levels = evidence.cells.shape[1]
    if size == 1:  # all ratings are equal: there is nothing to learn
        return TraitFit(np.zeros((levels, 1)), (0.0,))
    points, models = solver.within(levels)
    state = first_state(evidence, size, solver.traits, rng)
    history: list[float] = []
    kept: list[FloatArray] = []
    last = solver.sweeps + (models - 1) * solver.stride
    for sweep in range(last + 1):
        used, scale = sample_users(evidence, sweep > last - 2, rng)
        places = draw_points(points, solver.traits, rng)
        log_columns = columns_at(state.items, places, size)
        if sweep >= solver.sweeps and (sweep - solver.sweeps) % solver.stride == 0:
            kept.append(log_columns)
        counts, log_likelihood = expect(used, log_columns)
        history.append(scale * log_likelihood)
        advance(state, scale * counts, log_columns, places, size)
    return TraitFit(np.concatenate(kept, axis=1), tuple(history))


def polynomials(size: int) -> FloatArray:
    """Orthonormal polynomials of degree 1 to I - 1 at I evenly spaced levels, (I, I - 1).

    Examples
    --------
    >>> abs(polynomials(3)).round(2)
    array([[0.71, 0.41],
           [0.  , 0.82],
           [0.71, 0.41]])
    """
    powers = np.vander(np.linspace(-1.0, 1.0, size), size, increasing=True)
    found = np.linalg.qr(powers)[0][:, 1:]
    return np.asarray(found * np.sign(found[-1]))


def draw_points(count: int, traits: int, rng: np.random.Generator) -> FloatArray:
    """Evenly spread points of the standard normal, (F, traits)."""
    cube = sobol(count, traits) + rng.random(traits)  # shifted around the torus
    return np.asarray(ndtri(np.clip(cube % 1.0, 1e-9, 1.0 - 1e-9)))


@lru_cache(maxsize=4)
def sobol(count: int, traits: int) -> FloatArray:
    """The first points of Sobol's sequence, (F, traits)."""
    return np.asarray(qmc.Sobol(traits, scramble=False).random_base2(int(np.log2(count))))


def columns_at(items: FloatArray, places: FloatArray, size: int) -> FloatArray:
    """Log-probabilities of all items' levels at the points, (N I, F)."""
    basis = polynomials(size)
    shapes = items[:, : size - 1] @ basis.T  # (N, I)
    slopes = items[:, size - 1 :].reshape(len(items), -1, places.shape[1])  # (N, T, traits)
    moves = np.einsum("ntf,it->nif", slopes @ places.T, basis[:, : slopes.shape[1]])
    logs = shapes[:, :, None] + moves
    logs -= logs.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return np.asarray(logs.reshape(-1, len(places)))


def first_state(
    evidence: UserEvidence, size: int, traits: int, rng: np.random.Generator
) -> TraitState:
    """Items of their own shares, moved by traits at random, and all by the first one."""
    degrees, kinds = size - 1, min(size - 1, 2)
    shares = evidence.totals.reshape(-1, size) + 0.5
    logs = np.log(shares / shares.sum(axis=1, keepdims=True))
    items = np.zeros((len(shares), degrees + kinds * traits))
    items[:, :degrees] = logs @ polynomials(size)
    items[:, degrees : degrees + traits] = 0.3 * rng.standard_normal((len(shares), traits))
    items[:, degrees] += 1.0
    mean = np.zeros(items.shape[1])
    mean[:degrees] = items[:, :degrees].mean(axis=0)
    return TraitState(items, mean, 1.0 / variances(degrees, kinds, traits))


def variances(degrees: int, kinds: int, traits: int) -> FloatArray:
    """The prior guess for each of an item's numbers, (K,)."""
    return np.repeat(VARIANCES[: 1 + kinds], [degrees] + [traits] * kinds)


def sample_users(
    evidence: UserEvidence, everybody: bool, rng: np.random.Generator
) -> tuple[UserEvidence, float]:
    """Sample the users of a sweep; also return how many users each stands for."""
    users = evidence.cells.shape[0]
    share = MOST_CELLS / max(evidence.cells.nnz, 1)
    if everybody or share >= 1.0:
        return evidence, 1.0
    chosen = np.sort(rng.choice(users, max(1, int(share * users)), replace=False))
    return evidence.take(chosen), users / len(chosen)


def expect(evidence: UserEvidence, log_columns: FloatArray) -> tuple[FloatArray, float]:
    """Expected counts of levels at points, (N I, F), and the log-likelihood: one pass."""
    counts = np.zeros(log_columns.shape)
    mass, total = np.zeros(log_columns.shape[1]), 0.0
    start = np.full(log_columns.shape[1], -np.log(log_columns.shape[1]))
    for block, log_prob, posterior in posterior_blocks(evidence, log_columns, start):
        counts += evidence.cells[block].T @ posterior
        mass += posterior.sum(axis=0)
        total += float(log_prob.sum())
    if evidence.background is not None:
        counts += evidence.background[:, None] * mass
        counts = np.maximum(counts, 0.0)  # differences of sums: rounding
    return counts, total


def advance(
    state: TraitState, counts: FloatArray, log_columns: FloatArray, places: FloatArray, size: int
) -> None:
    """One Newton step of every item, then the priors that the items speak for."""
    squares, basis = np.zeros(len(state.mean)), polynomials(size)
    step = max(1, ITEM_BLOCK // (size * len(places)))
    for start in range(0, len(state.items), step):
        block = slice(start, min(start + step, len(state.items)))
        rows = slice(block.start * size, block.stop * size)
        mine = counts[rows].reshape(-1, size, len(places))
        columns = np.exp(log_columns[rows]).reshape(mine.shape)
        found, spread = newton_step(
            state.items[block], mine, columns, places, basis, state.mean, state.precision
        )
        state.items[block] = found
        squares += ((found - state.mean) ** 2 + spread).sum(axis=0)
    number, degrees = len(state.items), size - 1
    kinds = min(degrees, 2)
    guess = variances(degrees, kinds, places.shape[1])
    # One item's worth of prior on the variances, and on the means, which lean to zero.
    state.precision = (2.0 + number) / (2.0 * guess + squares)
    state.mean = state.items.sum(axis=0) / (number + 1)
