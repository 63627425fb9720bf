"""Whether a model is determined by its tables: one verdict for all interfaces."""

from math import prod
from typing import NamedTuple

from rejoint.domain.domain import Domain
from rejoint.identifiability.assessment import MOST_LISTED_TABLES, MOST_TABLE_VARIABLES
from rejoint.identifiability.certificate import MOST_CERTIFIED_NUMBERS, certify
from rejoint.identifiability.layout import TableLayout
from rejoint.identifiability.rank_report import report
from rejoint.messages import join_messages
from rejoint.pmf.given_tables import GivenTables
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_count, plural


class ModelVerdict(NamedTuple):
    """What tables say about a model.

    Parameters
    ----------
    question : str
        What is asked, and of which tables.
    verdict : str
        The answer.
    details : tuple of str
        Further sentences.

    Examples
    --------
    >>> ModelVerdict("Is it?", "It is.").details
    ()
    """

    question: str
    verdict: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return join_messages([self.verdict, *self.details], "\n")


def model_verdict(pmf: LowRankPMF) -> ModelVerdict | None:
    """Return whether the tables of a model determine it; None if that is not computed.

    Of a model from tables it is asked of the tables that were given, over all joints, or over those
    of its rank where a certificate says that there is no other. Of any other model it is asked of
    all tables of three variables, at its rank.

    Examples
    --------
    >>> import rejoint as rj
    >>> pairs = {("a", "b"): [[1, 2], [3, 4]], ("b", "c"): [[1, 3], [2, 4]]}
    >>> tables = rj.Marginals.from_tables(pairs)
    >>> print(model_verdict(rj.factorize(tables).pmf).verdict)
    These tables do not determine the joint: they have 5 independent numbers, a joint of these \
variables has 7. Many joints have these tables; this is one of them.
    """
    if pmf.tables is not None:
        return _verdict_on_given(pmf.tables, pmf.mixture.rank)
    if len(pmf.domain) < 3:
        return None
    question = "Could another model of the same rank have all tables of three variables?"
    general = report(pmf.domain, rank=pmf.rank, order=3).verdict
    if pmf.rank * sum(pmf.domain.shape) > MOST_CERTIFIED_NUMBERS:
        return ModelVerdict(question, general)
    in_general = join_messages(["In general:", general])
    return ModelVerdict(question, certify(pmf, order=3).verdict, (in_general,))


def _verdict_on_given(tables: GivenTables, rank: int) -> ModelVerdict:
    question = "Do the tables that it was fitted to determine the joint?"
    if any(len(subset) == len(tables.domain) for subset in tables.subsets):
        return ModelVerdict(question, "Yes: one table holds all variables.")
    layout, basis = _layout(tables), "Each answer states its basis."
    if tables.identified is not None:
        verdict = f"At rank {rank} they do. {tables.identified}"
        basis = f"Joints of a higher rank may have these tables, too. {basis}"
    elif tables.marginals is not None and tables.marginals.moments:
        verdict = "It was not checked whether these tables and moments determine the joint."
    else:
        verdict = (
            f"These tables do not determine the joint{_describe_numbers(tables, layout)}. Many "
            "joints have these tables; this is one of them."
        )
    apart = "" if layout is None else layout.apart_text
    return ModelVerdict(question, verdict, tuple(filter(None, [apart, basis])))


def _describe_numbers(tables: GivenTables, layout: TableLayout | None) -> str:
    """Say how many numbers the tables and a joint have; nothing where that takes long to count."""
    if layout is None or not layout.is_countable:
        return ""
    shown = format_count(prod(tables.domain.shape) - 1)
    said = plural(layout.equations, "independent number")
    return f": they have {said}, a joint of these variables has {shown}"


def _layout(tables: GivenTables) -> TableLayout | None:
    subsets = set(tables.subsets)
    if not 0 < len(subsets) <= MOST_LISTED_TABLES or max(map(len, subsets)) > MOST_TABLE_VARIABLES:
        return None
    reached = sorted({n for subset in subsets for n in subset})
    place = {n: k for k, n in enumerate(reached)}
    domain = Domain(tuple(tables.domain[n] for n in reached))
    return TableLayout.from_subsets(domain, {tuple(place[n] for n in s) for s in subsets})
