"""Answers of a model to questions in the query language."""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log, prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
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

    def tabulate(self, mixture: Mixture) -> tuple[FloatArray, FloatArray]:
        """Return P(asked, events, by | evidence), axes in this order, and P(by | evidence)."""
        asked, by = self.bound.asked, self.bound.by
        totals = mixture.tabulate(by) if by else np.ones(())
        return mixture.tabulate(asked + by, self.bound.events), totals

    def read(self, table: FloatArray, totals: FloatArray) -> FloatArray:
        """Return the probabilities or means that a table gives, nan where it is given nothing."""
        with np.errstate(invalid="ignore", divide="ignore"):
            np.divide(table, totals, out=table)  # in place, as it may be large
            np.minimum(table, 1.0, out=table)  # not above one by rounding
            if self.bound.query.verb == "P":
                return table
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
        if answer.unit:
            draw = question._replace(mixture=stack.at(k))
            amount = _measure(draw, np.random.default_rng(0)).value
            values.append(np.array(amount / _SCALES[answer.unit]))
        else:
            table, total = question.tabulate(stack.at(k))
            values.append(question.read(table, total))
            totals.append(total)
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
    """Answer P and E by the model; counts will be added if there is a composition."""
    domain, bound = question.domain, question.bound
    axes = bound.asked + bound.by
    cells = prod(domain.shape[n] for n in axes)
    if cells > tables.MAX_CELLS:
        raise bound.error(
            f"The table would have {format_count(cells)} cells, more than the limit of "
            f"{tables.MAX_CELLS:,}: ask for fewer variables."
        )
    kind: Kind = "table" if axes else "probability"
    if bound.query.verb == "E":
        axes, kind = bound.by, "expectation"
        try:
            _ = domain[bound.asked[0]].numeric
        except (ValueError, OverflowError) as error:
            raise bound.error(str(error), cast(Name, bound.query.asked[0]).at) from None
    table, totals = question.tabulate(question.mixture)
    array, notes = question.read(table, totals), _note_undefined(question, totals)
    if not axes and composition is None and (has_value := question.has_value):
        notes += _note_applies(question, float(question.mixture.prob(has_value)), float(array))
    value, variables = array if axes else float(array), tuple(domain[n] for n in axes)
    evidence, notes = question.evidence, question.notes + notes
    return Answer(bound.query, kind, value, variables, evidence, notes=notes)


def _combine(
    question: _Question, answer: Answer, composition: Composition, level: float | None
) -> Answer:
    """Return the answer of counts and model together, with both beside it."""
    bound, number = question.bound, composition.number
    array: Callable[[Any], Any] = np.asarray if answer.axes else float
    value = question.read(*composition.table())
    notes = answer.notes
    if not answer.axes and (has_value := question.has_value):
        share = composition.share_with_value(has_value)
        notes += _note_applies(question, share, float(value))
    by_tables = composition.counts.tables is not None and bool(bound.evidence)
    notes += describe_lacking(composition.share_lacking(), bool(bound.evidence), by_tables)
    interval = None
    if level is not None:
        model = np.asarray(answer.value, dtype=np.float64)
        interval = composition.interval(value, level, model, answer.interval)
    return replace(
        answer,
        value=array(value),
        interval=interval,
        notes=notes,
        counted=array(question.read(composition.counted_table(), number)),
        model=answer.value,
        records=number if bound.by else float(number),
    )


def _note_applies(question: _Question, share: float, value: float) -> tuple[str, ...]:
    """Say how probable events are among those who have a value, where others count as well."""
    if not 0.0 < share < 1.0 - 1e-9 or value >= share * (1.0 - 1e-9):
        return ()
    whose = " and ".join(who_has(question.domain[n]) for n in question.has_value)
    return (f"Among {whose} ({format_number(share)} of all): {format_number(value / share)}.",)


def _note_undefined(question: _Question, totals: FloatArray) -> tuple[str, ...]:
    """Say which levels of the variables tabulated by are impossible."""
    impossible = np.argwhere(totals == 0.0)
    if not len(impossible):
        return ()
    by = [question.domain[n] for n in question.bound.by]
    first = ", ".join(f"{v.name} = {v.levels[i]}" for v, i in zip(by, impossible[0], strict=True))
    others = f" (and {len(impossible) - 1:,} more)" if len(impossible) > 1 else ""
    return (f"Undefined, shown as nan, because it is impossible here: {first}{others}.",)


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
