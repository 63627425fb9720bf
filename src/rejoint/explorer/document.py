"""The document of the page: a model, and what else is known about it, as JSON."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import is_number
from rejoint.estimation.pair_shift import rake_table
from rejoint.estimation.part_summary import summarize
from rejoint.estimation.policy import DEFAULT
from rejoint.explorer.page_tables import page_tables
from rejoint.explorer.table_as_read import plain_as_read
from rejoint.factorization.complete_approximately import compact_completion
from rejoint.identifiability.model_verdict import model_verdict
from rejoint.io.model_file import SavedEnsemble, SavedEstimator
from rejoint.marginals.compare import Fits, expected_distance
from rejoint.marginals.marginals import Marginals
from rejoint.model import Layout, Model
from rejoint.pmf.compact import compact
from rejoint.pmf.draws import Draws
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.mixture import BlockLayout, Mixture
from rejoint.records.records import Records
from rejoint.records.scan import Scan
from rejoint.records.sparse import as_records
from rejoint.solver.session import report_nothing


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
    records = _held(data) if isinstance(data, Scan) else as_records(data, domain=pmf.domain)
    pairs = list(combinations(range(len(pmf.domain)), 2))
    if not pairs:
        return None
    total = len(pairs)
    if total > most:
        chosen = np.random.default_rng(0).choice(total, most, replace=False)
        pairs = [pairs[i] for i in sorted(chosen)]
    tables = sorted(_compared(pmf, records, pairs), key=excess, reverse=True)
    return {"tables": tables[:listed], "checked": len(pairs), "all": total}


def table_fit(marginals: Marginals, fits: Fits, *, listed: int = 30) -> dict[str, Any]:
    """Tables that a model meets worst, in the order in which `pair_fit` lists those of records.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.from_pmf(rj.datasets.asia(), order=2)
    >>> table_fit(tables, tables.compare(rj.datasets.asia()))["checked"]
    28
    """
    tables = [
        {
            "names": list(fit.names),
            "distance": fit.distance,
            "chance": None if isnan(fit.chance) else fit.chance,
            "records": float(marginals.total(*fit.names)),
        }
        for fit in fits
    ]
    worst = sorted(tables, key=excess, reverse=True)[:listed]
    return {"tables": worst, "checked": len(fits), "all": len(fits)}


def excess(table: Mapping[str, Any]) -> float:
    """How much further a table is from the model's than chance explains, where that is known.

    Examples
    --------
    >>> excess({"distance": 0.25, "chance": 0.125}), excess({"distance": 0.25, "chance": None})
    (0.125, 0.25)
    """
    return float(table["distance"] - (table["chance"] or 0.0))


def _held(scan: Scan) -> Any:
    """The records of a scan as a fit has them: in memory, where they fit."""
    found = summarize(scan, 0, report_nothing, DEFAULT).records
    return scan if found is None else found


def _compared(
    pmf: LowRankPMF, records: Any, pairs: Sequence[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """Compare tables over the records that hold both variables, whose margins the model takes."""
    subsets = [(pmf.domain.names[i], pmf.domain.names[j]) for i, j in pairs]
    counted = Marginals.count(records, subsets=subsets)
    for k, names in enumerate(subsets):
        number, seen = float(counted.totals[k]), counted.shares(k)
        if number > 0:
            expected = rake_table(pmf.marginal(names), seen)
            yield {
                "names": list(names),
                "distance": float(np.abs(seen - expected).sum() / 2),
                "chance": expected_distance(expected, number),
                "records": number,
            }


def verdict(pmf: LowRankPMF) -> dict[str, Any] | None:
    """Whether tables determine a model, in words; :func:`rejoint.identifiability.model_verdict`.

    Examples
    --------
    >>> import rejoint as rj
    >>> verdict(rj.datasets.asia())["question"]
    'Could another model of the same rank have all tables of three variables?'
    """
    found = model_verdict(pmf)
    if found is None:
        return None
    return {"question": found.question, "verdict": found.verdict, "details": list(found.details)}


FORMAT = "rejoint.explorer"
SCHEMA = 3
"""Version of the document; a page reads this one and earlier ones."""

#: Classes that a page answers by at the most: its bars then take a few milliseconds, and 200
#: variables of three levels 2.4 MB.
PAGE_CLASSES = 500

#: What places a new user of a recommender.
PLACING_ARRAYS = (
    *("choice_items", "choice_precision", "choice_offsets"),
    *("rating_items", "rating_precision", "rating_variance", "rating_values", "rating_use"),
)

_MOST_CELLS = 4_000_000  # of records in a page: 8 MB of codes


def document(
    pmf: LowRankPMF,
    *,
    title: str = "Model",
    source: str | None = None,
    records: Any = None,
    record_count: float | None = None,
    class_names: Sequence[str] | None = None,
    fit: dict[str, Any] | None = None,
    verdict: dict[str, Any] | None = None,
    note: str | None = None,
    target: Any = None,
    ensemble: SavedEnsemble | None = None,
    estimator: SavedEstimator | None = None,
    table_notes: Any = None,
    report: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything that the page shows, as plain lists and dicts that JSON can hold.

    Parameters
    ----------
    pmf : LowRankPMF
        The model. Its mixture answers, its posterior draws give the bars their intervals, and its
        own classes are those that the page shows and names.
    title, source : str, optional
        What the page calls the model, and the file that copied commands name.
    records : Records or anything that ``Records.of`` takes, optional
        Counted for the support of the evidence and stepped through. They become part of the page.
    record_count : float, optional
        Number of records behind the model, where the records themselves shall not be in the page.
    class_names : sequence of str, optional
        Names of the classes.
    fit, verdict : dict, optional
        What :mod:`rejoint.explorer.document` makes.
    note : str, optional
        A sentence about how the model came to be.
    target : str or list of str, optional
        The variable that the page takes for the target at first.
    ensemble : SavedEnsemble, optional
        The models of a classifier, which predict the targets; see :func:`plain_ensemble`.
    estimator : SavedEstimator, optional
        The imputer or recommender of the file, whose joint model this is. A recommender answers
        what is asked for somebody with some ratings.
    table_notes : list of dict, optional
        What the notes of the model's file say about the tables that it was fitted to.
    report : dict, optional
        What the print view shows besides; the page is that view then, without draws and ranges.

    Returns
    -------
    dict

    Examples
    --------
    >>> import rejoint as rj
    >>> plain = document(rj.datasets.asia(), title="Asia")
    >>> plain["title"], plain["variables"][0]["labels"]
    ('Asia', ['yes', 'no'])
    """
    whole, limited = pmf, pmf.mixture.rank > PAGE_CLASSES
    if limited:
        pmf = compact_answer(pmf)
        note = " ".join(filter(None, [note, describe_limit(whole)]))
        class_names = class_names if pmf.rank == whole.rank else None
    plain: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "title": title,
        "source": source,
        "variables": _variables(pmf.domain),
        **_joint(pmf),
    }
    extras = {
        "record_count": record_count,
        "records": None if records is None else _records(Records.of(records, domain=pmf.domain)),
        "mixture": None if pmf.mixture is pmf else _joint(pmf.mixture),
        **(_draws(pmf.draws) if report is None else {}),
        "class_names": None if class_names is None else list(class_names),
        "tables": page_tables(whole) if report is None else None,
        "given": plain_as_read(whole, table_notes),
        "gaps": [{"names": gap.names, "text": gap.text} for gap in pmf.gaps] or None,
        "fit": fit,
        "identifiability": verdict,
        "note": note,
        "target": target,
        "ensemble": None if ensemble is None else plain_ensemble(ensemble),
        "is_estimator": estimator is not None or None,
        "recommender": None if estimator is None else plain_recommender(estimator),
        "report": report,
    }
    return plain | {name: value for name, value in extras.items() if value is not None}


