"""Answers of a model to questions in the query language."""

from collections.abc import Sequence
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
    rank = model.mixture.rank
    parts = (model.tables, model.domain, bound, answer.value, rank, answer.evidence)
    return replace(answer, rests_on=AnswerBasis(*parts))


def answer_bound(
    model: "LowRankPMF",
    bound: BoundQuery,
    bits: bool = False,
    level: float | None = 0.9,
    random_state: RandomState = None,
) -> Answer:
    """Answer a question whose names are looked up already."""
    question, composition = _condition(model, bound), None
    if model.counts is not None:
        composition = Composition(model.domain, bound, model.counts, model.mixture._parts)
        if reason := composition.why_not():
            composition = None
            question = question.note(f"The model answers alone: {reason}.")
    if model.gaps and composition is None:
        used = {*bound.asked, *bound.against, *bound.by, *bound.events, *bound.evidence}
        names = {model.domain.names[n] for n in used}
        question = question.note(*note_gaps(model.gaps, names, model.domain.names))
    match bound.query.verb:
        case "P" | "E":
            answer = _numbers(question, composition)
        case "argmax":
            return _mode(model, question)
        case "sample":
            return _records(model, question, random_state)
        case _:
            answer = _information(question, bits, random_state)
    if level is not None and model.draws:
        answer = _add_interval(model, question, answer, level)
    return answer if composition is None else _combine(question, answer, composition, level)


def _combine(
    question: "_Question", answer: Answer, composition: Composition, level: float | None
) -> Answer:
    """Return the answer of counts and model together, with both beside it."""
    domain, bound = question.domain, question.bound

    def values(table: FloatArray) -> Any:
        array = question.value(table)
        return array if answer.axes else float(array)

    table, totals = composition.table()
    notes = answer.notes
    if bound.by:
        table = divide_columns(table, totals, [domain[n] for n in bound.by])[0]
    else:
        table = np.asarray(table / totals)
        if question.has_value and not table.ndim:
            share = composition.share_with_value(question.has_value)
            notes += _note_applies(question, share, float(table))
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


class _Question(NamedTuple):
    """A question, the model given its evidence, and the probability of the evidence."""

    domain: Domain
    bound: BoundQuery
    mixture: Mixture
    evidence: float = 1.0
    notes: tuple[str, ...] = ()

    def note(self, *notes: str) -> "_Question":
        """Add notes."""
        return self._replace(notes=self.notes + notes)

    def table(self) -> tuple[FloatArray, tuple[str, ...]]:
        """P(asked, events | evidence, by), axes as asked and then by; undefined cells are nan."""
        bound, axes = self.bound, self.bound.asked + self.bound.by
        cells = prod(self.domain.shape[n] for n in axes)
        if cells > tables.MAX_CELLS:
            raise bound.error(
                f"The table would have {format_count(cells)} cells, more than the limit of "
                f"{tables.MAX_CELLS:,}: ask for fewer variables."
            )
        table = self.mixture.tabulate(axes, bound.events)
        if not bound.by:
            return table, ()
        variables = [self.domain[n] for n in bound.by]
        return divide_columns(table, self.mixture.tabulate(bound.by), variables)

    def value(self, table: FloatArray) -> FloatArray:
        """Return the probabilities or the means that answer, from a table of its own."""
        if self.bound.query.verb == "P":
            return np.minimum(table, 1.0, out=table)  # not above one by rounding
        with np.errstate(invalid="ignore"):  # a level may be infinite, an undefined share is nan
            numbers = self.domain[self.bound.asked[0]].numeric
            return np.asarray(np.tensordot(numbers, table[: len(numbers)], 1))

    @property
    def has_value(self) -> dict[int, FloatArray]:
        """Levels that are values, for events on variables that may have none; not met then."""
        return {
            n: (np.arange(len(meets)) < len(meets) - 1).astype(np.float64)
            for n, meets in self.bound.events.items()
            if self.domain[n].empty is not None and not meets[-1]
        }


def _condition(model: "LowRankPMF", bound: BoundQuery) -> _Question:
    """Give the model the evidence; note, and remark, where that is nearly impossible."""
    mixture = model.mixture._parts
    if not bound.evidence:
        return _Question(model.domain, bound, mixture, 1.0, bound.notes)
    mixture, log_prob = mixture.given_possible(bound.evidence, bound.evidence_text.__getitem__)
    question = _Question(model.domain, bound, mixture, min(exp(log_prob), 1.0), bound.notes)
    evenly = sum(log(likelihood.mean()) for likelihood in bound.evidence.values())
    if log_prob - evenly >= _UNLIKELY:
        return question
    shown = format_number(exp(log_prob)) if log_prob > -700.0 else f"1e{log_prob / log(10):.0f}"
    note = (
        f"{', '.join(bound.evidence_text.values())} has probability {shown}: the answer depends "
        "on evidence that this model considers nearly impossible."
    )
    remark(note)
    return question.note(note)


