"""The constructive proof as an algorithm: a virtual tensor, an eigenvalue problem, no iteration.

As in the proofs of Theorems 1-3, the variables are put into three groups whose factors are
stacked; the tables across the groups form one tensor ``T = [w; A_1, A_2, A_3]`` of stacked
factors. Where the first two have full column rank F, their modes are compressed to F by SVD and
every slab becomes ``P diag(w a) Q^T``: slabs share their eigenvectors, which give the stacked
factor of group 1 up to scale, and each variable's block of rows sums to one, which fixes the
scale. Least squares gives the rest, variables outside the three groups included, as long as
they share a table with known ones.

With sampled tables the slabs share eigenvectors only roughly. Several partitions and several
random combinations of slabs are tried and the model that fits the tables best is kept.

The first group may be made of single variables (tables of order 3) or of pairs (order 4: the
Khatri-Rao structure of Theorem 3 gives it many more rows). A stacked factor of group ``S`` has
rank at most ``d = sum (I_n - 1) + 1`` (each block of rows sums to one), one of pairs
``D_2 = 1 + e_1 + e_2`` of the ``I_n - 1``: see the notes on the proofs in the documentation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np

from rejoint.arrays import FloatArray, parts_of, sum_to
from rejoint.factorization.problem import TableProblem, weights_update
from rejoint.factorization.table_policy import POLICY
from rejoint.kernels import project_columns
from rejoint.model import Model
from rejoint.queries.tables import khatri_rao
from rejoint.solver.solver import Limits

Block = tuple[int, ...]


@dataclass(frozen=True)
class ModeBlocks:
    """Blocks of the three stacked modes: each block is one variable or a pair of them."""

    first: tuple[Block, ...]
    second: tuple[Block, ...]
    third: tuple[Block, ...]

    @property
    def modes(self) -> tuple[tuple[Block, ...], ...]:
        """The three lists of blocks."""
        return self.first, self.second, self.third


class Subtables:
    """Finds the table of any subset that is contained in a given table, and sums down to it."""

    def __init__(self, problem: TableProblem) -> None:
        self.problem = problem
        self.best: dict[bool, ModeBlocks] = {}
        self.owner: dict[frozenset[int], int] = {}
        for i, subset in enumerate(problem.subsets):
            for part in parts_of(subset, 4):
                self.owner.setdefault(frozenset(part), i)

    def __contains__(self, names: Iterable[int]) -> bool:
        return frozenset(names) in self.owner

    def table(self, variables: Sequence[int]) -> FloatArray:
        """The table over ``variables``, axes in that order."""
        index = self.owner[frozenset(variables)]
        subset = self.problem.subsets[index]
        summed = sum_to(self.problem.tables[index], subset, variables)
        left = [n for n in subset if n in variables]
        return np.transpose(summed, [left.index(n) for n in variables])

    def best_groups(self, *, pairs: bool) -> ModeBlocks:
        """The partition that carries the largest rank, of all that were tried."""
        if pairs not in self.best:
            self.best[pairs] = search_groups(self, pairs)
        return self.best[pairs]

    def largest_rank(self, *, pairs: bool) -> int:
        """Largest rank that a partition carries; 0 if there is no table for one."""
        size, levels = (4 if pairs else 3), self.problem.levels
        if not any(len(s) == size and all(levels[n] > 1 for n in s) for s in self.owner):
            return 0
        return carried_rank(levels, self.best_groups(pairs=pairs))


def stacked_rank(levels: Sequence[int], variables: Sequence[int], pairs: bool) -> int:
    """Largest rank of a group's stacked factor: ``d``, or ``D_2`` when made of pairs."""
    free = [levels[n] - 1 for n in variables]
    rank = 1 + sum(free)
    return rank + sum(a * b for a, b in combinations(free, 2)) if pairs else rank