def compact_answer(pmf: LowRankPMF) -> LowRankPMF:
    """The model with a mixture of at most `PAGE_CLASSES`, as a page has it.

    Examples
    --------
    >>> import numpy as np, rejoint as rj
    >>> rng = np.random.default_rng(0)
    >>> wide = rj.LowRankPMF(np.full(600, 1 / 600), [rng.dirichlet([1, 1], 600).T] * 3)
    >>> compact_answer(wide).rank
    500
    """
    if pmf.mixture.rank <= PAGE_CLASSES:
        return pmf
    parts = pmf.mixture._parts
    layout = Layout((*pmf.domain.shape, *(block.layout.size for block in parts.blocks)))
    model = Model(layout, parts.weights, parts.stacked[1:])
    subsets = _given_subsets(pmf)
    if subsets:
        few = compact_completion(model, subsets, PAGE_CLASSES)
    else:
        few = compact([model], model, PAGE_CLASSES)
    layouts, tables = [block.layout for block in parts.blocks], pmf.tables
    merged = Mixture.from_stacked(few.stacked, pmf.domain.shape, layouts)
    mixture = LowRankPMF._of_mixture(merged, pmf.domain, tables=tables)
    if pmf.mixture is pmf:
        return mixture
    own = pmf.representative
    if own.rank > PAGE_CLASSES:
        own = compact_answer(own)
    others = (pmf.draws, mixture, pmf.gaps, tables)
    return LowRankPMF(own.weights, own.factors, pmf.domain, *others, blocks=own._blocks)


