"""Binding of a question to a domain: positions of variables and likelihoods of levels."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Bin, Contents
from rejoint.domain.variable import Variable
from rejoint.language.grammar import parse
from rejoint.language.query import (
    Among,
    Applies,
    Between,
    Condition,
    Item,
    Label,
    Name,
    Query,
    RangeEnd,
    Soft,
)
from rejoint.language.tokens import QueryError, quote

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_LONG = 100  # texts beyond this length get no suggestion: comparing them would take long


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
        How the question was read, where that is not obvious.

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
        notes = self._apply(asked, evidence, texts) if query.verb == "E" else ()
        query = replace(query, headline=self._headline())
        return BoundQuery(query, self.text, asked, against, by, events, evidence, texts, notes)

    def _apply(
        self, asked: tuple[int, ...], evidence: dict[int, FloatArray], texts: dict[int, str]
    ) -> tuple[str, ...]:
        """Give a variable that a mean is asked of a value, and say so, if it may have none."""
        (n,) = asked
        variable = self.domain.variables[n]
        if variable.empty is None:
            return ()
        has_value = np.arange(len(variable)) < len(variable.values)
        evidence[n] = evidence[n] * has_value if n in evidence else has_value.astype(np.float64)
        condition = str(Applies(Name(variable.name)))
        texts[n] = f"{texts[n]}, {condition}" if n in texts else condition
        return (f"The mean is over {who_has(variable)}.",)

    def _headline(self) -> str:
        """Return the question with the bins that it was answered for in place of numbers."""
        shown: dict[str, Any] = {
            part: tuple(map(self._in_bins, getattr(self.query, part)))
            for part in ("asked", "given")
        }
        return str(replace(self.query, **shown))

    def _in_bins(self, item: Item) -> Item | str:
        read_as = {} if isinstance(item, Name) else self.levels[self._index(item.name)].read_as
        if isinstance(item, Soft) and read_as:
            pairs = (f"{read_as.get(x.text, str(x))}: {number}" for x, number in item.likelihoods)
            return f"{item.name} ~ {{{', '.join(pairs)}}}"
        if not isinstance(item, Among) or not any(x.text in read_as for x in item.labels):
            return item
        bins = list(dict.fromkeys(read_as.get(x.text, str(x)) for x in item.labels))
        if len(bins) > 1:
            return f"{item.name} {'not in' if item.negated else 'in'} {{{', '.join(bins)}}}"
        if bins[0].startswith("["):
            return f"{item.name} {'not in' if item.negated else 'in'} {bins[0]}"
        return f"{'not ' if item.negated else ''}{item.name} {bins[0]}"

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
                    reason = f"{quote(item.text)} appears twice without a value."
                    raise QueryError(reason, self.text, item.at)
                seen.add(item.text)


def suggest(text: str, known: Sequence[str]) -> str:
    """Return " Did you mean ...?" with the nearest known text, or nothing.

    Examples
    --------
    >>> suggest("YES", ["no", "yes"]), suggest("smoek", ["smoke"]), suggest("zzz", ["smoke"])
    (' Did you mean "yes"?', ' Did you mean "smoke"?', '')
    """
    if len(text) > _LONG:
        return ""
    short = [name for name in known if len(name) <= _LONG]
    near = [name for name in short if name.casefold() == text.casefold()]
    near = near or difflib.get_close_matches(text, short, n=1)
    return f" Did you mean {quote(near[0])}?" if near else ""


def list_known(texts: Sequence[str], most: int = 6) -> str:
    """Return the first few known texts in quotes.

    Examples
    --------
    >>> list_known(["a", "b"]), list_known(["x"] * 9, most=2)
    ('"a", "b"', '"x", "x", ... (9 in all)')
    """
    shown = ", ".join(quote(text) for text in texts[:most])
    return shown if len(texts) <= most else f"{shown}, ... ({len(texts)} in all)"


class LevelMatcher:
    """Finds the levels of one variable that a question names.

    Examples
    --------
    >>> from rejoint.language import parse
    >>> age = Variable("age", (Bin(0, 18), Bin(18, 65), Bin(65, 99, True)))
    >>> text = "P(age >= 18)"
    >>> LevelMatcher(age, text).likelihood(parse(text).asked[0])
    array([0., 1., 1.])
    """

    def __init__(self, variable: Variable, text: str) -> None:
        self.variable, self.text = variable, text
        self.read_as: dict[str, str] = {}  # numbers, and the bins around them

    @cached_property
    def texts(self) -> list[str]:
        """The levels as they are written."""
        return [str(level) for level in self.variable.levels]

    @cached_property
    def _by_text(self) -> dict[str, int]:
        """Levels by text; where two have the same text, the level that is a str."""
        found = {text: i for i, text in reversed(list(enumerate(self.texts)))}
        found |= {x: i for i, x in enumerate(self.variable.levels) if isinstance(x, str)}
        for i, level in enumerate(self.variable.levels):
            if isinstance(level, bool):
                found.setdefault(str(level).lower(), i)
        return found

    @cached_property
    def _by_number(self) -> dict[float, int]:
        levels = enumerate(self.variable.levels)
        return {x: i for i, x in levels if isinstance(x, (int, float)) and not isinstance(x, bool)}

    def likelihood(self, *conditions: Condition) -> FloatArray:
        """Return a number for each level: its likelihood, or its share that meets all conditions.

        The share of a level is 1 or 0, but for a bin that a comparison cuts.
        """
        found = np.ones(len(self._owner))
        for condition in conditions:
            if isinstance(condition, Soft):
                found = found * self._soft(condition)[self._owner]
                continue
            if isinstance(condition, Among):
                meets = self._among(condition)[self._owner]
            elif isinstance(condition, Applies):
                meets = self._has_value
            else:
                meets = self._between(condition)
            found = np.where(meets != condition.negated, found, 0.0)
            if isinstance(condition, Between):
                found[~self._has_value] = 0.0  # it has no place in the order, negated or not
        if self._contents is None:
            return found
        masses = [np.array([mass for _, mass in each]) for each in self._contents]
        whole = np.concatenate([mass / mass.sum() for mass in masses])
        shares = np.bincount(self._owner, weights=found * whole, minlength=len(self.variable))
        # A bin that is met as a whole is met exactly, whatever its shares add up to.
        least = np.minimum.reduceat(found, self._starts)
        most = np.maximum.reduceat(found, self._starts)
        return np.asarray(np.where(least == most, most, shares))

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where the values of each bin begin."""
        sizes = [len(each) for each in self._contents or ()]
        return np.concatenate([[0], np.cumsum(sizes[:-1], dtype=np.intp)]).astype(np.intp)

    @cached_property
    def _owner(self) -> NDArray[np.intp]:
        """The level of each value that conditions are looked up for: of each bin's contents."""
        contents = self._contents
        levels = np.arange(len(self.variable))
        return levels if contents is None else np.repeat(levels, [len(each) for each in contents])

    @cached_property
    def _contents(self) -> Contents | None:
        """The contents of each level: NaN where it is no bin."""
        contents, more = self.variable.contents, len(self.variable) - len(self.variable.values)
        return None if contents is None else contents + (((np.nan, 1.0),),) * more

    @cached_property
    def _has_value(self) -> BoolArray:
        """Which values are not of the level of empty cells."""
        return np.asarray(self._owner < len(self.variable.values))

    def code(self, label: Label) -> int:
        """Return the position of the level that a label names; a number names the bin around it."""
        if label.number:
            number = _number(label.text)
            code = self._by_number.get(number, self._by_text.get(label.text, -1))
            if code >= 0:
                return code
            code = next((i for i, x in enumerate(self.variable.levels) if _holds(x, number)), -1)
            if code >= 0:
                self.read_as[label.text] = self.texts[code]
        else:
            code = self._by_text.get(label.text, -1)
        if code < 0:
            self._fail(
                f"{quote(self.variable.name)} has no level {quote(label.text)}; its levels are "
                f"{list_known(self.texts)}.{suggest(label.text, self.texts)}",
                label,
            )
        return code

    def _value_code(self, label: Label) -> int:
        """Return the position of a level that has a place in the order."""
        code = self.code(label)
        if code >= len(self.variable.values):
            self._fail(f"{quote(label.text)} has no place in the order of the levels.", label)
        return code

    def _fail(self, reason: str, label: Label) -> NoReturn:
        raise QueryError(reason, self.text, label.at)

    def _among(self, condition: Among) -> BoolArray:
        meets = np.zeros(len(self.variable), dtype=bool)
        meets[[self.code(label) for label in condition.labels]] = True
        return meets

    def _soft(self, condition: Soft) -> FloatArray:
        likelihood = np.zeros(len(self.variable))
        seen: set[int] = set()
        for label, number in condition.likelihoods:
            code = self.code(label)
            if code in seen:
                self._fail(f"The level {quote(self.texts[code])} appears twice.", label)
            seen.add(code)
            likelihood[code] = float(number.text)
            if not np.isfinite(likelihood[code]):
                self._fail("This number is too large.", number)
        if not likelihood.any():
            self._fail("At least one likelihood must be above zero.", condition.likelihoods[0][1])
        return np.asarray(likelihood / likelihood.max())

    def _between(self, condition: Between) -> BoolArray:
        """Return which values lie between two bounds: of levels, or of the contents of bins."""
        self._check_order(condition)
        meets = np.ones(len(self._owner), dtype=bool)
        if condition.low is not None:
            meets &= ~self._below(condition.low, inclusive=not condition.low.included)
        if condition.high is not None:
            meets &= self._below(condition.high, inclusive=condition.high.included)
        return meets

    @property
    def _is_numeric(self) -> bool:
        return len(self._by_number) == len(self.variable.values)

    def _check_order(self, condition: Between) -> None:
        if not self.variable.scale and not self._is_numeric:
            name = self.variable.name
            raise QueryError(
                f"{quote(name)} is nominal: its levels have no order to compare by. List the "
                f"levels that are meant ({name} in {{...}}), or declare the variable ordinal when "
                "the data are read.",
                self.text,
                condition.name.at,
            )

    def _below(self, bound: RangeEnd, inclusive: bool) -> BoolArray:
        """Return which values lie below a bound, or at it if inclusive."""
        number = _number(bound.label.text) if bound.label.number else None
        if number is not None and self.variable.kind == "binned":
            return self._bins_below(bound, number, inclusive)
        if self._is_numeric:
            levels = list(self._by_number)  # as they are: whole numbers may exceed any float
            limit = levels[self._value_code(bound.label)] if number is None else number
            below = [x <= limit if inclusive else x < limit for x in levels]
            return np.pad(np.array(below), (0, len(self.variable) - len(levels)))
        places, code = self._owner, self._value_code(bound.label)
        return places <= code if inclusive else places < code

    def _bins_below(self, bound: RangeEnd, number: float, inclusive: bool) -> BoolArray:
        bins = [level for level in self.variable.levels if isinstance(level, Bin)]
        below = np.array([_is_below(b, number, inclusive) for b in bins])
        if self._contents is not None:
            values = np.array([value for each in self._contents for value, _ in each])
            return values <= number if inclusive else values < number
        above = np.array([_is_above(b, number, inclusive) for b in bins])
        cut = np.flatnonzero(~below & ~above)
        if len(cut):
            split = bins[cut[0]]
            self._fail(
                f"The bin {split} of {quote(self.variable.name)} would be cut at "
                f"{bound.label.text}, and the distribution within it is not known: "
                f"{_way_out(split, number)}.",
                bound.label,
            )
        return np.pad(below, (0, len(self.variable) - len(bins)))


