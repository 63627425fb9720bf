"""Passes over records whose class is hidden: what EM, variational Bayes and Gibbs repeat.

The twins sum logarithms, so nothing underflows.
"""

from collections.abc import Callable, Iterator, Sequence
from math import exp, floor, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import (
    CODE_TYPES,
    OUT_OF_RANGE,
    Array,
    Codes,
    check_codes,
    check_model,
    check_shape,
    check_weight,
    compiled,
)
from rejoint.kernels.codes import SparseCodes

#: Records in either of their forms.
AnyCodes = Codes | SparseCodes

BLOCK_ENTRIES = 1 << 18  # entries of the largest array that a pass of a twin makes
GROUP_CELLS = 1 << 11  # cells of the largest table into which a twin joins variables


def has_value(codes: AnyCodes) -> NDArray[np.bool_]:
    """Return whether any variable is observed, for each record.

    Examples
    --------
    >>> has_value(np.array([[0, -1], [-1, -1]], dtype=np.int8))
    array([ True, False])
    """
    if isinstance(codes, SparseCodes):
        return np.asarray(codes.counts > 0)
    if compiled is None or codes.dtype not in CODE_TYPES:
        return np.asarray((codes >= 0).any(axis=1))
    found = np.empty(len(codes), dtype=bool)
    compiled.has_value(np.ascontiguousarray(codes), found)
    return found


def arrays_of(codes: Codes | SparseCodes, levels: Sequence[int]) -> tuple[Any, ...]:
    """Return the arrays that hold records in either form, once they fit the model.

    Compiled kernels check each code themselves as they read it.
    """
    if isinstance(codes, SparseCodes):
        if codes.levels != tuple(levels):
            raise ValueError("The codes have other numbers of levels than the model.")
        return codes.arrays
    if compiled is None:
        check_codes(codes, levels)
    else:
        check_shape(codes, levels)
    return (np.ascontiguousarray(codes),)


