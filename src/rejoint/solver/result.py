"""FitResult: the result of a fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isfinite
from os import PathLike
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rejoint.language.query import Name, Query
from rejoint.messages import Message, join_messages
from rejoint.pmf.answer import Answer
from rejoint.pmf.ask import RandomState
from rejoint.pmf.counts import Counts
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.search import best_run, is_interrupted
from rejoint.solver.solver import Record, Run, Stop
from rejoint.text import cite, format_number, plural

if TYPE_CHECKING:
    from rejoint.estimation.policy import Policy
    from rejoint.identifiability.ambiguity import Ambiguity
    from rejoint.rank.selection import Selection


_WIDTH = 100  # characters of a line of a result's text
_MOST_LINES = 2  # under one of its headings

#: Where the whole text under a heading is found.
_REST = {"chosen": ".choice", "tables": ".agreement", "stopped": ".stop"}


@dataclass(frozen=True)
class FitResult:
    """A fitted model and how it was fitted; ``print`` shows it in about ten lines.

    Parameters
    ----------
    pmf : LowRankPMF
        The model, classes in decreasing order of weight. Where it was fitted by Bayes, it answers
        by the posterior mean.
    stop : str
        Why the fit stopped, how well the tables are met, and what to try.
    history : tuple of Record
        Objective and residual after every step of every start.
    error : float
        Relative error of the tables, ``||X - Xhat|| / ||X||``.
    residual : float
        Residual of the optimality conditions.
    starts : tuple of Run
        What each start reached, in the order they were run.
    misfits : mapping
        For each table (a tuple of names) the total variation distance between the table and
        the model's, worst first; empty where the fit was to records.
    agreement : str
        Whether answers were moved towards tables of two variables of the records, and which tables
        still differ beyond chance; empty where only tables were given.
    log_likelihood : float
        Of the records, at ``pmf.representative``; NaN where only tables were given.
    choice : str
        Which estimator and rank were chosen, and why.
    selection : Selection, optional
        The curve that the rank was chosen from, where it was.
    policy : Policy, optional
        The tuned numbers of a fit to records.
    classes_are_groups : bool
        Whether classes can be read as groups of records. They cannot where the model is an average
        of several models or a grid over continuous traits: no report then lists them as findings.
    records : float
        Number of records, or sum of their weights; NaN where only tables were given.
    counts : Counts, optional
        The records of the fit (of a Scan their tables of one and two variables), which stand beside
        the answers of :meth:`ask`; None where only tables were given, or for ``counts=False``.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.from_tables({("a", "b"): [[30, 10], [10, 50]]})
    >>> result = rj.factorize(tables, rank=2, random_state=0)
    >>> result.error < 1e-9
    True
    >>> result.stop.split(":")[0]
    'The tables are met exactly'
    >>> print(result)  # doctest: +ELLIPSIS
    FitResult
      fitted   2 variables (a, b), 1 table of 2 variables
      model    2 classes
      tables   relative error ...; the worst, (a, b), has ... % of its mass elsewhere
      stopped  The tables are met exactly: ...
      next     .ask('P(a | b)'), .pmf.sample(5), .save('model.rejoint')
    """

    pmf: LowRankPMF
    stop: str
    history: tuple[Record, ...]
    error: float
    residual: float
    starts: tuple[Run, ...] = field(repr=False)
    misfits: dict[tuple[str, ...], float] = field(default_factory=dict, repr=False)
    agreement: str = ""
    log_likelihood: float = float("nan")
    choice: str = ""
    selection: "Selection | None" = field(default=None, repr=False)
    policy: "Policy | None" = field(default=None, repr=False)
    classes_are_groups: bool = field(default=True, repr=False)
    records: float = float("nan")
    counts: Counts | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        pmf: LowRankPMF,
        runs: Sequence[Run],
        achieved: str,
        *,
        best: Run | None = None,
        unit: str = "step",
        more: str = "",
        **facts: Any,
    ) -> "FitResult":
        """Return the result of some runs, with the sentence that says why they stopped.

        Parameters
        ----------
        pmf : LowRankPMF
            The model.
        runs : sequence of Run
            What each start reached.
        achieved : str
            What the fit reached, such as ``"Log-likelihood -310.2"``.
        best : Run, optional
            The run that the model is from; the one of lowest objective by default.
        unit : str
            What a step is called.
        more : str
            What else to say.
        **facts
            Further fields of the result.

        Examples
        --------
        >>> from rejoint.model import Model
        >>> run = Run(Model.of([1.0], [[[0.5], [0.5]]]), 0.7, 1e-9, float("nan"), Stop.PROGRESS)
        >>> FitResult.of(LowRankPMF([1.0], [[[0.5], [0.5]]]), [run], "Log-likelihood -7").stop
        'Log-likelihood -7 after 0 steps from 1 start; it has stopped improving (residual 1.0e-09).'
        """
        best = best or runs[best_run(runs)]
        reason = Stop.INTERRUPTED if is_interrupted(runs) else best.stop
        steps = sum(record.step > 0 for run in runs for record in run.records)
        residual = f" (residual {best.residual:.1e})" if isfinite(best.residual) else ""
        stop = (
            f"{achieved} after {plural(steps, unit)} from {plural(len(runs), 'start')}; "
            f"{reason.text}{residual}."
        )
        return cls(
            pmf=pmf,
            stop=join_messages([stop, more]),
            history=tuple(record for run in runs for record in run.records),
            error=best.error,
            residual=best.residual,
            starts=tuple(runs),
            **facts,
        )

    def ask(
        self,
        text: str | Query,
        *,
        bits: bool = False,
        level: float | None = 0.9,
        random_state: RandomState = None,
    ) -> Answer:
        """Answer a question by the best of what is counted and what the model says.

        P and E are answered by the composite: shares of the records of the fit, shrunk towards the
        model's by as much as records are few and the model has been right in the table of the
        question. The answer has both beside it, and bounds that hold for it. The model answers
        alone (as ``pmf.ask`` does) where there are no counts, for other questions, and where hardly
        a record holds all variables of the question and meets its condition; a note says so.

        Parameters
        ----------
        text, bits, level, random_state
            As for :meth:`LowRankPMF.ask`.

        Returns
        -------
        Answer
            With ``counted``, ``model`` and ``records``.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.datasets.asia().sample(2000, random_state=0)
        >>> result = rj.estimate(data, rank=4, random_state=0)
        >>> print(result.ask("P(dysp = yes | smoke = yes)"))
        P(dysp = yes | smoke = yes) = 0.5... (0.5... to 0.5...); counted 0.558 of 996, model 0.5...
        In parentheses: 90 % interval of count and model together.
        The evidence has probability 0.4...
        """
        pmf = self.pmf.with_counts(self.counts)
        return pmf.ask(text, bits=bits, level=level, random_state=random_state)

    def save(
        self,
        path: str | PathLike[str],
        *,
        notes: Mapping[str, Any] | None = None,
        records: bool = False,
    ) -> None:
        """Write the model to a file, with counts for its answers; :func:`rejoint.load` reads it.

        Parameters
        ----------
        path, notes
            As for :meth:`LowRankPMF.save`, which writes the model alone.
        records : bool
            Write the records of the fit. By default the file has their tables of one and two
            variables, each number rounded to the nearest multiple of 5 (1 and 2 become 0), so that
            no record can be read off.

        Examples
        --------
        >>> import rejoint as rj, tempfile, pathlib
        >>> data = rj.datasets.asia().sample(2000, random_state=0)
        >>> result = rj.estimate(data, rank=2, solver="ml", random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(pathlib.Path(folder, "asia.rejoint"))
        ...     rj.load(pathlib.Path(folder, "asia.rejoint")).ask("P(smoke)").records
        2000.0
        """
        self.pmf.with_counts(self.saved_counts(records=records)).save(path, notes=notes)

    def saved_counts(self, *, records: bool = False) -> Counts | None:
        """Return the counts that a file has: the records, or rounded tables of two variables.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.from_tables({("a", "b"): [[30, 10], [10, 50]]})
        >>> rj.factorize(tables, rank=2, random_state=0).saved_counts() is None
        True
        """
        if self.counts is None or (records and self.counts.records is not None):
            return self.counts
        return self.counts.without_records()

    @property
    def posterior(self) -> LowRankPMF | None:
        """The model ``pmf`` where it has posterior draws; None unless the fit was by Bayes.

        Its draws are ``draws``, their mean is ``mixture``, and ``interval`` gives bounds.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.from_tables({("a", "b"): [[30, 10], [10, 50]]})
        >>> rj.factorize(tables, rank=2, random_state=0).posterior is None
        True
        """
        return self.pmf if self.pmf.draws else None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.from_tables({("a", "b"): [[30, 10], [10, 50]]})
        >>> rj.factorize(tables, rank=2, random_state=0).interrupted
        False
        """
        return is_interrupted(self.starts)

    def ambiguity(
        self, names: str | Sequence[str], given: Mapping[str, Any] | None = None
    ) -> "Ambiguity":
        """Find two models with the same tables whose answers to a question differ the most.

        See :func:`rejoint.identifiability.ambiguity`: this is it with the tables of the fit.

        Examples
        --------
        >>> import rejoint as rj
        >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> result = rj.factorize(rj.Marginals.from_pmf(truth, order=3), rank=2)
        >>> result.ambiguity("x0", given={"x1": 0, "x2": 0, "x3": 0}).distance
        0.0
        """
        from rejoint.identifiability.ambiguity import ambiguity  # its parts are seldom needed

        if not self.misfits:
            raise ValueError(
                "This model was fitted to records, not to tables: ask "
                "identifiability.ambiguity(result.pmf, names, subsets=[...]) about tables."
            )
        return ambiguity(self.pmf, names, given, subsets=list(self.misfits))

    def facts(self) -> list[tuple[str, str]]:
        """Return all facts about the fit, each with a heading, in order.

        Printed, a result shows of each heading what fits on two lines.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.from_tables({("a", "b"): [[30, 10], [10, 50]]})
        >>> rj.factorize(tables, rank=2, random_state=0).facts()[1]
        ('model', '2 classes')
        """
        found = [
            ("fitted", self._describe_source()),
            ("model", self._describe_model()),
            *(("chosen", part) for part in _parts(self.choice)),
            ("likelihood", self._describe_likelihood()),
            *(("tables", part) for part in _parts(self.agreement or self._describe_tables())),
            *(("stopped", part) for part in _parts(self.stop)),
            ("next", self._describe_next()),
        ]
        return [(heading, text) for heading, text in found if text]

    def _describe_source(self) -> str:
        names = self.pmf.domain.names
        shown = f"{', '.join(map(str, names[:6]))}{', ...' * (len(names) > 6)}"
        found = f"{plural(len(names), 'variable')} ({shown})"
        if isfinite(self.records):
            noun = "record" if self.records == 1 else "records"
            return f"{format_number(round(self.records, 1))} {noun} of {found}"
        if not self.misfits:
            return found
        sizes = sorted({len(subset) for subset in self.misfits})
        orders = " or ".join(map(str, sizes))
        tables = plural(len(self.misfits), "table")
        return f"{found}, {tables} of {orders} variable{'s' * (sizes != [1])}"

    def _describe_model(self) -> str:
        pmf = self.pmf
        classes = plural(pmf.rank, "class", "classes")
        if pmf.mixture is pmf:
            return classes
        answers = plural(pmf.mixture.rank, "class", "classes")
        draws = f", intervals from {plural(len(pmf.draws), 'posterior draw')}" if pmf.draws else ""
        return f"{classes} to inspect; answers come from the posterior mean of {answers}{draws}"

    def _describe_likelihood(self) -> str:
        value, records = self.log_likelihood, self.records
        if not isfinite(value):
            return ""
        return f"log {value / records:.4f} per record" if records > 0 else f"log {value:,.2f}"

    def _describe_tables(self) -> str:
        if not self.misfits:
            return ""
        worst, distance = next(iter(self.misfits.items()))
        return (
            f"relative error {self.error:.2g}; the worst, ({', '.join(map(str, worst))}), has "
            f"{100 * distance:.2g} % of its mass elsewhere"
        )

    def _describe_next(self) -> str:
        first, *others = (str(Name(str(name))) for name in self.pmf.domain.names)
        question = f"P({first} | {others[0]})" if others else f"P({first})"
        return f".ask({cite(question)}), .pmf.sample(5), .save('model.rejoint')"

    def __repr__(self) -> str:
        facts: dict[str, str] = {}
        for heading, text in self.facts():
            facts[heading] = f"{facts[heading]} {text}" if heading in facts else text
        wide = max(map(len, facts)) + 2
        lines = [type(self).__name__]
        for heading, text in facts.items():
            more = f" ... ({_REST[heading]})" if heading in _REST else " ..."
            shown = wrap(text, _WIDTH - wide - 2, max_lines=_MOST_LINES, placeholder=more)
            for at, line in enumerate(shown):
                lines.append(f"  {('' if at else heading).ljust(wide)}{line}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows, last = "", ""
        for heading, text in self.facts():
            head = heading if heading != last else ""
            rows += (
                f"<tr><th style='text-align:left'>{escape(head)}</th>"
                f"<td style='text-align:left'>{escape(text)}</td></tr>"
            )
            last = heading
        return f"<table><caption>{type(self).__name__}</caption><tbody>{rows}</tbody></table>"


def _parts(text: str) -> list[str]:
    """The parts that a text was joined of, as far as these are known."""
    parts = text.parts if isinstance(text, Message) else ()
    return [str(part) for part in parts or (text,) if part]
