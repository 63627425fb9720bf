"""Binding of a question to a domain: positions of variables and likelihoods of levels."""

import difflib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Bin
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
        query, seen = self.query, set[str]()
        asked, events, _ = self._split(query.asked)
        against, _, _ = self._split(query.against)
        by, evidence, texts = self._split(query.given)
        for item in (*query.asked, *query.against, *query.given):
            if isinstance(item, Name):
                if item.text in seen:
                    reason = f"{quote(item.text)} appears twice without a value."
                    raise QueryError(reason, self.text, item.at)
                seen.add(item.text)
        notes: tuple[str, ...] = ()
        if query.verb == "E" and (variable := self.domain.variables[asked[0]]).empty is not None:
            # A mean is of those who have a value.
            (n,) = asked
            has_value = np.arange(len(variable)) < len(variable.values)
            evidence[n] = evidence.get(n, np.ones(len(variable))) * has_value
            condition = str(Applies(Name(variable.name)))
            texts[n] = f"{texts[n]}, {condition}" if n in texts else condition
            notes = (f"The mean is over {who_has(variable)}.",)
        if any(levels.read_as for levels in self.levels.values()):
            shown: dict[str, Any] = {
                part: tuple(map(self._in_bins, getattr(query, part))) for part in ("asked", "given")
            }
            query = replace(query, headline=str(replace(query, **shown)))
        return BoundQuery(query, self.text, asked, against, by, events, evidence, texts, notes)

    def _in_bins(self, item: Item) -> Item | str:
        """Return a condition with the bins that it was answered for in place of numbers."""
        read_as = {} if isinstance(item, Name) else self.levels[self._index(item.name)].read_as
        if isinstance(item, Soft) and read_as:
            pairs = (f"{read_as.get(x.text, str(x))}: {number}" for x, number in item.likelihoods)
            return f"{item.name} ~ {{{', '.join(pairs)}}}"
        if not isinstance(item, Among) or not any(x.text in read_as for x in item.labels):
            return item
        bins = list(dict.fromkeys(read_as.get(x.text, str(x)) for x in item.labels))
        if len(bins) > 1 or bins[0].startswith("["):
            levels = bins[0] if len(bins) == 1 else f"{{{', '.join(bins)}}}"
            return f"{item.name} {'not in' if item.negated else 'in'} {levels}"
        return f"{'not ' if item.negated else ''}{item.name} {bins[0]}"

    def _split(
        self, items: Iterable[Item]
    ) -> tuple[tuple[int, ...], dict[int, FloatArray], dict[int, str]]:
        """Return variables without a value; likelihoods and texts of the conditions of others."""
        names, conditions = list[int](), dict[int, list[Condition]]()
        likelihoods = dict[int, FloatArray]()
        for item in items:
            if isinstance(item, Name):
                names.append(self._index(item))
                continue
            n = self._index(item.name)
            levels = self.levels.setdefault(n, LevelMatcher(self.domain.variables[n], self.text))
            conditions.setdefault(n, []).append(item)
            likelihoods[n] = levels.likelihood(*conditions[n])
        texts = {n: ", ".join(map(str, own)) for n, own in conditions.items()}
        return tuple(names), likelihoods, texts

    def _index(self, name: Name) -> int:
        with suppress(KeyError):
            return self.domain.index(name.text)
        near = suggest(name.text, self.domain.names)
        owner = next((v.name for v in self.domain if name.text in v.levels), None)
        if not near and owner is not None:
            near = f" It is a level of {quote(owner)}: write {Name(owner)} = {Name(name.text)}."
        near = near or f" The variables are {list_known(self.domain.names)}."
        raise QueryError(f"No variable is called {quote(name.text)}.{near}", self.text, name.at)


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
        self.texts = [str(level) for level in variable.levels]
        # What conditions are looked up for: the levels, or the contents of bins with their shares.
        contents, count = variable.contents, len(variable.values)
        sizes = np.ones(len(variable), dtype=np.intp)
        shares = [np.ones(1)] * len(variable)
        if contents is not None:
            sizes[:count] = [len(pairs) for pairs in contents]
            masses = [np.array([mass for _, mass in pairs]) for pairs in contents]
            shares[:count] = [mass / mass.sum() for mass in masses]
        self._owner = np.repeat(np.arange(len(variable)), sizes)
        self._shares = np.concatenate(shares)
        self._has_value = self._owner < count

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
        values = np.ones(len(self._owner))
        for condition in conditions:
            if isinstance(condition, Soft):
                values *= self._soft(condition)[self._owner]
                continue
            if isinstance(condition, Among):
                meets = np.isin(self._owner, [self.code(label) for label in condition.labels])
            elif isinstance(condition, Applies):
                meets = self._has_value
            else:
                meets = self._between(condition)
                values[~self._has_value] = 0.0  # it has no place in the order, negated or not
            values[meets == condition.negated] = 0.0
        means = np.bincount(self._owner, values * self._shares, len(self.variable))
        # A bin that is met as a whole is met exactly, whatever its shares add up to.
        starts = np.flatnonzero(np.diff(self._owner, prepend=-1))
        least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        result = np.asarray(np.where(least == most, most, means))
        if any(isinstance(condition, Soft) for condition in conditions):
            result = result / (result.max() or 1.0)  # products may be tiny; only ratios matter
        return result

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
        if self.variable.contents is not None:
            values = np.full(len(self._owner), np.nan)
            values[self._has_value] = [x for pairs in self.variable.contents for x, _ in pairs]
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