def grow_groups(
    subtables: Subtables,
    rank: int,
    order: Sequence[int],
    slack: float,
    *,
    pairs: bool,
) -> ModeBlocks:
    """Put variables, in order, into the weaker of the first two groups, else into the third.

    The rows of a stacked mode are bounded; what is left out is added by least squares.
    """
    levels = subtables.problem.levels
    groups = find_seed(subtables, order, pairs)
    first, second, third = groups
    for n in order:
        if any(n in group for group in groups):
            continue
        carried = [stacked_rank(levels, first, pairs), stacked_rank(levels, second, False)]
        sides = [(carried[0], first), (carried[1], second)]
        wanted = [group for size, group in sorted(sides, key=lambda s: s[0]) if size < slack * rank]
        for group in [*wanted, third]:
            rows = sum(levels[m] for m in group) + levels[n]
            if rows <= max(POLICY.mode_rows, 2 * rank) and joins(
                subtables, n, group, groups, pairs
            ):
                group.append(n)
                break
    heads = combinations(sorted(first), 2) if pairs else ((n,) for n in first)
    return ModeBlocks(tuple(heads), tuple((n,) for n in second), tuple((n,) for n in third))


def find_seed(
    subtables: Subtables, order: Sequence[int], pairs: bool
) -> tuple[list[int], list[int], list[int]]:
    """The first triple (or quadruple) in the given order that has a table."""
    place = {n: k for k, n in enumerate(order)}
    size = 4 if pairs else 3
    candidates = [s for s in subtables.owner if len(s) == size and s <= place.keys()]
    ranks = min(sorted(place[n] for n in s) for s in candidates)
    chosen = [order[k] for k in ranks]
    return chosen[:-2], [chosen[-2]], [chosen[-1]]


def joins(
    subtables: Subtables,
    n: int,
    group: list[int],
    groups: tuple[list[int], list[int], list[int]],
    pairs: bool,
) -> bool:
    """Whether every table across the groups that ``n`` would bring into ``group`` is there."""
    first, second, third = ([n] if g is group else g for g in groups)
    heads: Iterable[tuple[int, ...]] = ((m,) for m in first)
    if pairs:
        heads = ((m, n) for m in group) if group is groups[0] else combinations(first, 2)
    return all((*head, b, c) in subtables for head, b, c in product(heads, second, third))


def carried_rank(levels: Sequence[int], groups: ModeBlocks) -> int:
    """Largest rank for which both compressed modes can have full column rank."""
    pairs = len(groups.first[0]) == 2
    first = sorted({n for block in groups.first for n in block})
    second = [block[0] for block in groups.second]
    return min(stacked_rank(levels, first, pairs), stacked_rank(levels, second, False))


def search_groups(subtables: Subtables, pairs: bool) -> ModeBlocks:
    """Try many partitions, orderly and random ones, for the largest rank."""
    levels = subtables.problem.levels
    rng = np.random.default_rng(0)
    usable = [n for n in range(len(levels)) if levels[n] > 1]
    down = sorted(usable, key=lambda n: -levels[n])
    orders = [rng.permutation(usable).tolist() for _ in range(POLICY.tried_orders)]
    for third in down[:50]:
        # Large variables first into the weaker side balance the two; pairs need few of them.
        rest = [n for n in down if n != third]
        ahead = [*rest[-2:], rest[0]] if pairs else rest[:2]
        orders.append([*ahead, third, *(n for n in rest if n not in ahead)])
    everything = sum(levels) ** 2
    drawn = [grow_groups(subtables, everything, order, np.inf, pairs=pairs) for order in orders]
    return max(drawn, key=lambda groups: carried_rank(levels, groups))


def virtual_tensor(subtables: Subtables, groups: ModeBlocks) -> FloatArray:
    """The tables across the groups set into one tensor, (L_1, L_2, L_3)."""
    levels = subtables.problem.levels
    sides = [[int(np.prod([levels[n] for n in block])) for block in mode] for mode in groups.modes]
    starts = [np.concatenate([[0], np.cumsum(side)]) for side in sides]
    tensor = np.empty([int(start[-1]) for start in starts])
    for place in product(*(range(len(mode)) for mode in groups.modes)):
        blocks = [mode[k] for mode, k in zip(groups.modes, place, strict=True)]
        shape = [side[k] for side, k in zip(sides, place, strict=True)]
        where = tuple(slice(s[k], s[k + 1]) for s, k in zip(starts, place, strict=True))
        tensor[where] = subtables.table([n for block in blocks for n in block]).reshape(shape)
    return tensor


Factors = dict[int, FloatArray]


@dataclass(frozen=True)
class AlgebraicState:
    """The best model so far and the source of the next partition."""

    model: Model
    objective: float
    residual: float
    subtables: Subtables = field(repr=False)
    rng: np.random.Generator = field(repr=False)


