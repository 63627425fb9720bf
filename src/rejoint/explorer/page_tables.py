"""The tables of a model as the page gets them, and ranges of its bars."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order
from rejoint.io.schema import SchemaError, list_of, number, pair_of
from rejoint.language.bind import BoundQuery
from rejoint.language.query import Name, Query
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.answer_basis import KnownTable, by_records
from rejoint.pmf.ask import answer_bound
from rejoint.pmf.given_tables import GivenTables
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.answer_bounds import AnswerBounds, bound_answers
from rejoint.queries.evidence import ZeroEvidenceError

FloatArray = NDArray[np.float64]
Likelihoods = Mapping[int, FloatArray]
Ranges = dict[str, dict[str, Any]]

#: Seconds of computing that the ranges in a page may take when it is made.
PAGE_SECONDS = 10.0

#: Variables of a table with unknown cells up to which its margins are looked through.
MOST_MARGIN_VARIABLES = 6


def page_tables(pmf: LowRankPMF, *, seconds: float = PAGE_SECONDS) -> dict[str, Any] | None:
    """Return the tables of a model as the page has them; None for a model from records.

    Parameters
    ----------
    pmf : LowRankPMF
    seconds : float
        Time for ranges; those that are not found by then are left out.

    Returns
    -------
    dict or None
        ``published``: positions of the variables of each set that is published together;
        ``identified``: the certificate or None; ``rank``; ``note``: what is to be said about all
        ranges; ``ranges``: by evidence (``""``, or position and level as ``"3=0"``), then by
        position of the variable, ``low`` and ``high`` of each level, and whether they are
        ``sharp``.

    Examples
    --------
    >>> import rejoint as rj
    >>> pairs = {("a", "b"): [[1, 2], [3, 4]], ("b", "c"): [[1, 3], [2, 4]]}
    >>> plain = page_tables(rj.factorize(rj.Marginals.from_tables(pairs)).pmf)
    >>> plain["published"], plain["ranges"]["2=0"]["0"]["high"]
    ([[0, 1], [1, 2]], [1.0, 1.0])
    """
    if pmf.tables is None:
        return None
    published = list_published(pmf)
    deadline = process_time() + seconds
    ranges, slack = _pair_ranges(pmf, published, deadline), 0.0
    if ranges is None:
        ranges, slack = _single_ranges(pmf, published, deadline)
    return {
        "published": [list(subset) for subset in published],
        "identified": pmf.tables.identified,
        "rank": pmf.mixture.rank,
        "note": describe_slack(pmf.tables, slack),
        "ranges": ranges,
    }


def list_published(pmf: LowRankPMF) -> list[tuple[int, ...]]:
    """Return the sets of variables of a model, by position, whose tables are published in full.

    Examples
    --------
    >>> import rejoint as rj
    >>> pairs = {("a", "b"): [[1, 2], [3, 4]], ("b", "c"): [[1, 3], [2, 4]]}
    >>> list_published(rj.factorize(rj.Marginals.from_tables(pairs)).pmf)
    [(0, 1), (1, 2)]
    """
    tables = pmf.tables
    if tables is None:
        return []
    place = {
        tables.domain.index(name): n for n, name in enumerate(pmf.domain.names)
    }  # of the tables' variables in the model
    found = []
    for subset in _known_subsets(tables):
        if set(tables.evidence) <= set(subset):
            found.append(tuple(sorted(place[n] for n in subset if n in place)))
    outer = [s for s in found if s and not any(set(s) < set(other) for other in found)]
    return list(dict.fromkeys(outer))


def _known_subsets(tables: GivenTables) -> Iterator[tuple[int, ...]]:
    """Yield the variables of tables, or margins, whose cells are known, most records first."""
    kept = tables.marginals
    if kept is None:
        yield from tables.subsets
        return
    for i in by_records(kept):
        subset = kept.index_subsets[i]
        if kept.unknown_of(i) is None:
            yield subset
        elif len(subset) <= MOST_MARGIN_VARIABLES:
            yield from _known_margins(kept, i)


def _known_margins(kept: Marginals, i: int) -> Iterator[tuple[int, ...]]:
    subset, table = kept.index_subsets[i], KnownTable.of(kept, i)
    for size in range(len(subset) - 1, 0, -1):
        for chosen in combinations(subset, size):
            levels = [np.eye(kept.domain.shape[n]) for n in chosen]
            cells = np.ndindex(*map(len, levels))
            if all(
                table.expect({n: eye[i] for n, eye, i in zip(chosen, levels, cell, strict=True)})
                is not None
                for cell in cells
            ):
                yield chosen


def _pair_ranges(
    pmf: LowRankPMF, published: Sequence[tuple[int, ...]], deadline: float
) -> Ranges | None:
    """Return the ranges by pairs of variables, where the tables are exact; None where not.

    The probability of a level is then one number, so that the range of a pair of levels is that of
    either given the other: half the programs, and larger ones, so that more ranges are sharp.
    """
    tables = pmf.tables
    kept = None if tables is None else tables.marginals
    if tables is None or kept is None or tables.evidence:
        return None
    if kept.noisy or kept.unknown is not None or kept.rounding.any():
        return None
    if len({n for subset in tables.subsets for n in subset}) < len(tables.domain):
        return None  # a variable that only moments speak of has no published shares
    ranges: Ranges = {}
    for a, b in combinations(range(len(pmf.domain)), 2):
        if any({a, b} <= set(subset) for subset in published) or process_time() > deadline:
            continue
        cells = [
            tables.vectors(pmf.domain, {a: row, b: column})
            for row in np.eye(pmf.domain.shape[a])
            for column in np.eye(pmf.domain.shape[b])
        ]
        bounds = bound_answers(kept, cells)
        if any(each.slack > 0 for each in bounds):
            return None  # they contradict each other: a level has no one probability
        low, high, sharp = _ends(bounds)
        shape = pmf.domain.shape[a], pmf.domain.shape[b]
        low, high = low.reshape(shape), high.reshape(shape)
        for n, m, ends in ((a, b, (low.T, high.T)), (b, a, (low, high))):
            given = _share(pmf, kept, m)
            for i in np.flatnonzero(given > 0):
                low_given, high_given = (np.clip(end[i] / given[i], 0.0, 1.0) for end in ends)
                found = _plain_range(low_given, high_given, sharp)
                ranges.setdefault(f"{m}={i}", {})[str(n)] = found
    return ranges


def _share(pmf: LowRankPMF, kept: Marginals, n: int) -> FloatArray:
    """Published shares of the levels of a variable of the model, in the order of the model."""
    name = pmf.domain.names[n]
    [order] = level_order(kept.domain.project([name]), pmf.domain.project([name]))
    return kept.marginal([name])[order]


def _single_ranges(
    pmf: LowRankPMF, published: Sequence[tuple[int, ...]], deadline: float
) -> tuple[Ranges, float]:
    """Return the ranges given each level by itself, and the slack."""
    ranges: Ranges = {}
    slack = 0.0
    for given in _single_levels(pmf):
        if process_time() > deadline:
            break
        found, own = bound_bars(pmf, given, published)
        slack = max(slack, own)
        if found:
            ranges[evidence_key(given)] = found
    return ranges, slack


def _single_levels(pmf: LowRankPMF) -> Iterator[Likelihoods]:
    """Yield no evidence, then each level of each variable."""
    yield {}
    for n, size in enumerate(pmf.domain.shape):
        for i in range(size):
            yield {n: np.eye(size)[i]}


def evidence_key(given: Likelihoods) -> str:
    """Return the key of evidence on at most one level, as the page makes it.

    Examples
    --------
    >>> evidence_key({}), evidence_key({3: np.array([0.0, 1.0])})
    ('', '3=1')
    """
    return "".join(f"{n}={int(vector.argmax())}" for n, vector in given.items())


def bound_bars(
    pmf: LowRankPMF, given: Likelihoods, published: Sequence[tuple[int, ...]]
) -> tuple[dict[str, Any], float]:
    """Return the ranges of all bars that are not published, given evidence, and the slack.

    Parameters
    ----------
    pmf : LowRankPMF
        A model from tables.
    given : mapping from int to array
        Likelihood of each level, by position of the variable.
    published : sequence of tuples of int
        What :func:`list_published` returns.

    Examples
    --------
    >>> import rejoint as rj
    >>> pairs = {("a", "b"): [[1, 2], [3, 4]], ("b", "c"): [[1, 3], [2, 4]]}
    >>> p = rj.factorize(rj.Marginals.from_tables(pairs)).pmf
    >>> bound_bars(p, {2: np.array([0.0, 1.0])}, list_published(p))[0]["0"]["high"]
    [0.428571429, 1.0]
    """
    tables = pmf.tables
    if tables is None or tables.marginals is None:
        return {}, 0.0
    asked = [
        n
        for n in range(len(pmf.domain))
        if not any({n, *given} <= set(subset) for subset in published)
        and not (n in given and np.count_nonzero(given[n]) == 1)
    ]
    cells = [(n, i) for n in asked for i in range(pmf.domain.shape[n])]
    own = tables.given(pmf.domain, given).evidence
    numerators = []
    for n, i in cells:
        [(m, level)] = tables.vectors(pmf.domain, {n: np.eye(pmf.domain.shape[n])[i]}).items()
        numerators.append({**own, m: own[m] * level if m in own else level})
    bounds = bound_answers(tables.marginals, numerators, own) if cells else []
    found: dict[str, Any] = {}
    for n in asked:
        each = [b for (m, _), b in zip(cells, bounds, strict=True) if m == n]
        if all(np.isfinite(b.low) for b in each):
            found[str(n)] = _plain_range(*_ends(each))
    return found, max((b.slack for b in bounds), default=0.0)


def count_bars(pmf: LowRankPMF, given: Likelihoods, *, seconds: float = 4.0) -> dict[str, Any]:
    """Return the bars of variables by counts and model together, given evidence.

    Variables for which the model answers alone, and those for which there is no time, are left out.

    Examples
    --------
    >>> import rejoint as rj
    >>> records = rj.datasets.asia().sample(1000, random_state=0)
    >>> result = rj.estimate(records, rank=2, solver="ml", random_state=0)
    >>> bars = count_bars(result.pmf.with_counts(result.counts), {1: np.array([1.0, 0.0])})
    >>> sorted(bars["0"])[:3], "1" in bars
    (['axes', 'counted', 'evidence'], False)
    """
    end, found = process_time() + seconds, dict[str, Any]()
    for n, name in enumerate(pmf.domain.names):
        if n in given or process_time() > end:
            continue
        texts = {m: pmf.domain.names[m] for m in given}
        query = Query("P", (Name(name),))
        bound = BoundQuery(query, str(query), (n,), (), (), {}, dict(given), texts, ())
        try:
            answer = answer_bound(pmf, bound)
        except ZeroEvidenceError:  # which the page says itself
            break
        if answer.counted is not None:
            found[str(n)] = answer.to_json()
    return found


def _ends(bounds: Sequence[AnswerBounds]) -> tuple[FloatArray, FloatArray, bool]:
    """Return the lower ends, the upper ends, and whether all are sharp."""
    low, high = np.array([(b.low, b.high) for b in bounds]).T
    return low, high, all(b.sharp for b in bounds)


def _plain_range(low: FloatArray, high: FloatArray, sharp: bool) -> dict[str, Any]:
    return {"low": low.round(9).tolist(), "high": high.round(9).tolist(), "sharp": sharp}


def describe_slack(tables: GivenTables, slack: float) -> str | None:
    """Describe by how much cells of tables may be off in ranges; None if they are met exactly.

    Examples
    --------
    >>> from rejoint import Domain
    >>> describe_slack(GivenTables(Domain.of({"a": 2}), ((0,),)), 0.0) is None
    True
    """
    if not slack > 0:
        return None
    return f"Cells of the tables may be off by {tables.describe_slack(slack)}."


def read_evidence_pairs(plain: Any, domain: Domain) -> dict[int, FloatArray] | None:
    """Return evidence that the page sent, by position of the variable; None if it is none.

    Examples
    --------
    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> read_evidence_pairs([[1, [1, 0]]], domain)
    {1: array([1., 0.])}
    >>> read_evidence_pairs([[7, [1, 0]]], domain) is None
    True
    """
    position, likelihoods = number(0, len(domain) - 1, whole=True), list_of(number(0.0, 1.0))
    try:
        pairs = list_of(pair_of(position, likelihoods))(plain, "the evidence")
    except SchemaError:
        return None
    if not all(len(vector) == domain.shape[n] and any(vector) for n, vector in pairs):
        return None
    return {n: np.array(vector, dtype=np.float64) for n, vector in pairs}