def class_pass(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Sum the posterior of the hidden class over all records: one E-step of EM.

    With ``r_f`` the product of ``weights[f]`` and, over the observed variables of a record, of
    ``factors[start of the variable + level, f]``, and ``p`` the sum of ``r``, a record adds
    its weight times ``log p`` to the log-likelihood and its weight times ``r / p`` to the counts.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record, -1 where it is missing.
    weight : (M,) array of float, optional
        Weight of each record, not negative; one each by default.
    weights : (F,) array of float
        Weight of each class, not negative; need not sum to one.
    factors : (L, F) array of float
        ``P(level | class)`` of all variables, stacked; columns need not sum to one.
    levels : sequence of N int
        Number of levels of each variable; their sum is L.
    threads : int
        Threads of the compiled kernel. The result does not depend on it.

    Returns
    -------
    log_likelihood : float
        Sum of weighted ``log p``. It is ``-inf`` if a record of positive weight is possible in
        no class; such a record adds nothing to the counts.
    class_counts : (F,) array
        Expected number of records of each class.
    level_counts : (L, F) array
        Expected number of records of each class at each level.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> log_likelihood, classes, counts = class_pass(codes, None, np.array([0.5, 0.5]), A, [2])
    >>> round(log_likelihood, 3), classes.round(3)
    (-0.598, array([1.318, 0.682]))
    >>> counts.round(3)
    array([[0.818, 0.182],
           [0.   , 0.   ]])
    """
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if compiled is None:
        return numpy_class_pass(codes, weight, weights, factors, levels)
    counts = np.zeros((1 + len(factors), len(weights)))
    total = compiled.class_pass(*arrays, weight, weights, factors, shape, counts, threads)
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]


def class_posterior(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int], threads: int = 1
) -> tuple[Array, Array]:
    """Return the log-probability of each record and the posterior of its hidden class.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record, -1 where it is missing.
    weights : (F,) array of float
        Weight of each class, not negative; need not sum to one.
    factors : (L, F) array of float
        ``P(level | class)`` of all variables, stacked; columns need not sum to one.
    levels : sequence of N int
        Number of levels of each variable; their sum is L.
    threads : int
        Threads of the compiled kernel. The result does not depend on it.

    Returns
    -------
    log_prob : (M,) array
        ``-inf`` for a record that is possible in no class.
    posterior : (M, F) array
        Rows sum to one; that of an impossible record is zero.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> log_prob, posterior = class_posterior(codes, np.array([0.5, 0.5]), A, [2])
    >>> np.exp(log_prob).round(3), posterior.round(3)
    (array([0.55, 1.  ]), array([[0.818, 0.182], [0.5  , 0.5  ]]))
    """
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    if compiled is None:
        return numpy_class_posterior(codes, weights, factors, levels)
    log_prob, posterior = np.empty(len(codes)), np.empty((len(codes), len(weights)))
    if not compiled.class_posterior(*arrays, weights, factors, shape, log_prob, posterior, threads):
        raise ValueError(OUT_OF_RANGE)
    return log_prob, posterior


def class_log_prob(
    codes: AnyCodes, weights: Array, factors: Array, levels: Sequence[int], threads: int = 1
) -> Array:
    """Return the log-probability of each record: :func:`class_posterior` without the posteriors.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> np.exp(class_log_prob(codes, np.array([0.5, 0.5]), A, [2])).round(3)
    array([0.55, 1.  ])
    """
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    if compiled is None:
        return numpy_class_log_prob(codes, weights, factors, levels)
    log_prob = np.empty(len(codes))
    if not compiled.class_posterior(*arrays, weights, factors, shape, log_prob, None, threads):
        raise ValueError(OUT_OF_RANGE)
    return log_prob


class VariableGroups:
    """Variables in groups, each with one table of summed logarithms for all its cells.

    A record costs one look-up per group instead of one per variable. Level 0 of each variable
    stands for a missing value.

    Examples
    --------
    >>> groups = VariableGroups(np.ones((5, 1)), [2, 3], 100)
    >>> groups.members, groups.index(np.array([[1, -1], [0, 2]]), 0)
    ([[0, 1]], array([8, 7]))
    """

    def __init__(self, factors: Array, levels: Sequence[int], rows: int):
        self.starts = np.concatenate([[0], np.cumsum(levels)])
        self.levels = [int(n) for n in levels]
        self.members: list[list[int]] = []
        self.tables: list[Array] = []
        with np.errstate(divide="ignore"):
            logs = np.log(factors)
        most = min(GROUP_CELLS, rows // 8)
        for n in range(len(levels)):
            table = logs[self.starts[n] : self.starts[n + 1]]
            self._add(n, np.vstack([np.zeros(factors.shape[1]), table]), most)

    def _add(self, n: int, table: Array, cells: int) -> None:
        if self.tables and len(self.tables[-1]) * len(table) <= cells:
            joined = self.tables[-1][:, None, :] + table[None, :, :]
            self.tables[-1] = joined.reshape(-1, table.shape[1])
            self.members[-1].append(n)
        else:
            self.tables.append(table)
            self.members.append([n])

    def index(self, codes: NDArray[Any], group: int) -> NDArray[np.intp]:
        """Return the cell of each record in the table of a group."""
        index = np.zeros(len(codes), dtype=np.intp)
        for n in self.members[group]:
            index *= self.levels[n] + 1
            index += codes[:, n]
            index += 1
        return index

    def fold(self, sums: Sequence[Array], out: Array) -> None:
        """Sum tables of the groups down to the levels of each variable, which ``out`` stacks."""
        for members, table in zip(self.members, sums, strict=True):
            cube = table.reshape([*(self.levels[n] + 1 for n in members), table.shape[1]])
            for axis, n in enumerate(members):
                others = tuple(a for a in range(len(members)) if a != axis)
                out[self.starts[n] : self.starts[n + 1]] = cube.sum(axis=others)[1:]


def dense_blocks(
    codes: Codes, weights: Array, groups: VariableGroups
) -> Iterator[tuple[slice, list[NDArray[np.intp]], Array, Array]]:
    """Go through records by the block: rows, their cells, log-probabilities and posteriors.

    The posterior of a record that no class allows is zero.

    Examples
    --------
    >>> groups = VariableGroups(np.array([[0.9, 0.2], [0.1, 0.8]]), [2], 1)
    >>> [block] = dense_blocks(np.array([[0], [-1]]), np.array([0.5, 0.5]), groups)
    >>> np.exp(block[2]), block[3].round(3)
    (array([0.55, 1.  ]), array([[0.818, 0.182], [0.5  , 0.5  ]]))
    """
    with np.errstate(divide="ignore"):
        start = np.log(weights)
    for rows in _row_blocks(len(codes), len(weights)):
        cells = [groups.index(codes[rows], g) for g in range(len(groups.members))]
        joint = np.tile(start, (rows.stop - rows.start, 1))
        for table, index in zip(groups.tables, cells, strict=True):
            joint += table[index]
        yield rows, cells, *_normalize(joint)


def sparse_blocks(
    codes: SparseCodes, weights: Array, factors: Array
) -> Iterator[tuple[slice, Any, Array, Array]]:
    """Go through records by the block: rows, their one-hot matrix, log-probabilities, posteriors.

    Examples
    --------
    >>> codes = SparseCodes(np.array([0, 1, 1]), np.array([0]), (2,))
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> [block] = sparse_blocks(codes, np.array([0.5, 0.5]), A)
    >>> np.exp(block[2]), block[3].round(3)
    (array([0.55, 1.  ]), array([[0.818, 0.182], [0.5  , 0.5  ]]))
    """
    with np.errstate(divide="ignore"):
        logs, start = np.log(factors), np.log(weights)
    for rows in _row_blocks(len(codes), len(weights)):
        matrix = one_hot(codes, rows)
        yield rows, matrix, *_normalize(matrix @ logs + start)


def one_hot(codes: SparseCodes, rows: slice) -> Any:
    """Return records as a sparse matrix of ones, (records, levels).

    Examples
    --------
    >>> one_hot(SparseCodes(np.array([0, 1, 2]), np.array([1, 0]), (2,)), slice(0, 2)).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    from scipy.sparse import csr_array  # 0.1 s to import, and needed here alone

    first, last = int(codes.starts[rows.start]), int(codes.starts[rows.stop])
    shape = (rows.stop - rows.start, sum(codes.levels))
    starts = codes.starts[rows.start : rows.stop + 1] - first
    return csr_array((np.ones(last - first), codes.cells[first:last], starts), shape=shape)


def _row_blocks(records: int, rank: int) -> Iterator[slice]:
    size = max(1, BLOCK_ENTRIES // rank)
    for row in range(0, records, size):
        yield slice(row, min(row + size, records))


def _normalize(joint: Array) -> tuple[Array, Array]:
    """Log-probabilities and posteriors from logarithms of joint probabilities, in place."""
    top = joint.max(axis=1)
    possible = top > -np.inf
    joint -= np.where(possible, top, 0.0)[:, None]
    np.exp(joint, out=joint)
    sums = np.where(possible, joint.sum(axis=1), 1.0)
    joint /= sums[:, None]
    return top + np.log(sums), joint


def _any_blocks(
    codes: Codes | SparseCodes, weights: Array, factors: Array, levels: Sequence[int]
) -> Iterator[tuple[slice, Any, Array, Array]]:
    """The blocks of records in either form."""
    if isinstance(codes, SparseCodes):
        return sparse_blocks(codes, weights, factors)
    return dense_blocks(codes, weights, VariableGroups(factors, levels, len(codes)))


def sum_records(
    codes: Codes | SparseCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    assign: Callable[[Array, Array, int], Array],
) -> tuple[float, Array, Array]:
    """Count records by class and level, each assigned to classes by its posterior.

    ``assign`` gets posteriors, weights of records and the number of the first one; it returns
    how much of each record belongs to each class.

    Examples
    --------
    >>> codes = np.array([[0], [-1]], dtype=np.int16)
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> rounded = lambda posterior, mass, first: posterior.round()
    >>> sum_records(codes, None, np.array([0.6, 0.4]), A, [2], rounded)[2]
    array([[1., 0.],
           [0., 0.]])
    """
    total, class_counts = 0.0, np.zeros(len(weights))
    sums: _DenseSums | _SparseSums
    blocks: Iterator[tuple[slice, Any, Array, Array]]
    if isinstance(codes, SparseCodes):
        sums, blocks = _SparseSums(factors.shape), sparse_blocks(codes, weights, factors)
    else:
        groups = VariableGroups(factors, levels, len(codes))
        sums, blocks = _DenseSums(groups, factors.shape), dense_blocks(codes, weights, groups)
    for rows, cells, log_prob, posterior in blocks:
        mass = np.ones(len(log_prob)) if weight is None else weight[rows]
        total += float(np.dot(mass[mass > 0], log_prob[mass > 0]))
        assigned = assign(posterior, mass, rows.start)
        class_counts += assigned.sum(axis=0)
        sums.add(cells, assigned)
    return total, class_counts, sums.level_counts()


class _SparseSums:
    """Counts of levels, (L, F), by products with one-hot matrices."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.counts = np.zeros(shape)

    def add(self, matrix: Any, assigned: Array) -> None:
        self.counts += matrix.T @ assigned

    def level_counts(self) -> Array:
        return self.counts


class _DenseSums:
    """Counts of the cells of groups, by ``numpy.bincount``, which are folded to levels."""

    def __init__(self, groups: VariableGroups, shape: tuple[int, ...]) -> None:
        self.groups, self.shape = groups, shape
        self.tables = [np.zeros((shape[1], len(table))) for table in groups.tables]

    def add(self, cells: Sequence[NDArray[np.intp]], assigned: Array) -> None:
        columns = np.ascontiguousarray(assigned.T)
        for table, index in zip(self.tables, cells, strict=True):
            for f, column in enumerate(columns):
                table[f] += np.bincount(index, column, minlength=table.shape[1])

    def level_counts(self) -> Array:
        counts = np.zeros(self.shape)
        self.groups.fold([table.T for table in self.tables], counts)
        return counts


def numpy_class_pass(
    codes: Codes | SparseCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
) -> tuple[float, Array, Array]:
    """NumPy version of :func:`class_pass`."""

    def assign(posterior: Array, mass: Array, first: int) -> Array:
        posterior *= mass[:, None]
        return posterior

    return sum_records(codes, weight, weights, factors, levels, assign)


def numpy_class_posterior(
    codes: Codes | SparseCodes, weights: Array, factors: Array, levels: Sequence[int]
) -> tuple[Array, Array]:
    """NumPy version of :func:`class_posterior`."""
    log_prob, posterior = np.empty(len(codes)), np.empty((len(codes), len(weights)))
    for rows, _, logs, block in _any_blocks(codes, weights, factors, levels):
        log_prob[rows], posterior[rows] = logs, block
    return log_prob, posterior


def numpy_class_log_prob(
    codes: Codes | SparseCodes, weights: Array, factors: Array, levels: Sequence[int]
) -> Array:
    """NumPy version of :func:`class_log_prob`."""
    found = _any_blocks(codes, weights, factors, levels)
    return np.concatenate([np.empty(0), *(log_prob for _, _, log_prob, _ in found)])


Words = NDArray[np.uint64]
#: Expected draws of a class from which their number is drawn at once. Not a round number, which
#: rounding would take for more or less.
OFTEN = 12.345678
STREAM_STEP = np.uint64(0x9E3779B97F4A7C15)


def class_draws(
    codes: AnyCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
    threads: int = 1,
) -> tuple[float, Array, Array]:
    """Draw the hidden class of each record from its posterior and count: one Gibbs step.

    As :func:`class_pass`, but records are counted in the class drawn for them, so all counts are
    whole numbers. A record of weight ``k`` stands for ``k`` equal ones, each with its own draw; the
    number of a class that is expected often among them is drawn at once.

    Parameters
    ----------
    codes : (M, N) array of int8, int16 or int32, or SparseCodes
        Level of each variable in each record, -1 where it is missing.
    weight : (M,) array of float, optional
        How often each record occurs: whole numbers; one each by default.
    weights : (F,) array of float
        Weight of each class, not negative; need not sum to one.
    factors : (L, F) array of float
        ``P(level | class)`` of all variables, stacked; columns need not sum to one.
    levels : sequence of N int
        Number of levels of each variable; their sum is L.
    seed : int
        From 0 to 2**64 - 1. The result depends on it and the records, not on threads.
    threads : int
        Threads of the compiled kernel.

    Returns
    -------
    log_likelihood : float
        Sum of weighted log-probabilities, ``-inf`` if a record is possible in no class.
    class_counts : (F,) array
        Number of records drawn into each class. An impossible record is in none.
    level_counts : (L, F) array
        Number of records drawn into each class at each level.

    Examples
    --------
    >>> codes = np.array([[0], [1], [-1]], dtype=np.int16)
    >>> merged = np.array([1.0, 10.0, 1000.0])
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> _, classes, counts = class_draws(codes, merged, np.array([0.5, 0.5]), A, [2], seed=1)
    >>> counts
    array([[ 1.,  0.],
           [ 0., 10.]])
    >>> float(classes.sum())
    1011.0
    """
    arrays = arrays_of(codes, levels)
    weights, factors, shape = check_model(weights, factors, levels)
    weight = check_weight(weight, len(codes))
    if weight is not None and not (weight == np.floor(weight)).all():
        raise ValueError("weight must be whole numbers: each is a number of draws.")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must lie between 0 and 2**64 - 1, got {seed}.")
    if compiled is None:
        return numpy_class_draws(codes, weight, weights, factors, levels, seed)
    counts = np.zeros((1 + len(factors), len(weights)))
    total = compiled.class_draws(*arrays, weight, weights, factors, shape, counts, seed, threads)
    if total is None:
        raise ValueError(OUT_OF_RANGE)
    return float(total), counts[0], counts[1:]


def draw_levels(
    tree: Array, classes: NDArray[np.int64], uniform: Array, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Draw a level for each uniform number, from the cumulative probabilities of its class.

    The level is the number of cumulative probabilities that the uniform number reaches.

    Parameters
    ----------
    tree : (rows, F) array
        Cumulative probabilities, increasing down each column; the number of rows is a power of
        two, and those from the last level on are infinite.
    classes : (n,) array of int
        Class of each number: the column of the tree.
    uniform : (n,) array
        Numbers in [0, 1).
    out : (n,) array of int8, int16, int32 or int64, optional
        Where the levels are written; it may be a column of a table.

    Examples
    --------
    >>> tree = np.array([[0.5, np.inf], [np.inf, np.inf]])
    >>> draw_levels(tree, np.array([0, 1, 0]), np.array([0.6, 0.6, 0.4]))
    array([1, 0, 0])
    """
    tree = np.ascontiguousarray(tree, dtype=np.float64)
    classes = np.ascontiguousarray(classes, dtype=np.int64)
    uniform = np.ascontiguousarray(uniform, dtype=np.float64)
    out = np.empty(len(uniform), dtype=np.int64) if out is None else out
    rows, rank = tree.shape
    if rows & (rows - 1) or not rows:
        raise ValueError(f"The number of rows of tree must be a power of two, got {rows}.")
    if not len(uniform) == len(classes) == len(out):
        raise ValueError("classes, uniform and out must be equally long.")
    if out.dtype.kind == "i" and rows - 1 > np.iinfo(out.dtype).max:
        raise ValueError(f"out of type {out.dtype} cannot hold levels up to {rows - 1}.")
    if len(classes) and not 0 <= classes.min() <= classes.max() < rank:
        raise ValueError(f"classes must lie between 0 and {rank - 1}.")
    if compiled is not None and out.dtype in (*CODE_TYPES, np.int64):
        compiled.draw_levels(tree, classes, uniform, out)
        return out
    at, flat, step = classes.copy(), tree.ravel(), rows // 2
    while step:
        at += (step * rank) * (uniform >= flat[at + (step - 1) * rank])
        step //= 2
    out[:] = (at - classes) // rank
    return out


def _mix(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(seed: int, positions: NDArray[Any], numbers: NDArray[Any]) -> Array:
    """Return number ``numbers[i]`` (from 0) of the stream at ``positions[i]``, in [0, 1).

    Examples
    --------
    >>> uniforms(7, np.array([0, 0, 1]), np.array([0, 1, 0])).round(3)
    array([0.736, 0.929, 0.777])
    """
    start = _mix(np.array([seed], dtype=np.uint64))
    states = _mix(start + STREAM_STEP * (positions.astype(np.uint64) + np.uint64(1)))
    words = _mix(states + STREAM_STEP * (numbers.astype(np.uint64) + np.uint64(1)))
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


class UniformStream:
    """The uniform numbers of one position, one after another.

    Examples
    --------
    >>> stream = UniformStream(7, 1)
    >>> stream.next() == uniforms(7, np.array([1]), np.array([0]))[0]
    np.True_
    """

    def __init__(self, seed: int, position: int):
        self.seed, self.position = seed, np.array([position])
        self.numbers: list[float] = []
        self.used = 0

    def next(self) -> float:
        """Return the next number."""
        if self.used == len(self.numbers):
            ahead = np.arange(self.used, self.used + 64)
            self.numbers += uniforms(self.seed, self.position, ahead).tolist()
        self.used += 1
        return self.numbers[self.used - 1]


def _stirling_tail(k: float) -> float:
    """``log k!`` less ``(k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2``."""
    tail = 0.0
    while k < 15.0:
        tail += (k + 1.5) * log1p(1.0 / (k + 1.0)) - 1.0
        k += 1.0
    x = 1.0 / (k + 1.0)
    y = x * x
    return tail + x * (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y / 1680)))


def _few_successes(n: float, p: float, stream: UniformStream) -> float:
    """Go up the distribution."""
    odds = p / (1.0 - p)
    mass, u, k = exp(n * log1p(-p)), stream.next(), 0.0
    while u >= mass and k < n and mass > 2.0**-60:  # what is left of u then is rounding
        u -= mass
        k += 1.0
        mass *= odds * (n - k + 1.0) / k
    return k


def _many_successes(n: float, p: float, stream: UniformStream) -> float:
    """Transformed rejection (Hormann 1993, algorithm BTRS)."""
    spread, odds = sqrt(n * p * (1.0 - p)), p / (1.0 - p)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre, mode = n * p + 0.5, float(floor((n + 1.0) * p))
    alpha, sure = (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b
    at_mode = _stirling_tail(mode) + _stirling_tail(n - mode)
    while True:
        u, v = stream.next() - 0.5, stream.next()
        us = 0.5 - abs(u)
        if us == 0.0:
            continue
        k = float(floor((2.0 * a / us + b) * u + centre))
        if us >= 0.07 and v <= sure:
            return k
        if not 0.0 <= k <= n:
            continue
        bound = (
            (mode + 0.5) * log((mode + 1.0) / (odds * (n - mode + 1.0)))
            + (n + 1.0) * log((n - mode + 1.0) / (n - k + 1.0))
            + (k + 0.5) * log(odds * (n - k + 1.0) / (k + 1.0))
            + (at_mode - _stirling_tail(k) - _stirling_tail(n - k))
        )
        if v == 0.0 or log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def binomial(n: float, p: float, stream: UniformStream) -> float:
    """Draw the number of successes in ``n`` trials of probability ``p``.

    Examples
    --------
    >>> binomial(1000.0, 0.25, UniformStream(0, 0))
    256.0
    """
    if n <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    rarer = min(p, 1.0 - p)
    draw = _few_successes if n * rarer < 10.0 else _many_successes
    k = draw(n, rarer, stream)
    return n - k if p > 0.5 else k


def _draw_often(
    posterior: Array, often: NDArray[np.bool_], number: float, stream: UniformStream
) -> Array:
    """Numbers of the classes that are expected often among the draws of one record."""
    drawn = np.zeros(len(posterior))
    left = posterior[~often].sum() + np.cumsum(posterior[often][::-1])[::-1]
    for f, whole in zip(np.flatnonzero(often), left, strict=True):
        drawn[f] = binomial(number, float(posterior[f] / whole), stream)
        number -= drawn[f]
        if number <= 0:
            break
    return drawn


def draw_classes(posterior: Array, mass: Array, seed: int, first: int) -> Array:
    """Draw ``mass[i]`` classes from each row of posteriors; return how many are of each.

    The number of a class that is expected often is binomial; other draws go one by one.

    Examples
    --------
    >>> draw_classes(np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([2.0, 0.0]), 1, 0)
    array([[0., 2.],
           [0., 0.]])
    """
    possible = (posterior > 0.0).any(axis=1)
    mass = np.where(possible, mass, 0.0)
    drawn, used = np.zeros(posterior.shape), np.zeros(len(mass), dtype=np.intp)
    often = posterior * mass[:, None] >= OFTEN
    for i in np.flatnonzero(often.any(axis=1)):
        stream = UniformStream(seed, first + int(i))
        drawn[i] = _draw_often(posterior[i], often[i], float(mass[i]), stream)
        used[i] = stream.used
    rare = np.where(often, 0.0, posterior)
    cumulative = np.cumsum(rare, axis=1)
    last = rare.shape[1] - 1 - (rare[:, ::-1] > 0.0).argmax(axis=1)
    times = (mass - drawn.sum(axis=1)).astype(np.intp)
    rows = np.repeat(np.arange(len(mass)), times)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times - used, times)
    size = max(1, BLOCK_ENTRIES // posterior.shape[1])
    for start in range(0, len(rows), size):
        which = rows[start : start + size]
        u = uniforms(seed, first + which, numbers[start : start + size])
        table = cumulative[which]
        classes = (table <= (u * table[:, -1])[:, None]).sum(axis=1)
        # Beyond the last class that is possible by rounding alone.
        np.add.at(drawn, (which, np.minimum(classes, last[which])), 1.0)
    return drawn


def numpy_class_draws(
    codes: Codes | SparseCodes,
    weight: Array | None,
    weights: Array,
    factors: Array,
    levels: Sequence[int],
    seed: int,
) -> tuple[float, Array, Array]:
    """NumPy version of :func:`class_draws`."""

    def assign(posterior: Array, mass: Array, first: int) -> Array:
        return draw_classes(posterior, mass, seed, first)

    return sum_records(codes, weight, weights, factors, levels, assign)