def _given_subsets(pmf: LowRankPMF) -> list[tuple[int, ...]]:
    """The variables of each table that a model was fitted to, as far as it still has them."""
    if pmf.tables is None or pmf.blocks:
        return []
    named = pmf.tables.named_subsets(pmf.domain)
    return sorted({tuple(sorted(pmf.domain.indices(names))) for names in named})


def describe_limit(pmf: LowRankPMF) -> str:
    """Describe with how many classes a page answers; empty if with all of them.

    Examples
    --------
    >>> import rejoint as rj
    >>> describe_limit(rj.datasets.asia())
    ''
    """
    classes = pmf.mixture.rank
    if classes <= PAGE_CLASSES:
        return ""
    same = ", then corrected so that the given tables stay the same" * bool(_given_subsets(pmf))
    return (
        f"The page answers with {PAGE_CLASSES} classes that represent the {classes:,} of the "
        f"model, the nearest ones merged{same}; the file keeps them all."
    )


def _variables(domain: Domain) -> list[dict[str, Any]]:
    """The variables as the domain writes them, with their labels as text and their values."""
    listed: list[dict[str, Any]] = domain.to_json()["variables"]
    for plain, variable in zip(listed, domain.variables, strict=True):
        plain["labels"] = [str(level) for level in variable.levels]
        numbers = all(is_number(level) for level in variable.values)
        if numbers or variable.representatives is not None:
            values = [float(value) for value in variable.numeric]
            plain["values"] = values if np.isfinite(values).all() else None
    return listed


def _joint(pmf: LowRankPMF) -> dict[str, Any]:
    """Weights, factors and tables of blocks, and how strong these are beyond the classes."""
    plain = _parts(pmf._parts.stacked, "f8")
    blocks = plain_layouts([block.layout for block in pmf._blocks])
    for own, block in zip(blocks, pmf._blocks, strict=True):
        own["bits"] = block.information(pmf.weights) / log(2.0)
    return plain | ({"blocks": blocks} if blocks else {})


def plain_layouts(layouts: Iterable[BlockLayout]) -> list[dict[str, Any]]:
    """Members of blocks and groups of their levels, as the page has them."""
    return [
        {"members": list(own.members), "groups": [group.tolist() for group in own.groups]}
        for own in layouts
    ]