@dataclass(frozen=True)
class Algebraic:
    """Recovery by an eigenvalue problem; each step tries one more partition of the variables.

    Parameters
    ----------
    combinations : int
        Random combinations of slabs tried for each partition.
    seed : int
        Seed of partitions and combinations.
    limits : Limits
        When to stop: ``max_steps`` partitions, or one that fits exactly.

    Examples
    --------
    >>> import rejoint as rj
    >>> model = rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]]] * 3)
    >>> tables = rj.Marginals.from_pmf(model, order=3)
    >>> result = rj.factorize(tables, rank=2, solver=Algebraic())
    >>> rj.metrics.factor_error(model, result.pmf) < 1e-12
    True
    """

    combinations: int = 4
    seed: int = 0
    limits: Limits = field(default=Limits(max_steps=6, window=6, progress=0.0))
    name: str = field(default="algebraic", init=False)
    needs = ("tables",)
    deterministic = True  # whatever the start, so that one is enough

    def init(self, problem: TableProblem, model: Model) -> AlgebraicState:
        """Check that the rank can be done at all."""
        subtables = Subtables(problem)
        check_rank(subtables, model.rank)
        rng = np.random.default_rng(self.seed)
        return AlgebraicState(model, problem.value(model), np.inf, subtables, rng)

    def step(self, problem: TableProblem, state: AlgebraicState) -> AlgebraicState:
        """Solve for one random partition; keep the model if it fits better."""
        rank = state.model.rank
        pairs = state.subtables.largest_rank(pairs=False) < rank
        usable = [n for n, size in enumerate(problem.levels) if size > 1]
        order = state.rng.permutation(usable).tolist()
        # With noisy tables it is not known whether longer sides or more slabs help.
        slack = float(state.rng.choice([1.0, 1.5, np.inf]))
        groups = grow_groups(state.subtables, rank, order, slack, pairs=pairs)
        if carried_rank(problem.levels, groups) < rank:
            groups = state.subtables.best_groups(pairs=pairs)
        for model in self.solve(state.subtables, groups, rank, state.rng):
            value = problem.value(model)
            if value < state.objective:
                state = replace(state, model=model, objective=value)
        return replace(state)

    def solve(
        self, subtables: Subtables, groups: ModeBlocks, rank: int, rng: np.random.Generator
    ) -> list[Model]:
        """Models of one partition, one for each random combination of slabs."""
        tensor = virtual_tensor(subtables, groups)
        basis, core = compress(tensor, rank)
        models = []
        for _ in range(self.combinations):
            stacked = basis @ shared_eigenvectors(core, rng)
            factors = read_factors(subtables.problem, groups.first, stacked)
            factors, weights = complete_groups(subtables.problem, groups, tensor, factors)
            attach_rest(subtables, factors, weights)
            models.append(polish_weights(subtables.problem, factors, weights))
        return models


def check_rank(subtables: Subtables, rank: int) -> None:
    """Refuse a rank that no partition can carry, and name the largest that one can."""
    best = max(subtables.largest_rank(pairs=False), subtables.largest_rank(pairs=True))
    if best == 0:
        raise ValueError(
            "solver='algebraic' needs tables of at least three variables with two levels or more; "
            "the largest table given has fewer. Give triples, or use solver='auto'."
        )
    if rank > best:
        raise ValueError(
            f"solver='algebraic' supports at most rank {best} with these tables, got rank "
            f"{rank}: it found no partition of the variables into three groups of which two have "
            "stacked factors that can have full column rank. Use solver='auto' or 'admm', a "
            "lower rank, or tables of more variables."
        )


