"""Answers of a model to questions in the query language."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log, prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.variable import Variable
from rejoint.language.bind import BoundQuery, bind, who_has
from rejoint.language.query import Name, Query
from rejoint.messages import remark
from rejoint.pmf.answer import Answer, Kind
from rejoint.pmf.answer_basis import AnswerBasis
from rejoint.pmf.composite import Composition, describe_lacking
from rejoint.pmf.draws import check_level, credible_interval
from rejoint.pmf.entropy import Nats, conditional_entropy, mutual_information
from rejoint.pmf.table_gap import note_gaps
from rejoint.queries import tables
from rejoint.queries.mixture import Mixture
from rejoint.text import format_count, format_number, plural

if TYPE_CHECKING:
    from rejoint.pmf.pmf import LowRankPMF

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | None

_INTERVAL_CELLS = 100_000  # of a table that gets credible intervals
_INTERVAL_NUMBERS = 12_000_000  # in the tables of all draws together: 96 MB
_UNLIKELY = log(1e-6)  # evidence this much rarer than among equally probable levels gets a remark
_SCALES = {"nats": 1.0, "bits": log(2.0)}


def ask(
    model: "LowRankPMF",
    text: str | Query,
    bits: bool = False,
    level: float | None = 0.9,
    random_state: RandomState = None,
) -> Answer:
    """Answer a question in the query language; see :meth:`LowRankPMF.ask`."""
    if level is not None:
        check_level(level)
    bound = bind(text, model.domain)
    answer = answer_bound(model, bound, bits, level, random_state)
    if model.tables is None or answer.interval is not None:
        return answer
    basis = AnswerBasis(
        model.tables,
        model.domain,
        bound,
        answer.value,
        model.mixture.rank,
        answer.evidence,
    )
    return replace(answer, rests_on=basis)


def answer_bound(
    model: "LowRankPMF",
    bound: BoundQuery,
    bits: bool = False,
    level: float | None = 0.9,
    random_state: RandomState = None,
) -> Answer:
    """Answer a question whose names are looked up already.

    Examples
    --------
    >>> import rejoint as rj
    >>> asia = rj.datasets.asia()
    >>> round(float(answer_bound(asia, bind("P(lung = yes)", asia.domain))), 3)
    0.055
    """
    known, composition = _condition(model, bound), None
    if model.counts is not None:
        composition = Composition(model.domain, bound, model.counts, model.mixture._parts)
        if reason := composition.why_not():
            composition = None
            known = known._replace(notes=(*known.notes, f"The model answers alone: {reason}."))
    if model.gaps and composition is None:
        used = {*bound.asked, *bound.against, *bound.by, *bound.events, *bound.evidence}
        names = {model.domain.names[n] for n in used}
        known = known._replace(notes=known.notes + note_gaps(model.gaps, names, model.domain.names))
    match bound.query.verb:
        case "P" | "E":
            answer = _numbers(model.domain, bound, known, composition)
        case "argmax":
            return _mode(model, bound, known)
        case "sample":
            return _records(model, bound, known, random_state)
        case _:
            answer = _information(bound, known, bits, random_state)
    if level is not None and model.draws:
        answer = _add_interval(model, bound, answer, level)
    return answer if composition is None else _combine(model.domain, answer, composition, level)


def _combine(
    domain: Domain, answer: Answer, composition: Composition, level: float | None
) -> Answer:
    """Return the answer of counts and model together, with both beside it."""
    bound, axes = composition.bound, answer.axes

    def values(table: FloatArray) -> Any:
        found = _value(domain, bound, table)
        return found if axes else float(found)

    table, totals = composition.table()
    notes = answer.notes
    if bound.by:
        table = divide_columns(table, totals, [domain[n] for n in bound.by])[0]
    else:
        table = np.asarray(table / totals)
        has_value = _value_events(domain, bound)
        if has_value and not table.ndim:
            share = composition.share_with_value(has_value)
            notes += _note_applies(domain, has_value, share, float(table))
    by_tables = composition.counts.tables is not None and bool(bound.evidence)
    notes += describe_lacking(composition.share_lacking(), bool(bound.evidence), by_tables)
    value, interval = values(table), None
    if level is not None:
        given = np.asarray(answer.value, dtype=np.float64), answer.interval
        interval = composition.interval(np.asarray(value), level, *given)
    number = composition.number
    return replace(
        answer,
        value=value,
        interval=interval,
        notes=notes,
        counted=values(composition.counted_table()),
        model=answer.value,
        records=number if bound.by else float(number),
    )


class _Known(NamedTuple):
    """A model given the evidence, and the probability of the evidence."""

    mixture: Mixture
    evidence: float = 1.0
    notes: tuple[str, ...] = ()


def _condition(model: "LowRankPMF", bound: BoundQuery) -> _Known:
    mixture = model.mixture._parts
    if not bound.evidence:
        return _Known(mixture, 1.0, bound.notes)
    describe = bound.evidence_text.__getitem__
    mixture, log_prob = mixture.given_possible(bound.evidence, describe)
    notes = bound.notes + note_unlikely(bound, log_prob)
    return _Known(mixture, min(exp(log_prob), 1.0), notes)


def note_unlikely(bound: BoundQuery, log_prob: float) -> tuple[str, ...]:
    """Return a note, and make it a remark, where the evidence is nearly impossible.

    Examples
    --------
    >>> domain = Domain.of({"a": ["x", "y"], "b": ["x", "y"]})
    >>> note_unlikely(bind("P(a | b = x)", domain), log(0.01))
    ()
    """
    evenly = sum(log(likelihood.mean()) for likelihood in bound.evidence.values())
    if log_prob - evenly >= _UNLIKELY:
        return ()
    shown = format_number(exp(log_prob)) if log_prob > -700.0 else f"1e{log_prob / log(10):.0f}"
    note = (
        f"{', '.join(bound.evidence_text.values())} has probability "
        f"{'zero' if log_prob == -inf else shown}: the answer depends on evidence that this model "
        f"considers {'impossible' if log_prob == -inf else 'nearly impossible'}."
    )
    remark(note)
    return (note,)


def _add_interval(model: "LowRankPMF", bound: BoundQuery, answer: Answer, level: float) -> Answer:
    """Add the credible interval over the posterior draws."""
    if answer.standard_error is not None:
        return answer  # estimated from samples, which would take as long again for every draw
    cells = prod(model.domain.shape[n] for n in bound.asked + bound.against + bound.by)
    if cells > _INTERVAL_CELLS or cells * len(model.draws) > _INTERVAL_NUMBERS:
        note = "No credible intervals, because the table is large: ask for fewer variables."
        return replace(answer, notes=(*answer.notes, note))
    used = {*bound.asked, *bound.against, *bound.by, *bound.events}
    weights, stack = model.draws.given(bound.evidence, used)
    if not len(weights):
        note = "No credible interval: every posterior draw excludes the evidence."
        return replace(answer, notes=(*answer.notes, note))
    values, totals = [], []
    for k in range(len(weights)):
        known = _Known(stack.at(k))
        if answer.unit:
            amount = _measure(bound, known, np.random.default_rng(0)).value
            values.append(np.array(amount / _SCALES[answer.unit]))
        else:
            values.append(_value(model.domain, bound, _table(model.domain, bound, known)[0]))
            totals.append(known.mixture.tabulate(bound.by))
    if bound.by and totals:
        # A column of the table is given its level, too: draws count by how probable that is.
        weights = weights.reshape((-1,) + (1,) * len(bound.by)) * np.stack(totals)
        weights = weights[(slice(None),) + (None,) * (values[0].ndim - len(bound.by))]
    limits = _limits(model.domain, bound, answer)
    found = credible_interval(np.stack(values), level, weights, cast(Any, answer.value), limits)
    return replace(answer, interval=found)


def _limits(domain: Domain, bound: BoundQuery, answer: Answer) -> tuple[float, float]:
    """What no answer to a question is below or above."""
    if answer.unit:
        return 0.0, inf
    if bound.query.verb == "P":
        return 0.0, 1.0
    numbers = domain[bound.asked[0]].numeric
    return float(np.min(numbers)), float(np.max(numbers))


def _value(domain: Domain, bound: BoundQuery, table: FloatArray) -> FloatArray:
    """Return the probabilities or the means that answer a question, from a table of its own."""
    if bound.query.verb == "P":
        return np.minimum(table, 1.0, out=table)  # not above one by rounding
    with np.errstate(invalid="ignore"):  # a level may be infinite, an undefined share is nan
        numbers = domain[bound.asked[0]].numeric
        return np.asarray(np.tensordot(numbers, table[: len(numbers)], 1))


def _numbers(
    domain: Domain, bound: BoundQuery, known: _Known, composition: Composition | None
) -> Answer:
    """Answer P and E; counts will be added if there is a composition."""
    if bound.query.verb == "E":
        check_numeric(domain, bound)
    table, notes = _table(domain, bound, known)
    has_value = _value_events(domain, bound)
    if has_value and not table.ndim and composition is None:
        share = float(known.mixture.prob(has_value))
        notes += _note_applies(domain, has_value, share, float(table))
    return answer_of_table(domain, bound, table, known.evidence, known.notes + notes)


def _value_events(domain: Domain, bound: BoundQuery) -> dict[int, FloatArray]:
    """Which levels are values, for events on variables that may have none, and are not met then."""
    return {
        n: (np.arange(len(meets)) < len(meets) - 1).astype(np.float64)
        for n, meets in bound.events.items()
        if domain[n].empty is not None and not meets[-1]
    }


def _note_applies(
    domain: Domain, has_value: Mapping[int, FloatArray], share: float, value: float
) -> tuple[str, ...]:
    """Say how probable events are among those who have a value, where others count as well."""
    if not 0.0 < share < 1.0 - 1e-9 or value >= share * (1.0 - 1e-9):
        return ()
    whose = " and ".join(who_has(domain[n]) for n in has_value)
    return (f"Among {whose} ({format_number(share)} of all): {format_number(value / share)}.",)


def answer_of_table(
    domain: Domain, bound: BoundQuery, table: FloatArray, evidence: float, notes: tuple[str, ...]
) -> Answer:
    """Answer P and E by the table of what is asked, which may be overwritten."""
    axes = bound.asked + bound.by
    kind: Kind = "table" if axes else "probability"
    if bound.query.verb == "E":
        axes, kind = bound.by, "expectation"
    value = _value(domain, bound, table)
    found = value if axes else float(value)
    return Answer(bound.query, kind, found, tuple(domain[n] for n in axes), evidence, notes=notes)


def check_numeric(domain: Domain, bound: BoundQuery) -> None:
    """Raise an error, at its place, if the levels of the requested variable are not numbers."""
    try:
        _ = domain[bound.asked[0]].numeric
    except (ValueError, OverflowError) as error:
        raise bound.error(str(error), cast(Name, bound.query.asked[0]).at) from None


def _table(domain: Domain, bound: BoundQuery, known: _Known) -> tuple[FloatArray, tuple[str, ...]]:
    """P(asked, events | evidence, by), axes as asked and then by; undefined cells are nan."""
    axes = bound.asked + bound.by
    cells = prod(domain.shape[n] for n in axes)
    if cells > tables.MAX_CELLS:
        raise bound.error(
            f"The table would have {format_count(cells)} cells, more than the limit of "
            f"{tables.MAX_CELLS:,}: ask for fewer variables."
        )
    table = known.mixture.tabulate(axes, bound.events)
    return _conditional(domain, bound, known, table) if bound.by else (table, ())


def _conditional(
    domain: Domain, bound: BoundQuery, known: _Known, table: FloatArray
) -> tuple[FloatArray, tuple[str, ...]]:
    """Divide a table by the probability of the combinations that it is tabulated by."""
    total = known.mixture.tabulate(bound.by)
    return divide_columns(table, total, [domain[n] for n in bound.by])


def divide_columns(
    table: FloatArray, total: FloatArray, by: Sequence[Variable]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Divide a table by the totals of its columns, in place; undefined cells are nan, with a note.

    Parameters
    ----------
    table : array (..., levels of ``by``)
    total : array (levels of ``by``)
    by : sequence of Variable
        The last axes of the table.

    Examples
    --------
    >>> table, total = np.array([[0.2, 0.0], [0.2, 0.0]]), np.array([0.4, 0.0])
    >>> divide_columns(table, total, [Variable("a", ("x", "y"))])[1]
    ('Undefined, shown as nan, because it is impossible here: a = y.',)
    """
    impossible = np.argwhere(total == 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.divide(table, total, out=table)  # in place, as it may be large
    np.minimum(table, 1.0, out=table)  # not above one by rounding
    if not len(impossible):
        return table, ()
    table[..., total == 0.0] = np.nan
    first = ", ".join(f"{v.name} = {v.levels[i]}" for v, i in zip(by, impossible[0], strict=True))
    others = f" (and {len(impossible) - 1:,} more)" if len(impossible) > 1 else ""
    return table, (f"Undefined, shown as nan, because it is impossible here: {first}{others}.",)


def _mode(model: "LowRankPMF", bound: BoundQuery, known: _Known) -> Answer:
    _refuse_by(bound)
    given = {model.domain.names[n]: likelihood for n, likelihood in bound.evidence.items()}
    names = [model.domain.names[n] for n in bound.asked] or None
    if names is None and len(given) == len(model.domain):
        raise bound.error("Every variable is given, so there is none left to ask about: name some.")
    mode = model.mode(names, given)
    return Answer(bound.query, "mode", mode, (), known.evidence, notes=known.notes)


def _records(
    model: "LowRankPMF", bound: BoundQuery, known: _Known, random_state: RandomState
) -> Answer:
    _refuse_by(bound)
    count = bound.query.count or 0
    most = tables.MAX_CELLS // len(model.domain)
    if count > most:
        raise bound.error(f"At most {plural(most, 'record')} of this model can be drawn at once.")
    given = {model.domain.names[n]: likelihood for n, likelihood in bound.evidence.items()}
    records = model.sample(count, given, random_state)
    if bound.asked:
        records = records.project([model.domain.names[n] for n in bound.asked])
    return Answer(bound.query, "records", records, (), known.evidence, notes=known.notes)


def _refuse_by(bound: BoundQuery) -> None:
    for item in bound.query.given:
        if isinstance(item, Name):
            raise bound.error(
                f"{bound.query.verb} needs a value here: {item} = ... (P tabulates by it).", item.at
            )


def _information(bound: BoundQuery, known: _Known, bits: bool, random_state: RandomState) -> Answer:
    found = _measure(bound, known, np.random.default_rng(random_state))
    unit = "bits" if bits else "nats"
    scale = _SCALES[unit]
    error = None if found.standard_error is None else found.standard_error / scale
    notes = known.notes
    if error is not None:
        notes += (
            f"Estimated from {plural(found.draws, 'drawn record')}, because the table is too large "
            f"to enumerate: standard error {error:.2g} {unit}.",
        )
    return Answer(
        bound.query,
        "entropy" if bound.query.verb == "H" else "information",
        found.value / scale,
        (),
        known.evidence,
        error,
        unit,
        notes,
    )


def _measure(bound: BoundQuery, known: _Known, rng: np.random.Generator) -> Nats:
    if bound.query.verb == "H":
        return conditional_entropy(known.mixture, bound.asked, bound.by, rng)
    return mutual_information(known.mixture, bound.asked, bound.against, bound.by, rng)
