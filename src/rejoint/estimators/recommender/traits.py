"""Traits: users and items as points, whose inner products say what is chosen and how it is rated.

Two models share the mechanism. With ``u = (c, z)`` the numbers of a user and ``i = (b, a)`` those
of an item, the *choice* of the item has the logit

    x = c + b + a . z,

and one of four grades with the odds ``1 : o_1 exp(.3 x) : o_2 exp(.7 x) : exp(x)``: not chosen, or
chosen and liked little, fairly or well. Where it is only known what was chosen, this is the
logistic model of yes and no. The *rating* of an item that was chosen is normal around another such
sum, with a variance of each user's own.

Both sides are drawn in turn given the other one (Gibbs sampling): by the exact normal conditional
for ratings, and for choices by one Newton step per sweep and the normal around its end. Variances
of the traits are estimated from the draws, so that traits that are not needed shrink. What is kept
of a sweep is the conditional mean of each side given a draw of the other one; answers average over
the kept sweeps, and ratings are less certain by the variance of the draws around those means. For a
user, each sweep is one class of a small joint.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoint import kernels
from rejoint.arrays import FloatArray, IntArray, Single

#: Of single precision in a fit, of double precision for one new user.
Points = NDArray[Any]

#: Rows up to which sums over all columns are formed one by one, without a table of products.
FEW_ROWS = 16


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
        Ratings that the prior of a user's variance, and of a user's use of levels, counts for. RMSE
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


def upper_products(points: Points) -> Points:
    """Products of the coordinates of each point: the upper triangle of ``p p'``, row by row."""
    columns = np.ascontiguousarray(points.T)
    return np.concatenate([columns[j:] * columns[j] for j in range(len(columns))]).T


def second_moments(weights: Points, points: Points, products: Points | None) -> Points:
    """Weighted sums of ``p p'`` over the points, an upper triangle for each row of weights.

    The products of the points pay where there are many rows.
    """
    if products is not None:
        return np.asarray(weights @ products)
    upper = np.triu_indices(points.shape[1])
    return np.array([(points.T @ (row[:, None] * points))[upper] for row in weights])


def diagonal(d: int) -> IntArray:
    """Positions of the diagonal in an upper triangle."""
    return np.cumsum([0, *range(d, 1, -1)])


def split_bias(other: Single, dtype: Any = np.float32) -> tuple[Points, Points]:
    """What the points of one side are multiplied by, and what is added: (1, a) and b."""
    free = other.astype(dtype)
    free[:, 0] = 1.0
    return free, other[:, 0].astype(dtype)


def choice_half(
    points: Points,
    other: Single,
    grades: Any,
    prior: PointPrior,
    offsets: Single,
    policy: TraitPolicy,
    rng: np.random.Generator | None,
) -> tuple[Points, FloatArray]:
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
        None: nothing is drawn, and all cells are looked at.

    Returns
    -------
    draws : array (rows, d)
        The draws; the points themselves without a generator.
    sums : array (3,)
        Expected numbers of the three grades.
    """
    free, bias = split_bias(other, points.dtype)
    noise: Points = np.zeros_like(points)
    if rng is not None:
        noise = rng.standard_normal(points.shape, dtype=np.float32)
    gradient = np.asarray(grades @ free) - prior.precision * (points - prior.mean)
    columns = len(other)
    count = min(columns, max(1, policy.most_cells // max(len(points), 1)))
    sampled = None if count == columns else rng
    products = None
    if sampled is not None or len(points) > FEW_ROWS:
        products = upper_products(free)
    total = np.zeros(3)
    if sampled is not None:
        means, variances, total = _chosen_moments(points, free, bias, grades, offsets)
    step = max(1, policy.block_cells // (count if sampled else columns))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        if sampled is None or products is None:
            logits = points[rows] @ free.T
            variance, sums = kernels.grade_moments(logits, bias, offsets)
            slope, bend = logits @ free, second_moments(variance, free, products)
            total += sums
        else:
            here = np.sort(sampled.choice(columns, count, replace=False))
            logits = points[rows] @ free[here].T
            variance, sums = kernels.grade_moments(logits, bias[here], offsets)
            chosen = grades[rows][:, here].nonzero()  # these are not sampled: all of them count
            logits[chosen] = variance[chosen] = 0.0
            weight = np.float32(columns / count)
            slope = weight * (logits @ free[here]) + means[rows] @ free
            bend = weight * (variance @ products[here]) + variances[rows] @ products
            total += weight * sums
        bend[:, diagonal(points.shape[1])] += prior.precision
        gradient[rows] -= slope
        kernels.newton_draws(points[rows], gradient[rows], bend, noise[rows], policy.longest_step)
    return noise, total


def _chosen_moments(
    points: Points, free: Points, bias: Points, grades: Any, offsets: Single
) -> tuple[Any, Any, FloatArray]:
    """Means and variances of grades at the cells that were chosen, and sums of all grades there."""
    means = kernels.cell_products(points, free, grades.indptr, grades.indices)[None]
    variance, sums = kernels.grade_moments(means, bias[grades.indices], offsets)
    return with_data(grades, means[0]), with_data(grades, variance[0]), sums


def rating_half(
    other: Single,
    ratings: Any,
    cell_precision: Points,
    prior: PointPrior,
    rng: np.random.Generator | None,
) -> tuple[Points, Points]:
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
    free, bias = split_bias(other, ratings.dtype)
    shape, cells = (ratings.shape[0], other.shape[1]), (ratings.indptr, ratings.indices)
    targets = cell_precision * (ratings.data - bias[ratings.indices])
    products = np.ascontiguousarray(upper_products(free))
    gradient, bend = kernels.cell_sums(targets, cell_precision, free, products, *cells)
    gradient += prior.precision * prior.mean
    bend[:, diagonal(shape[1])] += prior.precision
    noise: Points = np.zeros(shape, dtype=ratings.dtype)
    if rng is not None:
        noise = rng.standard_normal(shape, dtype=np.float32)
    points = np.zeros(shape, dtype=ratings.dtype)
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
    """

    points: Single
    draws: Single
    least_squares: FloatArray
    centered: bool
    prior: PointPrior = field(init=False)

    def __post_init__(self) -> None:
        self.update_prior()

    def update_prior(self) -> None:
        """Estimate means and precisions of the prior from the draws."""
        mean = np.zeros(self.draws.shape[1])
        if self.centered:
            mean[0] = self.draws[:, 0].mean(dtype=np.float64)
        squares = np.square(self.draws - mean).sum(axis=0)
        estimated = (len(self.draws) + 2.0) / (squares + self.least_squares)
        precision = np.where(np.isnan(self.least_squares), 1.0, estimated)
        self.prior = PointPrior(precision.astype(np.float32), mean.astype(np.float32))


def as_cells(matrix: Any, dtype: Any = np.float32) -> Any:
    """Return a sparse matrix as a CSR array with positions of 32 bits, as kernels take it."""
    cells = sparse.csr_array(matrix, dtype=dtype)
    cells.sort_indices()
    cells.indices, cells.indptr = (x.astype(np.int32) for x in (cells.indices, cells.indptr))
    return cells


def with_data(cells: Any, data: Points) -> Any:
    """Return cells with other numbers in them."""
    return as_cells(
        sparse.csr_array((data, cells.indices, cells.indptr), shape=cells.shape), data.dtype
    )
