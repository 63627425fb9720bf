"""Questions in the query language, answered by a model."""

from contextlib import suppress
from dataclasses import replace
from math import exp, log, prod
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rejoint import queries
from rejoint.language.bind import BoundQuery, bind
from rejoint.language.query import Name, Query
from rejoint.messages import remark
from rejoint.pmf.answer import Answer
from rejoint.pmf.draws import Interval, credible_bounds
from rejoint.pmf.entropy import Nats, conditional_entropy, mutual_information
from rejoint.pmf.mixture import Answers, RecordAnswers, weighed

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | None

_MOST_BOUNDED = 4_000_000  # cells of all draws that an interval is taken from: 32 MB
_UNLIKELY = log(1e-6)  # evidence this much rarer than among equally probable levels gets a remark
_SCALES = {"nats": 1.0, "bits": log(2.0)}


class Asking(Answers, RecordAnswers):
    """A model that answers questions written in the query language.

    Examples
    --------
    >>> import rejoint as rj
    >>> round(float(rj.datasets.asia().ask("P(lung = yes | smoke = yes)")), 3)
    0.1
    """

    __slots__ = ()

    def ask(
        self,
        text: str | Query,
        *,
        bits: bool = False,
        level: float | None = 0.9,
        random_state: RandomState = None,
    ) -> Answer:
        """Answer a question written in the query language.

        Parameters
        ----------
        text : str
            ``P(a, b | c = x)``, ``P(a = x, b in {y, z} | ...)``, ``E(a | ...)``,
            ``argmax a, b | ...``, ``sample 10 | ...``, ``H(a | b)``, ``MI(a; b | ...)``. A
            variable without a value right of the bar is tabulated by: one distribution for each
            of its levels.
        bits : bool
            Entropies and information in bits; in nats by default.
        level : float or None
            Of the credible interval that answers have where the model carries posterior draws.
        random_state : int, Generator or None
            Seed, or source, of what is drawn.

        Returns
        -------
        Answer

        Raises
        ------
        QueryError
            If the text is no question, or names what the model does not have; it shows where.
        ZeroEvidenceError
            If what is given has probability zero.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia()
        >>> print(p.ask("P(lung = yes | smoke = yes, xray = yes)"))
        P(lung = yes | smoke = yes, xray = yes) = 0.646
        What is given has probability 0.07585.
        >>> print(p.ask("argmax bronc, xray | dysp = yes"))
        argmax bronc, xray | dysp = yes
        variable  level
        bronc     yes
        xray      no
        Probability 0.7234.
        What is given has probability 0.436.
        >>> print(p.ask("MI(smoke; bronc)", bits=True))
        MI(smoke; bronc) = 0.06665 bits
        """
        bound = bind(text, self.domain)
        known = _known(self, bound)
        match bound.query.verb:
            case "P":
                answer = _probability(self, bound, known)
            case "E":
                answer = _expectation(self, bound, known)
            case "argmax":
                return _mode(self, bound, known)
            case "sample":
                return _records(self, bound, known, random_state)
            case _:
                answer = _information(bound, known, bits, random_state)
        return answer if level is None or not self.draws else _bounded(self, bound, answer, level)


class _Known(NamedTuple):
    """The classes and factors of a model given the evidence, and how probable that is."""

    shares: FloatArray
    factors: list[FloatArray]
    evidence: float
    notes: tuple[str, ...]


def _known(model: Answers, bound: BoundQuery) -> _Known:
    if not bound.evidence:
        return _Known(model.weights, list(model.factors), 1.0, bound.notes)
    shares, factors, log_prob = weighed(model, bound.evidence, bound.words.__getitem__)
    evenly = sum(log(likelihood.mean()) for likelihood in bound.evidence.values())
    notes = bound.notes
    if log_prob - evenly < _UNLIKELY:
        shown = f"{exp(log_prob):.2g}" if log_prob > -700.0 else f"1e{log_prob / log(10):.0f}"
        note = (
            f"{', '.join(bound.words.values())} has probability {shown}: the answer rests on what "
            "this model holds nearly impossible."
        )
        notes = (*notes, note)
        remark(note)
    return _Known(shares, list(factors), min(exp(log_prob), 1.0), notes)


def _bounded(model: Answers, bound: BoundQuery, answer: Answer, level: float) -> Answer:
    """Add the interval that the posterior draws give."""
    if answer.standard_error is not None:
        return answer  # from drawn records, which would take forty times as long
    cells = prod(model.domain.shape[n] for n in bound.asked + bound.against + bound.by)
    if cells * len(model.draws) > _MOST_BOUNDED:
        note = "Without credible intervals, as the table is large: ask for fewer variables."
        return replace(answer, notes=(*answer.notes, note))
    # Draws of the variables in question alone: each becomes a model, which takes its time.
    used = sorted({*bound.asked, *bound.against, *bound.by, *bound.events, *bound.evidence})
    draws = model.draws.project([model.domain.names[n] for n in used])
    bound = bound.moved({n: k for k, n in enumerate(used)})
    values = []
    for draw in draws:
        with suppress(queries.ZeroEvidenceError):
            shares, factors, _ = weighed(draw, bound.evidence, bound.words.__getitem__)
            known = _Known(shares, list(factors), 1.0, ())
            values.append(_number(draw, bound, known, answer.unit))
    if not values:
        return answer
    low, high = credible_bounds(np.stack(values), level)
    return replace(answer, interval=Interval(low, high, level, len(values)))