def compress(tensor: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Basis of the first mode (L_1, F), and the tensor with two modes compressed (F, F, L_3)."""
    first = np.linalg.svd(tensor.reshape(len(tensor), -1), full_matrices=False)[0][:, :rank]
    turned = tensor.transpose(1, 0, 2).reshape(tensor.shape[1], -1)
    second = np.linalg.svd(turned, full_matrices=False)[0][:, :rank]
    return first, np.einsum("ap,abc,bq->pqc", first, tensor, second, optimize=True)


def shared_eigenvectors(core: FloatArray, rng: np.random.Generator) -> FloatArray:
    """``P`` (F, F), up to the scale of its columns, from one random combination of slabs.

    The sum of all slabs is ``P diag(w) Q^T`` times the number of variables, with positive
    weights: the best conditioned one to divide by. Noise can make a pair of eigenvalues
    complex; their real parts are then as good a guess as any.
    """
    pencil = core @ rng.standard_normal(core.shape[2])
    ratio = np.linalg.lstsq(core.sum(axis=2).T, pencil.T, rcond=None)[0].T
    return np.real(np.linalg.eig(ratio)[1])


def read_factors(problem: TableProblem, blocks: tuple[Block, ...], stacked: FloatArray) -> Factors:
    """Scale every block's columns to sum to one; sum pairs down to single variables."""
    parts: dict[int, list[FloatArray]] = {}
    start = 0
    for block in blocks:
        shape = [problem.levels[n] for n in block]
        rows = stacked[start : start + int(np.prod(shape))]
        start += len(rows)
        total = rows.sum(axis=0)
        rows = rows / np.where(np.abs(total) < 1e-12, 1e-12, total)
        for axis, n in enumerate(block):
            others = tuple(k for k in range(len(block)) if k != axis)
            parts.setdefault(n, []).append(rows.reshape(*shape, -1).sum(axis=others))
    # Far outside the simplex only the direction matters; clipping keeps the projection exact.
    return {n: project_columns(np.clip(np.mean(p, axis=0), -10, 10)) for n, p in parts.items()}


def complete_groups(
    problem: TableProblem, groups: ModeBlocks, tensor: FloatArray, factors: Factors
) -> tuple[Factors, FloatArray]:
    """Factors of the other two groups, and the weights.

    The rows of ``pinv(A_1) T`` are ``w_f a_2f o a_3f``; summed over one group's rows they give
    the other's.
    """
    one = np.ones(next(iter(factors.values())).shape[1])
    stacked = np.vstack([khatri_rao([factors[n] for n in block], one) for block in groups.first])
    rest = np.linalg.lstsq(stacked, tensor.reshape(len(tensor), -1), rcond=None)[0]
    rest = rest.reshape(-1, *tensor.shape[1:])
    factors = factors | read_factors(problem, groups.second, rest.sum(axis=2).T)
    factors = factors | read_factors(problem, groups.third, rest.sum(axis=1).T)
    mass = rest.sum(axis=(1, 2)) / (len(groups.second) * len(groups.third))
    return factors, project_columns(mass[:, None])[:, 0]


def attach_rest(subtables: Subtables, factors: Factors, weights: FloatArray) -> None:
    """Find the factors of all other variables from tables they share with known ones.

    ``X = A_n (Q diag(w))^T`` is linear in ``A_n``; the variable whose ``Q`` has the highest rank
    goes first.
    """
    problem = subtables.problem
    while missing := [n for n in range(len(problem.levels)) if n not in factors]:
        solved = {n: solve_one(subtables, factors, weights, n) for n in missing}
        rank = max(reached for reached, _ in solved.values())
        factors |= {n: factor for n, (reached, factor) in solved.items() if reached == rank}


def solve_one(
    subtables: Subtables, factors: Factors, weights: FloatArray, n: int
) -> tuple[int, FloatArray]:
    """Least-squares factor of variable ``n`` given known ones, and the rank of the system."""
    problem, rank = subtables.problem, len(weights)
    sides, designs = [], []
    for subset in (problem.subsets[i] for i in problem.tables_with[n]):
        # Three known ones are enough to tell classes apart, and bound the size of a table.
        others = [m for m in subset if m in factors][:3]
        if others:
            sides.append(subtables.table([n, *others]).reshape(problem.levels[n], -1))
            designs.append(khatri_rao([factors[m] for m in others], weights))
    if not designs:
        return -1, np.full((problem.levels[n], rank), 1.0 / problem.levels[n])
    factor, _, reached, _ = np.linalg.lstsq(np.vstack(designs), np.hstack(sides).T, rcond=1e-10)
    return int(reached), project_columns(np.asarray(factor.T, dtype=np.float64))


def polish_weights(problem: TableProblem, factors: Factors, weights: FloatArray) -> Model:
    """Stack the factors and fit the weights to all tables."""
    stacked = np.vstack([factors[n] for n in range(len(problem.levels))])
    normal = problem.visit(weights, stacked).weights_normal()
    return Model(
        problem.layout, weights_update(*normal, weights, np.zeros_like(weights), 200)[0], stacked
    )
