"""Traits: users and items as points, whose inner products say what is chosen and how it is rated.

Two models share the mechanism. With ``u = (c, z)`` the numbers of a user and ``i = (b, a)`` those
of an item, the *choice* of the item has the logit

    x = c + b + a . z,

and one of four grades with the odds ``1 : o_1 exp(.3 x) : o_2 exp(.7 x) : exp(x)``: not chosen, or
chosen and liked little, fairly or well. Where it is only known what was chosen, this is the
logistic model of yes and no. The *rating* of an item that was chosen is normal around another such
sum, with a variance of each user's own times a factor of the item.

Both sides are drawn in turn given the other one (Gibbs sampling): by the exact normal conditional
for ratings, and for choices by one Newton step per sweep and the normal around its end. Variances
of the traits are estimated from the draws, so that traits that are not needed shrink. What is kept
of a sweep is the conditional mean of each side given a draw of the other one; answers average over
the kept sweeps, and ratings are less certain by the variance of the draws around those means. For a
user, each sweep is one class of a small joint.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rejoint import kernels
from rejoint.arrays import FloatArray, IntArray, Single

FEW_ROWS = 16
"""Rows up to which sums over all columns are formed one by one, without a table of products."""


@dataclass(frozen=True)
class TraitPolicy:
    """The tuned numbers of a fit of traits.

    Parameters
    ----------
    many_cells : int
        Users x items above which the second one of ``choice_traits`` and ``choice_draws`` counts.
    choice_traits : pair of int
        Traits of choices. NDCG of 5,300 users and 1,500 movies .389 with 18, .393 with 20, which
        takes more than three times the CPU of ALS.
    choice_draws : pair of int
        Sweeps of choices that are kept: NDCG of 610 users and 1,000 movies .376, .380, .381 with
        12, 20, 28. For each of them there are two sweeps of ratings: RMSE .801, .799 with 24, 40.
    rating_traits : pair of int
        Traits of ratings at least and at most; in between, the root of the number of ratings of an
        item. RMSE with 50 ratings of an item .799, .800, .800 with 8, 12, 16; with 270 .791, .787,
        .785; with 800 of an item .749, .746, .744, and .743 with 32.
    burn_in : int
        Sweeps before the first one that is kept.
    place_steps : pair of int
        Newton steps to the place of a new user in the first kept sweep, and from there to the one
        in each of the others: with (6, 2) places are within .004 of those with 20 steps each.
    longest_step : float
        Largest coordinate of a Newton step: far away the quadratic model is no guide.
    most_cells : int
        Cells of users x items that half a sweep looks at. Where there are more, those that were not
        chosen are sampled: half of them cost no NDCG that could be seen, a fifth .007, a tenth .02.
    block_cells : int
        Logits that are formed at once: 4 MB.
    variance_ratings, use_ratings : float
        Ratings that the prior of a user's or item's variance, and of a user's use of levels, counts
        for. RMSE
        of 20 movies .790, .774, .776 with a variance prior of 10, 50 and infinitely many ratings,
        of 1,000 movies .799, .799, .815.

    Examples
    --------
    >>> TraitPolicy().of_shape(users=600, items=1000, ratings=60_000)
    (16, 20, 8)
    """

    many_cells: int = 2**20
    choice_traits: tuple[int, int] = (16, 18)
    choice_draws: tuple[int, int] = (20, 12)
    rating_traits: tuple[int, int] = (8, 32)
    burn_in: int = 4
    place_steps: tuple[int, int] = (6, 2)
    longest_step: float = 1.5
    most_cells: int = 2**27
    block_cells: int = 2**20
    variance_ratings: float = 50.0
    use_ratings: float = 10.0

    def of_shape(self, users: int, items: int, ratings: int) -> tuple[int, int, int]:
        """Return the numbers of choice traits, choice draws and rating traits by data size."""
        many = int(users * items > self.many_cells)
        traits = int(np.clip(round(np.sqrt(ratings / items)), *self.rating_traits))
        return self.choice_traits[many], self.choice_draws[many], traits


class PointPrior(NamedTuple):
    """Normal prior of the points of one side: precisions (d,), and means (d,) or (rows, d)."""

    precision: Single
    mean: Single


def upper_products(points: Single) -> Single:
    """Products of the coordinates of each point: the upper triangle of ``p p'``, row by row.

    Examples
    --------
    >>> upper_products(np.array([[2.0, 3.0]], dtype=np.float32))
    array([[4., 6., 9.]], dtype=float32)
    """
    columns = np.ascontiguousarray(points.T)
    d, at = len(columns), 0
    found = np.empty((d * (d + 1) // 2, len(points)), dtype=np.float32)
    for j in range(d):
        np.multiply(columns[j:], columns[j], out=found[at : at + d - j])
        at += d - j
    return found.T


def second_moments(weights: Single, points: Single, products: Single | None) -> Single:
    """Weighted sums of ``p p'`` over the points, an upper triangle for each row of weights.

    Parameters
    ----------
    weights : array (rows, points)
        The weights.
    points : array (points, d)
        The points.
    products : array (points, d (d + 1) / 2) or None
        Their products, which pay where there are many rows.

    Examples
    --------
    >>> points = np.array([[1.0, 2.0]], dtype=np.float32)
    >>> second_moments(np.ones((1, 1), np.float32), points, None)
    array([[1., 2., 4.]], dtype=float32)
    """
    if products is not None:
        return np.asarray(weights @ products)
    upper = np.triu_indices(points.shape[1])
    return np.array([(points.T @ (row[:, None] * points))[upper] for row in weights])


def diagonal(d: int) -> IntArray:
    """Positions of the diagonal in an upper triangle.

    Examples
    --------
    >>> diagonal(3)
    array([0, 3, 5])
    """
    return np.cumsum([0, *range(d, 1, -1)])


def split_bias(other: Single) -> tuple[Single, Single]:
    """What the points of one side are multiplied by, and what is added: (1, a) and b."""
    free = other.copy()
    free[:, 0] = 1.0
    return free, np.ascontiguousarray(other[:, 0])


def blocks(rows: int, columns: int, cells: int) -> Iterator[slice]:
    """Yield slices of rows with about a given number of cells."""
    step = max(1, cells // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def choice_half(
    points: Single,
    other: Single,
    grades: Any,
    prior: PointPrior,
    offsets: Single,
    policy: TraitPolicy,
    rng: np.random.Generator | None,
) -> tuple[Single, FloatArray]:
    """Take a Newton step from the points of one side, in place; draw around the ends.

    Parameters
    ----------
    points : array (rows, d)
        Users or items.
    other : array (columns, d)
        Draws of the other side.
    grades : csr_array (rows, columns)
        Grades of what was chosen.
    prior : PointPrior
        Of the points.
    offsets : array (2,)
        Odds of the two lower grades.
    policy : TraitPolicy
        Tuned numbers.
    rng : Generator, optional
        None: nothing is drawn.

    Returns
    -------
    draws : array (rows, d)
        The draws; the points themselves without a generator.
    sums : array (3,)
        Expected numbers of the three grades.
    """
    free, bias = split_bias(other)
    noise = np.zeros_like(points)
    if rng is not None:
        noise = rng.standard_normal(points.shape, dtype=np.float32)
    gradient = np.asarray(grades @ free, dtype=np.float32) - prior.precision * (points - prior.mean)
    count = min(len(other), max(1, policy.most_cells // max(len(points), 1)))
    sampled = None if count == len(other) else rng
    products = None
    if sampled is not None or len(points) > FEW_ROWS:
        products = upper_products(free)
    total = np.zeros(3)
    if sampled is not None:
        chosen = _chosen_moments(points, free, bias, grades, offsets)
        total += chosen.sums
    for rows in blocks(len(points), count if sampled else len(other), policy.block_cells):
        if sampled is None or products is None:
            logits = points[rows] @ free.T
            variance, sums = kernels.grade_moments(logits, bias, offsets)
            slope, bend = logits @ free, second_moments(variance, free, products)
            total += sums
        else:
            here = np.sort(sampled.choice(len(other), count, replace=False))
            logits = points[rows] @ free[here].T
            variance, sums = kernels.grade_moments(logits, bias[here], offsets)
            known = grades[rows][:, here].nonzero()  # these are not sampled: all of them count
            logits[known] = variance[known] = 0.0
            weight = np.float32(len(other) / count)
            slope = weight * (logits @ free[here]) + chosen.means[rows] @ free
            bend = weight * (variance @ products[here]) + chosen.variances[rows] @ products
            total += weight * sums
        bend[:, diagonal(points.shape[1])] += prior.precision
        gradient[rows] -= slope
        kernels.newton_draws(points[rows], gradient[rows], bend, noise[rows], policy.longest_step)
    return noise, total


class _ChosenMoments(NamedTuple):
    """Means and variances of grades at the cells that were chosen, as CSR matrices."""

    means: Any
    variances: Any
    sums: FloatArray


def _chosen_moments(
    points: Single, free: Single, bias: Single, grades: Any, offsets: Single
) -> _ChosenMoments:
    logits = kernels.cell_products(points, free, grades.indptr, grades.indices)[None]
    variance, sums = kernels.grade_moments(logits, bias[grades.indices], offsets)
    parts = [(data[0], grades.indices, grades.indptr) for data in (logits, variance)]
    means, variances = (sparse.csr_array(part, shape=grades.shape) for part in parts)
    return _ChosenMoments(means, variances, sums)


def rating_half(
    other: Single,
    ratings: Any,
    cell_precision: Single,
    prior: PointPrior,
    rng: np.random.Generator | None,
) -> tuple[Single, Single]:
    """Return means and draws of the points of one side given ratings and the other side.

    Parameters
    ----------
    other : array (columns, d)
        Draws of the other side.
    ratings : csr_array (rows, columns)
        Ratings less their overall mean.
    cell_precision : array (cells,)
        Reciprocal variance of each rating.
    prior : PointPrior
        Of the points.
    rng : Generator, optional
        None: nothing is drawn.
    """
    free, bias = split_bias(other)
    shape = (ratings.shape[0], other.shape[1])
    targets = cell_precision * (ratings.data - bias[ratings.indices])
    gradient, bend = kernels.cell_sums(
        targets,
        cell_precision,
        free,
        np.ascontiguousarray(upper_products(free)),
        ratings.indptr,
        ratings.indices,
    )
    gradient += prior.precision * prior.mean
    bend[:, diagonal(shape[1])] += prior.precision
    noise = np.zeros(shape, dtype=np.float32)
    if rng is not None:
        noise = rng.standard_normal(shape, dtype=np.float32)
    points = np.zeros(shape, dtype=np.float32)
    kernels.newton_draws(points, gradient, bend, noise, np.inf)
    return points, noise


@dataclass
class Side:
    """Points of users or of items during a fit, draws of them, and their prior.

    Parameters
    ----------
    points, draws : arrays (rows, d)
        Conditional means and draws.
    least_squares : array (d,)
        Sums of squares that the estimates of variances start from; NaN for variances of one.
    centered : bool
        Whether the first number has a mean of its own, or of zero.
    features : array (rows, F), optional
        What the means of the points depend on.
    """

    points: Single
    draws: Single
    least_squares: FloatArray
    centered: bool
    features: Single | None = None
    prior: PointPrior = field(init=False)
    weights: Single = field(init=False)

    def __post_init__(self) -> None:
        self.update_prior()

    def update_prior(self) -> None:
        """Estimate means and precisions of the prior from the draws."""
        rows, d = self.draws.shape
        mean = np.zeros(d)
        if self.centered:
            mean[0] = self.draws[:, 0].mean(dtype=np.float64)
        rest, means = self.draws - mean, mean
        self.weights = np.zeros((0, d), dtype=np.float32)
        if self.features is not None:
            self.weights = ridge(self.features, rest)
            moved = self.features @ self.weights
            rest, means = rest - moved, mean + moved
        squares = np.einsum("rd,rd->d", rest, rest, dtype=np.float64)
        estimated = (rows + 2.0) / (squares + self.least_squares)
        precision = np.where(np.isnan(self.least_squares), 1.0, estimated)
        self.prior = PointPrior(precision.astype(np.float32), np.asarray(means, dtype=np.float32))


def ridge(features: Single, targets: FloatArray) -> Single:
    """Regress points on features, with a penalty of one.

    Examples
    --------
    >>> ridge(np.ones((3, 1), np.float32), np.ones((3, 1)))
    array([[0.75]], dtype=float32)
    """
    gram = features.T.astype(np.float64) @ features + np.eye(features.shape[1])
    return np.asarray(np.linalg.solve(gram, features.T @ targets), dtype=np.float32)


def transpose(cells: Any) -> Any:
    """Return the transpose of a CSR matrix as one that kernels take."""
    return as_cells(cells.T)


def as_cells(matrix: Any) -> Any:
    """Return a sparse matrix as a CSR array of single precision with positions of 32 bits."""
    found = sparse.csr_array(matrix, dtype=np.float32)
    found.sort_indices()
    found.indices, found.indptr = (x.astype(np.int32) for x in (found.indices, found.indptr))
    return found