def _number(model: Answers, bound: BoundQuery, known: _Known, unit: str) -> FloatArray:
    """The table, the means or the number that answers a question, and nothing else."""
    if unit:
        value = _informed(bound, known, np.random.default_rng(0)).value
        return np.array(value / _SCALES[unit])
    table, _ = _table(model, bound, known)
    if bound.query.verb == "P":
        return np.minimum(table, 1.0)
    with np.errstate(invalid="ignore"):  # as below
        return np.asarray(np.tensordot(model.domain[bound.asked[0]].numeric, table, 1))


def _probability(model: Answers, bound: BoundQuery, known: _Known) -> Answer:
    axes = bound.asked + bound.by
    table, notes = _table(model, bound, known)
    variables = tuple(model.domain[n] for n in axes)
    if axes:
        return Answer(
            bound.query, "table", table, variables, known.evidence, notes=known.notes + notes
        )
    value = min(float(table), 1.0)  # not above one by rounding
    return Answer(bound.query, "probability", value, (), known.evidence, notes=known.notes)


def _table(model: Answers, bound: BoundQuery, known: _Known) -> tuple[FloatArray, tuple[str, ...]]:
    """P(asked, events | evidence, by), axes as asked and then by; undefined cells are nan."""
    axes = bound.asked + bound.by
    cells = prod(model.domain.shape[n] for n in axes)
    if cells > queries.MAX_CELLS:
        raise bound.error(
            f"The table would have {cells:.3g} cells, more than the {queries.MAX_CELLS:.3g} that "
            "are formed: ask for fewer variables."
        )
    terms, factors = known.shares, list(known.factors)
    for n, meets in bound.events.items():
        if n in axes:
            factors[n] = factors[n] * meets[:, None]
        else:
            terms = terms * (meets @ factors[n])
    table = queries.joint_table(terms, [factors[n] for n in axes])
    return _conditional(model, bound, known, table) if bound.by else (table, ())


def _conditional(
    model: Answers, bound: BoundQuery, known: _Known, table: FloatArray
) -> tuple[FloatArray, tuple[str, ...]]:
    """Divide a table by the probability of the combinations that it is tabulated by."""
    total = queries.joint_table(known.shares, [known.factors[n] for n in bound.by])
    impossible = np.argwhere(total == 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        table /= total  # in place, as it may be large
    np.minimum(table, 1.0, out=table)  # not above one by rounding
    if not len(impossible):
        return table, ()
    table[..., total == 0.0] = np.nan
    variables = [model.domain[n] for n in bound.by]
    first = ", ".join(
        f"{v.name} = {v.levels[i]}" for v, i in zip(variables, impossible[0], strict=True)
    )
    others = f" (and {len(impossible) - 1:,} more)" if len(impossible) > 1 else ""
    return table, (f"Undefined, shown as nan, as it is impossible here: {first}{others}.",)


def _expectation(model: Answers, bound: BoundQuery, known: _Known) -> Answer:
    (n,), name = bound.asked, cast(Name, bound.query.asked[0])
    try:
        values = model.domain[n].numeric
    except (ValueError, OverflowError) as error:
        raise bound.error(str(error), name.at) from None
    shares, notes = _table(model, bound, known)
    with np.errstate(invalid="ignore"):  # a level may be infinite, an undefined share is nan
        means = np.tensordot(values, shares, 1)
    variables = tuple(model.domain[k] for k in bound.by)
    return Answer(
        bound.query,
        "expectation",
        means if bound.by else float(means),
        variables,
        known.evidence,
        notes=known.notes + notes,
    )


def _mode(model: Answers, bound: BoundQuery, known: _Known) -> Answer:
    _refuse_by(bound)
    given = {model.domain.names[n]: likelihood for n, likelihood in bound.evidence.items()}
    names = [model.domain.names[n] for n in bound.asked] or None
    if names is None and len(given) == len(model.domain):
        raise bound.error("Every variable is given, so none is left to ask for: name some.")
    mode = model.mode(names, given)
    return Answer(bound.query, "mode", mode, (), known.evidence, notes=known.notes)


def _records(model: Asking, bound: BoundQuery, known: _Known, random_state: RandomState) -> Answer:
    _refuse_by(bound)
    count = bound.query.count or 0
    most = queries.MAX_CELLS // len(model.domain)
    if count > most:
        raise bound.error(f"At most {most:,} records of this model are drawn at once.")
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
    found = _informed(bound, known, np.random.default_rng(random_state))
    unit = "bits" if bits else "nats"
    scale = _SCALES[unit]
    error = None if found.standard_error is None else found.standard_error / scale
    notes = known.notes
    if error is not None:
        notes += (
            f"Estimated from {found.draws:,} drawn records, as the table is too large to go "
            f"through: standard error {error:.2g} {unit}.",
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


def _informed(bound: BoundQuery, known: _Known, rng: np.random.Generator) -> Nats:
    model = known.shares, known.factors
    if bound.query.verb == "H":
        return conditional_entropy(*model, bound.asked, bound.by, rng)
    return mutual_information(*model, bound.asked, bound.against, bound.by, rng)
