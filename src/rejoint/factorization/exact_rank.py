"""The rank of exact tables, and the only model of that rank which meets them.

The tables of two variables with each of the others, side by side, are a matrix whose rank is at
most that of the model. Where a low rank meets the tables and is determined by them, that model is
the answer.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from rejoint.arrays import FloatArray, parts_of, sum_to
from rejoint.factorization.fit_tables import fit_tables
from rejoint.factorization.max_entropy import Subset
from rejoint.factorization.table_policy import POLICY
from rejoint.identifiability.certificate import certificate_of
from rejoint.marginals.marginals import Marginals
from rejoint.model import Layout
from rejoint.solver.result import FitResult
from rejoint.solver.session import Session


def fit_identified(marginals: Marginals, session: Session) -> FitResult | None:
    """Return the low-rank model that exact tables determine; None where there is none."""
    if marginals.unknown is not None or marginals.rounding.any() or marginals.moments:
        return None
    rank = exact_rank(marginals)
    if rank is None or rank < 2:
        return None
    # Without numbers of records the tables are exact: no stage ends where chance might be left.
    exact = replace(marginals, counted=np.zeros(len(marginals), dtype=bool))
    result = fit_tables(exact, rank, "auto", Session(session.rng, session.report), n_init=5)
    if max(result.misfits.values()) > POLICY.identified_met:
        return None
    certificate = certificate_of(result.pmf, marginals)
    if certificate is None:
        return None
    pmf = result.pmf.with_tables(marginals, certificate)
    return replace(result, pmf=pmf, choice=f"Rank {rank} meets the tables. {certificate}")


def exact_rank(marginals: Marginals) -> int | None:
    """Return the rank of the unfoldings of tables; None where they could be of any rank.

    The rank is the largest of the unfoldings of all pairs of variables. It says something where it
    is below what the sizes of the tables allow, and where a model of that rank has fewer parameters
    than the tables have independent numbers.
    """
    levels = marginals.domain.shape
    largest, possible = 0, 0
    for pair, parts in _unfold(marginals):
        columns = 1 + sum(prod(levels[n] - 1 for n in rest) for rest in parts)
        values = np.linalg.svd(np.hstack([*parts.values()]), compute_uv=False)
        rank = int((values > POLICY.rank_zero * values[0]).sum())
        most = min(prod(levels[n] for n in pair), columns)
        if (rank, most) > (largest, possible):
            largest, possible = rank, most
    sets = {part for subset in marginals.index_subsets for part in parts_of(subset)}
    equations = sum(prod(levels[n] - 1 for n in part) for part in sets)
    parameters = Layout(levels).parameters(max(largest, 1))
    return largest if 0 < largest < possible and parameters < equations else None


def _unfold(marginals: Marginals) -> Iterator[tuple[Subset, dict[Subset, FloatArray]]]:
    """For each pair of variables, tables of both with sets of others that a table holds."""
    unfoldings: dict[Subset, dict[Subset, FloatArray]] = {}
    for i, subset in enumerate(marginals.index_subsets):
        if len(subset) < 3 or marginals.table_weight[i] <= 0:
            continue
        for pair in combinations(subset, 2):
            for rest in parts_of([n for n in subset if n not in pair]):
                kept = tuple(n for n in subset if n in pair or n in rest)
                table = sum_to(marginals.shares(i), subset, kept)
                front = np.moveaxis(table, [kept.index(n) for n in pair], (0, 1))
                flat = front.reshape(front.shape[0] * front.shape[1], -1)
                unfoldings.setdefault(pair, {}).setdefault(rest, flat)
    yield from unfoldings.items()
