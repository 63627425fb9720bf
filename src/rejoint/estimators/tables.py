"""The fit from tables of records, and how many variables a table should hold."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rejoint import rank as ranks
from rejoint.factorization import factorize
from rejoint.factorization.groups import Subtables
from rejoint.factorization.setup import make_problem
from rejoint.marginals import Marginals
from rejoint.records.sparse import AnyRecords, SparseRecords
from rejoint.remarks import remark
from rejoint.solver import FitResult

__all__ = ["choose_order", "fit_tables"]

#: Records per cell from which tables of four variables are filled well enough to be used.
FILLED = 5.0


def fit_tables(
    records: AnyRecords,
    rank: int | Literal["auto"],
    solver: Any,
    order: int | Literal["auto"],
    n_init: int,
    rng: np.random.Generator,
) -> FitResult:
    """Count tables and factor them; what was chosen and why is in ``choice``."""
    said = []
    if rank == "auto":
        selection = ranks.select(records, random_state=rng)
        rank, said = selection.rank, [selection.words]
    if order == "auto":
        order, why = choose_order(records, rank)
        said.append(why)
    tables = count_filled(records, order)
    result = factorize(tables, rank, solver, n_init=n_init, weighting="count", random_state=rng)
    return replace(result, choice=" ".join(said), log_likelihood=log_likelihood(records, result))


def choose_order(records: AnyRecords, rank: int) -> tuple[int, str]:
    """Three variables a table, four where the rank needs it and the tables would be filled.

    Pairs never determine the hidden classes; larger tables say more of them but hold fewer
    records in each cell.

    Examples
    --------
    >>> import rejoint as rj
    >>> choose_order(rj.datasets.asia().sample(100, random_state=0), 2)[0]
    3
    """
    shape = sorted(records.domain.shape)
    if len(shape) < 4:
        order = len(shape)
        return order, f"Tables of all {order} variables." if order > 1 else "One table."
    triples = count_filled(records, 3)
    subtables = Subtables(make_problem(triples, "equal"))
    carried = max(subtables.largest_rank(pairs=pairs) for pairs in (False, True))
    if rank <= carried:
        return 3, f"Tables of three variables: they determine {carried} classes."
    cells = float(np.prod(shape[-4:]))
    filled = mean_weight(records) * observed_share(records) ** 4 * len(records) / cells
    if filled < FILLED:
        return 3, (
            f"Tables of three variables, although they are only known to determine {carried} "
            f"classes: those of four would have {filled:.2g} records a cell."
        )
    return 4, (
        f"Tables of four variables: those of three are only known to determine {carried} "
        f"classes, and these have {filled:.2g} records a cell."
    )


def observed_share(records: AnyRecords) -> float:
    """Cells that are observed, out of all."""
    if isinstance(records, SparseRecords):
        return records.codes.size / max(len(records) * len(records.domain), 1)
    return float((records.codes >= 0).mean())


def mean_weight(records: AnyRecords) -> float:
    """Average weight of a record."""
    weight = records.sample_weight
    return 1.0 if weight is None else float(weight.mean())


def count_filled(records: AnyRecords, order: int) -> Marginals:
    """All tables of an order, but for those that no record fills; these are said."""
    tables = Marginals.count(records, order=order)
    there = np.asarray(tables.totals) > 0
    if there.all():
        return tables
    remark(
        f"{int((~there).sum()):,} of {len(there):,} tables of {order} variables have no record "
        "that holds them all: they are left out."
    )
    kept = [subset for subset, full in zip(tables.subsets, there, strict=True) if full]
    return Marginals.count(records, subsets=kept)


def log_likelihood(records: AnyRecords, result: FitResult) -> float:
    """Log-likelihood of the records under the model found."""
    logs = result.pmf.log_prob(records)
    weight = records.sample_weight
    return float(logs.sum() if weight is None else logs[weight > 0] @ weight[weight > 0])