def _parts(stacked: NDArray[Any], kind: str) -> dict[str, Any]:
    """Weights, and the factors and tables that stand below them."""
    return {"weights": _packed(stacked[0], kind), "factors": _packed(stacked[1:], kind)}


def _draws(draws: Draws) -> dict[str, Any]:
    """The draws as they are, bit by bit, and their weights unless all are equal."""
    if not draws:
        return {}
    kind = "f8" if draws.block.dtype == np.float64 else "f4"
    plain = [_parts(block[:, block[0] > 0.0], kind) for block in draws.block]
    equal = np.ptp(draws.weights) == 0.0
    return {
        "draws": plain,
        "draw_weights": None if equal else _packed(draws.weights, "f8"),
        "draw_blocks": plain_layouts(draws.layouts) or None,
    }


def plain_ensemble(ensemble: SavedEnsemble) -> dict[str, Any]:
    """The models of a classifier, as the page is given them.

    The probability of labels given a row of levels is the average over ``members``, each a model
    over all variables of the page, of its conditional probability of the targets given the levels
    of the other variables that are there. ``member_weights`` has a row for each kind of row, one
    after the other, with a number for each member: kind ``k`` are rows that miss a larger share of
    the variables at the positions ``always_there`` than ``k`` of the ``missing_limits``, and the
    last kind are rows that miss everything. The *Target* view shows the prediction where evidence
    is single levels of other variables; the page's own model answers everything else. Where a
    member holds a row impossible, its classes with the fewest zeros count, in proportion to the
    product of the other terms.

    Returns
    -------
    dict
        ``targets`` (names, the last variables), ``members`` (each ``weights`` and ``factors`` as
        those of the page's own model), ``member_weights``, ``always_there``, ``missing_limits``.

    Examples
    --------
    >>> import numpy as np
    >>> member = np.array([[0.5, 0.5], [0.9, 0.2], [0.1, 0.8], [1.0, 0.0], [0.0, 1.0]])
    >>> plain = plain_ensemble(SavedEnsemble(("y",), (member,), np.ones((2, 1)), (0,), ()))
    >>> plain["targets"], plain["always_there"], list(plain["members"][0])
    (['y'], [0], ['weights', 'factors'])
    """
    return {
        "targets": list(ensemble.targets),
        "members": [_parts(member, "f8") for member in ensemble.members],
        "member_weights": _packed(ensemble.weights, "f8"),
        "always_there": list(ensemble.always_there),
        "missing_limits": list(ensemble.missing_limits),
    }


def plain_recommender(estimator: SavedEstimator) -> dict[str, Any] | None:
    """The recommender of ratings as the page is given it, to place new users; else None."""
    arrays, settings = estimator.arrays, estimator.settings
    if estimator.kind != "recommender" or "rating_items" not in arrays:
        return None
    names = ("items", "policy", "center", "spread")
    return {name: settings[name] for name in names} | {
        "choice_numbers": arrays["choice_items"].shape[2],
        "rating_numbers": arrays["rating_items"].shape[2],
        "arrays": {name: _packed(arrays[name], "f4") for name in PLACING_ARRAYS},
    }


def _packed(array: NDArray[Any], kind: str) -> dict[str, str]:
    """Little-endian bytes in base64: exact, and half the size of digits."""
    return {kind: b64encode(np.ascontiguousarray(array, dtype=f"<{kind}").tobytes()).decode()}


def _records(records: Records) -> dict[str, Any]:
    """Codes variable after variable; beyond the page's room the first records stand for all."""
    room = max(_MOST_CELLS // max(len(records.domain), 1), 1)
    codes, weight = records.codes[:room], records.sample_weight
    kind = "i2" if codes.dtype.itemsize <= 2 else "i4"
    plain: dict[str, Any] = {
        "rows": len(codes),
        "total": float(len(records)),
        "codes": _packed(codes.T, kind),
    }
    if weight is not None:
        plain |= {"total": float(weight.sum()), "counts": weight[:room].tolist()}
    if len(records) > room:
        plain["sampled"] = True
    return plain
