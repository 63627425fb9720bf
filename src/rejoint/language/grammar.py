"""Parser of questions, by recursive descent without recursion: nothing in the grammar nests.

::

    query      = ("P" | "E" | "H") "(" items [given] ")"
               | "MI" "(" items ";" items [given] ")"
               | "argmax" ("(" [items] [given] ")" | [items] [given])
               | "sample" ("(" count [","] [items] [given] ")" | count [","] [items] [given])
    given      = "|" items
    items      = item {"," item}
    item       = name | ["not"] condition
    condition  = name ("=" | "!=") label
               | name ["not"] "in" "{" label {"," label} "}"
               | name order label | label order name order label | number order name
               | name "~" "{" label ":" number {"," label ":" number} "}"
               | name ("applies" | "does" "not" "apply")
    order      = "<" | "<=" | ">" | ">="
    name, label = word | quoted

A verb asks for names; P takes conditions, too.
"""

from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from rejoint.language.query import (
    RESERVED,
    VERBS,
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
    Verb,
)
from rejoint.language.tokens import QueryError, Token, quote, reads_as_number, tokenize

_ORDER = ("<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MAX_DIGITS = 9
_SEPARATE = " Separate items with commas, and put names and labels of several words in quotes."

T = TypeVar("T")

MAX_SAMPLE = 100_000
"""Largest number of records that a question draws."""


def parse(text: str) -> Query:
    """Read a question.

    Parameters
    ----------
    text : str
        At most 10,000 characters.

    Returns
    -------
    Query

    Raises
    ------
    QueryError
        For any other text; it says where and what was expected.

    Examples
    --------
    >>> parse("MI(a; b | c = 'x')").against
    (Name(text='b'),)
    >>> parse("P(a | b = )")
    Traceback (most recent call last):
    ...
    rejoint.language.tokens.QueryError: Expected a label, found ")".
        P(a | b = )
                  ^
    """
    if not isinstance(text, str):
        raise TypeError(f"A question is a text such as 'P(a | b = x)', not {type(text).__name__}.")
    return _Parser(text).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.place = text, tokenize(text), 0

    # Reading tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.token
        self.place += token.kind != "end"
        return token

    def sees(self, kind: str, *texts: str) -> bool:
        return self.token.kind == kind and self.token.text in texts

    def skip(self, kind: str, text: str) -> bool:
        seen = self.sees(kind, text)
        self.place += seen
        return seen

    def refuse(self, reason: str, at: int) -> NoReturn:
        raise QueryError(reason, self.text, at)

    def fail(self, wanted: str, token: Token | Label | None = None, hint: str = "") -> NoReturn:
        token = token or self.token
        seen = "the end" if token == self.tokens[-1] else quote(token.text)
        self.refuse(f"Expected {wanted}, found {seen}.{hint}", token.at)

    def expect(self, *signs: str, hint: str = "") -> None:
        """Take the last of these signs; others might have stood here, too."""
        if not self.skip("sign", signs[-1]):
            wanted = [f'"{sign}"' for sign in signs]
            listed = " or ".join(filter(None, [", ".join(wanted[:-1]), wanted[-1]]))
            self.fail(listed, hint=hint or (self.hint if "," in signs else ""))

    @property
    def hint(self) -> str:
        """Advice where something was expected between two words."""
        return _SEPARATE if self.token.kind in ("word", "quoted") else ""

    # The grammar, from the top

    def query(self) -> Query:
        first = self.take()
        if first.kind != "word" or first.text not in VERBS:
            near = [verb for verb in VERBS if verb.lower() == first.text.lower()]
            hint = f" Did you mean {near[0]}?" if near and first.kind == "word" else ""
            self.fail("P(...), E(...), H(...), MI(...), argmax or sample", first, hint)
        verb, at, count = cast(Verb, first.text), first.at, None
        loose = verb in ("argmax", "sample")
        closed = self.skip("sign", "(")
        if not closed and not loose:
            self.expect("(")
        if verb == "sample":
            at, count = self.count()
        what = "a variable or a condition" if verb == "P" else "a variable"
        is_over = self.token.kind == "end" or self.sees("sign", "|", *([")"] if closed else []))
        asked = () if loose and is_over else self.items(what)
        against: tuple[Item, ...] = ()
        if verb == "MI":
            self.expect(",", ";", hint=" MI takes two sides: MI(a; b).")
            against = self.items(what)
        given = self.items("a variable or a condition") if self.skip("sign", "|") else ()
        others = (",",) if given else (",", "|")
        if closed:
            self.expect(*others, ")")
        elif self.token.kind != "end":
            listed = ", ".join(f'"{other}"' for other in others)
            self.fail(f"{listed} or the end", hint=self.hint)
        if self.token.kind != "end":
            self.fail("the end")
        for item in (*asked, *against):
            if verb == "P" and isinstance(item, Soft):
                self.refuse("Soft evidence (~) must be to the right of the bar.", item.name.at)
            if verb != "P" and not isinstance(item, Name):
                self.refuse(f"{verb} takes variables, not conditions; P takes both.", item.name.at)
        if verb == "E" and len(asked) > 1:
            second = cast(Name, asked[1])
            self.refuse("E takes one variable: ask about each one separately.", second.at)
        return Query(verb, asked, given, cast(tuple[Name, ...], against), count, at)

    def count(self) -> tuple[int, int]:
        token = self.take()
        if token.kind != "word" or not all(c in "0123456789" for c in token.text):
            self.fail("the number of records to sample", token)
        if len(token.text) > _MAX_DIGITS or int(token.text) > MAX_SAMPLE:
            self.refuse(f"A question samples at most {MAX_SAMPLE:,} records.", token.at)
        self.skip("sign", ",")
        return token.at, int(token.text)

    def items(self, what: str) -> tuple[Item, ...]:
        items = [self.item(what)]
        while self.skip("sign", ","):
            items.append(self.item(what))
        return tuple(items)

    def item(self, what: str) -> Item:
        negation = self.take() if self.sees("word", "not") else None
        negated = negation is not None
        left = self.operand("a condition after not" if negated else what)
        if negated and left.kind == "word" and left.text == "not":
            self.fail("a condition after not", left)
        if self.sees("sign", *_ORDER):
            return self.order(left, negated)
        if self.sees("sign", "=", "!="):
            negated ^= self.take().text == "!="
            return Among(self.name(left), (self.label(),), negated)
        if self.sees("word", "in", "not"):
            name = self.name(left)
            negated ^= self.skip("word", "not")
            self.word("in")
            return Among(name, tuple(dict.fromkeys(self.braces(self.label))), negated)
        if self.sees("word", "applies", "does"):
            name = self.name(left)
            if self.take().text == "does":
                self.word("not")
                self.word("apply")
                negated = not negated
            return Applies(name, negated)
        if negation is not None:
            if self.sees("sign", "~"):
                self.refuse("Soft evidence (~) cannot be negated.", negation.at)
            self.fail("a condition after not")
        return self.soft(left) if self.skip("sign", "~") else self.name(left)

    # Conditions

    def word(self, text: str) -> None:
        if not self.skip("word", text):
            self.fail(f'"{text}"')

    def operand(self, what: str) -> Token:
        token = self.take()
        if token.kind not in ("word", "quoted"):
            self.fail(what, token)
        return token

    def name(self, token: Token) -> Name:
        if token.kind == "word" and token.text in RESERVED:
            reason = f'Expected a variable, found "{token.text}": '
            self.refuse(f"{reason}put it in quotes if that is its name.", token.at)
        return Name(token.text, token.at)

    def label(self) -> Label:
        if self.sees("sign", "{"):
            at = self.token.at
            self.refuse("Expected a label; for one of several, write: in {x, y}.", at)
        if self.sees("sign", *_ORDER, "=", "!="):
            self.fail("a label", hint=" A label with symbols needs quotes.")
        return _label(self.operand("a label"))

    def braces(self, read: Callable[[], T]) -> list[T]:
        """What stands between braces, separated by commas."""
        self.expect("{")
        parts = [read()]
        while self.skip("sign", ","):
            parts.append(read())
        self.expect(",", "}")
        return parts

    def soft(self, left: Token) -> Condition:
        pairs = dict[Label, Label]()

        def read() -> None:
            label = self.label()
            if label in pairs:
                self.refuse(f"The label {label} appears twice.", label.at)
            self.expect(":")
            number = pairs[label] = _label(self.operand("a number"))
            if not number.number or number.text.startswith("-"):
                self.fail("a number of zero or more", number)

        name = self.name(left)
        self.braces(read)
        return Soft(name, tuple(pairs.items()))

    def order(self, left: Token, negated: bool) -> Condition:
        sign, right = self.take().text, self.operand("a label")
        if self.sees("sign", *_ORDER):
            return self.range(left, sign, right, negated)
        if _label(left).number and not _label(right).number:
            left, sign, right = right, _MIRRORED[sign], left
        if negated:
            sign = _OPPOSITE[sign]
        end = RangeEnd(_label(right), sign.endswith("="))
        low, high = (end, None) if sign[0] == ">" else (None, end)
        return Between(self.name(left), low, high)

    def range(self, left: Token, sign: str, middle: Token, negated: bool) -> Condition:
        second = self.take()
        if sign[0] != second.text[0]:
            reason = f'Expected "{sign[0]}" or "{sign[0]}=": both must point the same way.'
            self.refuse(reason, second.at)
        right = self.operand("a label")
        ends = [
            RangeEnd(_label(left), sign.endswith("=")),
            RangeEnd(_label(right), second.text.endswith("=")),
        ]
        low, high = ends if sign[0] == "<" else reversed(ends)
        return Between(self.name(middle), low, high, negated)


def _label(token: Token) -> Label:
    number = token.kind == "word" and reads_as_number(token.text)
    return Label(token.text, number, token.at)
