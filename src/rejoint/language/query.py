"""Query, a question as an object, with its text and JSON."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from rejoint.language.tokens import is_word, quote, reads_as_number

Verb = Literal["P", "E", "H", "MI", "argmax", "sample"]
VERBS: tuple[str, ...] = get_args(Verb)
RESERVED = ("in", "not")  # as bare names: they join conditions


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, and where in the text it is named.

    Examples
    --------
    >>> str(Name("age")), str(Name("my town"))
    ('age', '"my town"')
    """

    text: str
    at: int = field(default=0, compare=False, repr=False)

    def __str__(self) -> str:
        bare = is_word(self.text) and not reads_as_number(self.text)
        return self.text if bare and self.text not in RESERVED else quote(self.text)


@dataclass(frozen=True, slots=True)
class Label:
    """A level as it was written: a number if it is a bare word that reads as one, else text.

    The digits are kept as they are, so that 007 can still be the text "007" of a level.

    Examples
    --------
    >>> str(Label("40", True)), str(Label("40", False)), str(Label("HS-grad", False))
    ('40', '"40"', 'HS-grad')
    """

    text: str
    number: bool
    at: int = field(default=0, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text if self.number else str(Name(self.text))


@dataclass(frozen=True, slots=True)
class Among:
    """``a = x``, ``a in {x, y}``, or their negations ``a != x``, ``a not in {x, y}``.

    Examples
    --------
    >>> print(Among(Name("a"), (Label("x", False),), negated=True))
    a != x
    """

    name: Name
    labels: tuple[Label, ...]
    negated: bool = False

    def __str__(self) -> str:
        if len(self.labels) == 1:
            return f"{self.name} {'!=' if self.negated else '='} {self.labels[0]}"
        levels = ", ".join(map(str, self.labels))
        return f"{self.name} {'not in' if self.negated else 'in'} {{{levels}}}"


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """One end of a range of levels, and whether it belongs to the range.

    Examples
    --------
    >>> RangeEnd(Label("40", True), included=True).label.text
    '40'
    """

    label: Label
    included: bool


@dataclass(frozen=True, slots=True)
class Between:
    """``a >= x``, ``a < y``, ``x <= a < y``, ``not x <= a < y``; one bound at least.

    Examples
    --------
    >>> low, high = RangeEnd(Label("18", True), True), RangeEnd(Label("30", True), False)
    >>> print(Between(Name("age"), low, high), Between(Name("age"), low, None), sep="; ")
    18 <= age < 30; age >= 18
    """

    name: Name
    low: RangeEnd | None
    high: RangeEnd | None
    negated: bool = False

    def __str__(self) -> str:
        low, high = self.low, self.high
        if low and high:
            left = f"{low.label} {'<=' if low.included else '<'}"
            text = f"{left} {self.name} {'<=' if high.included else '<'} {high.label}"
        elif low:
            text = f"{self.name} {'>=' if low.included else '>'} {low.label}"
        elif high:
            text = f"{self.name} {'<=' if high.included else '<'} {high.label}"
        else:
            raise ValueError(f"A range of {self.name} needs at least one bound.")
        return f"not {text}" if self.negated else text


@dataclass(frozen=True, slots=True)
class Soft:
    """``a ~ {x: 0.8, y: 0.2}``: how likely what was observed is under each level.

    Examples
    --------
    >>> print(Soft(Name("a"), ((Label("x", False), Label("0.8", True)),)))
    a ~ {x: 0.8}
    """

    name: Name
    likelihoods: tuple[tuple[Label, Label], ...]

    def __str__(self) -> str:
        pairs = ", ".join(f"{label}: {number}" for label, number in self.likelihoods)
        return f"{self.name} ~ {{{pairs}}}"


@dataclass(frozen=True, slots=True)
class Applies:
    """``a applies``, ``a does not apply``: whether a has a value at all.

    Examples
    --------
    >>> print(Applies(Name("a")), Applies(Name("a"), negated=True), sep="; ")
    a applies; a does not apply
    """

    name: Name
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.name} {'does not apply' if self.negated else 'applies'}"


Condition = Among | Between | Soft | Applies
Item = Name | Condition


@dataclass(frozen=True, slots=True)
class Query:
    """A question: the verb, the variables asked for, and the evidence right of the bar.

    ``str()`` returns its canonical text, which is parsed to an equal question (unless added spaces
    and escapes make it longer than a question may be).

    Attributes
    ----------
    verb : {"P", "E", "H", "MI", "argmax", "sample"}
    asked : tuple of Name or condition
        Conditions only after P.
    given : tuple of Name or condition
    against : tuple of Name
        Variables after the semicolon of MI.
    count : int or None
        Number of records to sample.
    headline : str
        The question as it was answered: with bins where it names numbers within them. Its text
        before a domain is known.

    Examples
    --------
    >>> from rejoint.language import parse
    >>> query = parse("P( income | education == 'Masters', not sex = Male )")
    >>> print(query)
    P(income | education = Masters, sex != Male)
    >>> parse(str(query)) == query
    True
    """

    verb: Verb
    asked: tuple[Item, ...] = ()
    given: tuple[Item, ...] = ()
    against: tuple[Name, ...] = ()
    count: int | None = None
    at: int = field(default=0, compare=False, repr=False)  # place of the count, else of the verb
    headline: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", self.headline or str(self))

    def __str__(self) -> str:
        asked = ", ".join(map(str, self.asked))
        if self.against:
            asked += "; " + ", ".join(map(str, self.against))
        given = f"| {', '.join(map(str, self.given))}" if self.given else ""
        inner = " ".join(part for part in (asked, given) if part)
        if self.verb in ("argmax", "sample"):
            count = None if self.count is None else str(self.count)
            return " ".join(part for part in (self.verb, count, inner) if part)
        return f"{self.verb}({inner})"