def _add_interval(model: "LowRankPMF", question: _Question, answer: Answer, level: float) -> Answer:
    """Add the credible interval over the posterior draws."""
    bound = question.bound
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
        draw = question._replace(mixture=stack.at(k))
        if answer.unit:
            amount = _measure(draw, np.random.default_rng(0)).value
            values.append(np.array(amount / _SCALES[answer.unit]))
        else:
            values.append(draw.value(draw.table()[0]))
            totals.append(draw.mixture.tabulate(bound.by))
    if bound.by and totals:
        # A column of the table is given its level, too: draws count by how probable that is.
        weights = weights.reshape((-1,) + (1,) * len(bound.by)) * np.stack(totals)
        weights = weights[(slice(None),) + (None,) * (values[0].ndim - len(bound.by))]
    limits = (0.0, inf if answer.unit else 1.0)
    if bound.query.verb == "E":
        numbers = model.domain[bound.asked[0]].numeric
        limits = float(np.min(numbers)), float(np.max(numbers))
    interval = credible_interval(np.stack(values), level, weights, cast(Any, answer.value), limits)
    return replace(answer, interval=interval)


def _numbers(question: _Question, composition: Composition | None) -> Answer:
    """Answer P and E; counts will be added if there is a composition."""
    domain, bound = question.domain, question.bound
    axes = bound.asked + bound.by
    kind: Kind = "table" if axes else "probability"
    if bound.query.verb == "E":
        axes, kind = bound.by, "expectation"
        try:
            _ = domain[bound.asked[0]].numeric
        except (ValueError, OverflowError) as error:
            raise bound.error(str(error), cast(Name, bound.query.asked[0]).at) from None
    table, notes = question.table()
    if not table.ndim and composition is None and (has_value := question.has_value):
        share = float(question.mixture.prob(has_value))
        notes += _note_applies(question, share, float(table))
    array = question.value(table)  # may overwrite the table
    value, variables = array if axes else float(array), tuple(domain[n] for n in axes)
    evidence, notes = question.evidence, question.notes + notes
    return Answer(bound.query, kind, value, variables, evidence, notes=notes)


def _note_applies(question: _Question, share: float, value: float) -> tuple[str, ...]:
    """Say how probable events are among those who have a value, where others count as well."""
    if not 0.0 < share < 1.0 - 1e-9 or value >= share * (1.0 - 1e-9):
        return ()
    whose = " and ".join(who_has(question.domain[n]) for n in question.has_value)
    return (f"Among {whose} ({format_number(share)} of all): {format_number(value / share)}.",)


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


def _mode(model: "LowRankPMF", question: _Question) -> Answer:
    bound, given, names = _names(question)
    if not names and len(given) == len(model.domain):
        raise bound.error("Every variable is given, so there is none left to ask about: name some.")
    mode = model.mode(names or None, given)
    return Answer(bound.query, "mode", mode, (), question.evidence, notes=question.notes)


def _records(model: "LowRankPMF", question: _Question, random_state: RandomState) -> Answer:
    bound, given, names = _names(question)
    count = bound.query.count or 0
    most = tables.MAX_CELLS // len(model.domain)
    if count > most:
        raise bound.error(f"At most {plural(most, 'record')} of this model can be drawn at once.")
    records = model.sample(count, given, random_state)
    if names:
        records = records.project(names)
    return Answer(bound.query, "records", records, (), question.evidence, notes=question.notes)


def _names(question: _Question) -> tuple[BoundQuery, dict[str, FloatArray], list[str]]:
    """Return the question, its evidence by name, and the names asked for; tabulate by none."""
    bound, names = question.bound, question.domain.names
    for item in bound.query.given:
        if isinstance(item, Name):
            raise bound.error(
                f"{bound.query.verb} needs a value here: {item} = ... (P tabulates by it).", item.at
            )
    given = {names[n]: likelihood for n, likelihood in bound.evidence.items()}
    return bound, given, [names[n] for n in bound.asked]


def _information(question: _Question, bits: bool, random_state: RandomState) -> Answer:
    amount = _measure(question, np.random.default_rng(random_state))
    unit = "bits" if bits else "nats"
    scale = _SCALES[unit]
    error = None if amount.standard_error is None else amount.standard_error / scale
    notes = question.notes
    if error is not None:
        notes += (
            f"Estimated from {plural(amount.draws, 'drawn record')}, because the table is too "
            f"large to enumerate: standard error {error:.2g} {unit}.",
        )
    query, value = question.bound.query, amount.value / scale
    kind: Kind = "entropy" if query.verb == "H" else "information"
    return Answer(query, kind, value, (), question.evidence, error, unit, notes)


def _measure(question: _Question, rng: np.random.Generator) -> Nats:
    bound, mixture = question.bound, question.mixture
    if bound.query.verb == "H":
        return conditional_entropy(mixture, bound.asked, bound.by, rng)
    return mutual_information(mixture, bound.asked, bound.against, bound.by, rng)
