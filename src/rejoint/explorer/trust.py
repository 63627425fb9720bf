"""What speaks for a model and against it: fit to its records' tables, and what tables pin down."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import identifiability
from rejoint.marginals import Marginals
from rejoint.pmf import LowRankPMF
from rejoint.records import Scan
from rejoint.records.sparse import read_any

__all__ = ["pair_fit", "verdict"]

FloatArray = NDArray[np.float64]

_MOST_PARAMETERS = 1_500  # of the exact local test, which takes a second or so at that size


def pair_fit(
    pmf: LowRankPMF, data: Any, *, most: int = 2_000, listed: int = 30
) -> dict[str, Any] | None:
    """Tables of two variables in which model and records differ most.

    Parameters
    ----------
    pmf : LowRankPMF
    data : Records, SparseRecords, Scan, or anything that ``Records.of`` takes
    most : int
        Tables compared; drawn at random, always the same ones, where there are more.
    listed : int
        Tables in the answer, largest excess over chance first.

    Returns
    -------
    dict or None
        ``tables`` with names, total variation ``distance``, what ``chance`` alone would make of
        it, and number of ``records``; how many were ``checked`` of ``all``. None for less than
        two variables.

    Examples
    --------
    >>> import rejoint as rj
    >>> asia = rj.datasets.asia()
    >>> fit = pair_fit(asia, asia.sample(2_000, random_state=0))
    >>> fit["checked"], fit["tables"][0]["distance"] < 0.05
    (28, True)
    """
    records = data if isinstance(data, Scan) else read_any(data, domain=pmf.domain)
    pairs = list(combinations(range(len(pmf.domain)), 2))
    if not pairs:
        return None
    total = len(pairs)
    if total > most:
        chosen = np.random.default_rng(0).choice(total, most, replace=False)
        pairs = [pairs[i] for i in sorted(chosen)]
    names = pmf.domain.names
    counted = Marginals.count(records, subsets=[(names[i], names[j]) for i, j in pairs])
    tables = sorted(_compared(pmf, counted), key=lambda t: t["chance"] - t["distance"])
    return {"tables": tables[:listed], "checked": len(pairs), "all": total}


def _compared(pmf: LowRankPMF, counted: Marginals) -> Iterator[dict[str, Any]]:
    for names in counted.subsets:
        records = float(counted.total(*names))
        if records > 0:
            expected = pmf.marginal(names)
            seen = np.asarray(counted[names]) / records
            yield {
                "names": list(names),
                "distance": float(np.abs(seen - expected).sum() / 2),
                "chance": by_chance(expected, records),
                "records": records,
            }


def by_chance(table: FloatArray, records: float) -> float:
    """Mean total variation between a table and counts drawn from it, by the normal law.

    Examples
    --------
    >>> import numpy as np
    >>> rng, table = np.random.default_rng(0), np.array([0.1, 0.2, 0.7])
    >>> counts = rng.multinomial(500, table, size=4_000)
    >>> drawn = np.abs(counts / 500 - table).sum(axis=1).mean() / 2
    >>> bool(abs(by_chance(table, 500) / drawn - 1) < 0.05)
    True
    """
    return float(np.sqrt(2 / np.pi * table * (1 - table).clip(0) / records).sum() / 2)


def verdict(pmf: LowRankPMF) -> dict[str, Any] | None:
    """What all tables of three variables say about a model of this rank, in words.

    Examples
    --------
    >>> import rejoint as rj
    >>> verdict(rj.datasets.asia())["verdict"]
    'Rank 8 ...
    """
    if len(pmf.domain) < 3:
        return None
    report = identifiability.report(pmf.domain, order=3, rank=pmf.rank)
    details = []
    parameters = pmf.rank * sum(size - 1 for size in pmf.domain.shape) + pmf.rank - 1
    if parameters <= _MOST_PARAMETERS:
        details.append(identifiability.jacobian(at=pmf, order=3).verdict)
    return {"verdict": report.verdict, "details": details}