def who_has(variable: Variable) -> str:
    """Return words for the records in which a variable has a value.

    Examples
    --------
    >>> from rejoint.domain.variable import EmptyCells
    >>> who_has(Variable("income", (1, 2)).with_empty(EmptyCells("work", ("no",))))
    'those to whom income applies'
    """
    if variable.empty is None or variable.empty.parent is None:
        return f"those with a value of {variable.name}"
    return f"those to whom {variable.name} applies"


def _is_below(interval: Bin, number: float, inclusive: bool) -> bool:
    """Whether all of a bin is below a number (or at it, if inclusive)."""
    if interval.closed_right and np.isfinite(interval.right):
        return interval.right <= number if inclusive else interval.right < number
    return interval.right <= number


def _is_above(interval: Bin, number: float, inclusive: bool) -> bool:
    """Whether all of a bin is above a number (or at it, unless inclusive)."""
    return interval.left > number if inclusive else interval.left >= number


def _way_out(split: Bin, number: float) -> str:
    if number == split.left:
        return f"it holds {number:.15g} itself, so write < or >="
    if number == split.right:
        return f"it holds {number:.15g} itself, so write <= or >"
    edges = [f"{edge:.15g}" for edge in split[:2] if np.isfinite(edge)]
    return f"compare with {' or '.join(edges)}" if edges else "it is the only one"


def _holds(level: object, number: float) -> bool:
    return isinstance(level, Bin) and number in level


def _number(text: str) -> float:
    """Return the number that a word stands for; integers of up to 300 digits exactly."""
    digits = text.lstrip("+-")
    return int(text) if len(digits) <= 300 and digits.isdecimal() else float(text)
