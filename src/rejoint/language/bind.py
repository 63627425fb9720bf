"""Binding of a question to a domain: positions of variables and likelihoods of levels."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.language.grammar import parse
from rejoint.language.match_levels import LevelMatcher, list_known, suggest
from rejoint.language.query import Condition, Item, Name, Query, Soft
from rejoint.language.tokens import QueryError, quote

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoundQuery:
    """A question with the positions of its variables and the likelihoods of its levels.

    Attributes
    ----------
    query : Query
    text : str
        The text that positions in the question refer to.
    asked, against, by : tuple of int
        Variables asked for, after the semicolon, and named without a value right of the bar.
    events, evidence : dict of int to ndarray
        By variable, a number for each level: conditions left and right of the bar.
    evidence_text : dict of int to str
        The evidence as it is written, by variable.
    notes : tuple of str
        How labels were read, where that is not obvious.

    Examples
    --------
    >>> bound = bind("P(a | b, c != x)", Domain.of({"a": 2, "b": 2, "c": ["x", "y"]}))
    >>> bound.asked, bound.by, bound.evidence
    ((0,), (1,), {2: array([0., 1.])})
    """

    query: Query
    text: str
    asked: tuple[int, ...]
    against: tuple[int, ...]
    by: tuple[int, ...]
    events: dict[int, FloatArray]
    evidence: dict[int, FloatArray]
    evidence_text: dict[int, str]
    notes: tuple[str, ...]

    def error(self, reason: str, at: int | None = None) -> QueryError:
        """Return an error at a place of the question; at its verb or count by default."""
        return QueryError(reason, self.text, self.query.at if at is None else at)


def bind(query: Query | str, domain: Domain) -> BoundQuery:
    """Look up the names and labels of a question.

    Parameters
    ----------
    query : Query or str
        A text is parsed. For a Query, errors point into its canonical text.
    domain : Domain

    Returns
    -------
    BoundQuery

    Raises
    ------
    QueryError
        For an unknown name or level (with the nearest one), a variable named twice, a comparison
        of levels without order, a number that would cut a bin.

    Examples
    --------
    >>> bind("P(smoke = yess)", Domain.of({"smoke": ["yes", "no"]}))
    Traceback (most recent call last):
    ...
    rejoint.language.tokens.QueryError: "smoke" has no level "yess"; its levels are "yes", "no". \
Did you mean "yes"?
        P(smoke = yess)
                  ^
    """
    text = str(query) if isinstance(query, Query) else query
    return _Binder(parse(text), text, domain).bound()


class _Binder:
    def __init__(self, query: Query, text: str, domain: Domain) -> None:
        self.query, self.text, self.domain = query, text, domain
        self.levels: dict[int, LevelMatcher] = {}

    def bound(self) -> BoundQuery:
        query = self.query
        asked, events = self._split(query.asked)
        against, _ = self._split(query.against)
        by, evidence = self._split(query.given)
        self._refuse_twice([*query.asked, *query.against, *query.given])
        texts: dict[int, str] = {}
        for item in query.given:
            if not isinstance(item, Name):
                n = self._index(item.name)
                texts[n] = f"{texts[n]}, {item}" if n in texts else str(item)
        notes = tuple(levels.note for levels in self.levels.values() if levels.note)
        return BoundQuery(query, self.text, asked, against, by, events, evidence, texts, notes)

    def _split(self, items: Iterable[Item]) -> tuple[tuple[int, ...], dict[int, FloatArray]]:
        """Return variables without a value, and likelihoods of conditions; all conditions hold."""
        names: list[int] = []
        conditions: dict[int, list[Condition]] = {}
        likelihoods: dict[int, FloatArray] = {}
        for item in items:
            if isinstance(item, Name):
                names.append(self._index(item))
                continue
            n = self._index(item.name)
            levels = self.levels.setdefault(n, LevelMatcher(self.domain.variables[n], self.text))
            mine = conditions.setdefault(n, [])
            mine.append(item)
            found = levels.likelihood(*mine)
            if any(isinstance(each, Soft) for each in mine):
                # Products of soft evidence may be tiny; only ratios matter.
                found = found / (found.max() or 1.0)
            likelihoods[n] = found
        return tuple(names), likelihoods

    def _index(self, name: Name) -> int:
        if name.text in self.domain:
            return self.domain.index(name.text)
        names = self.domain.names
        near = suggest(name.text, names) or self._as_level(name.text)
        near = near or f" The variables are {list_known(names)}."
        raise QueryError(f"No variable is called {quote(name.text)}.{near}", self.text, name.at)

    def _as_level(self, text: str) -> str:
        """Return advice for a label without its variable."""
        owners = [v.name for v in self.domain if text in v.levels]
        if not owners:
            return ""
        return f" It is a level of {quote(owners[0])}: write {Name(owners[0])} = {Name(text)}."

    def _refuse_twice(self, items: Iterable[Item]) -> None:
        seen: set[str] = set()
        for item in items:
            if isinstance(item, Name):
                if item.text in seen:
                    reason = f"{quote(item.text)} is there twice without a value."
                    raise QueryError(reason, self.text, item.at)
                seen.add(item.text)
