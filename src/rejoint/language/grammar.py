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

from typing import NoReturn, cast

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
        self.text = text
        self.tokens = tokenize(text)
        self.place = 0

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

    def skip(self, sign: str) -> bool:
        seen = self.sees("sign", sign)
        self.place += seen
        return seen

    def expect(self, sign: str, *others: str, hint: str = "") -> None:
        if not self.skip(sign):
            hint = hint or (self.hint() if "," in others else "")
            wanted = [f'"{other}"' for other in (*others, sign)]
            listed = " or ".join([", ".join(wanted[:-1]), wanted[-1]] if wanted[1:] else wanted)
            self.fail(f"Expected {listed}, found {_found(self.token)}.{hint}")

    def hint(self) -> str:
        """Advice where something was expected between two words."""
        if self.token.kind not in ("word", "quoted"):
            return ""
        return " Separate items with commas, and put names and labels of several words in quotes."

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        raise QueryError(reason, self.text, self.token.at if at is None else at)

    # The grammar, from the top

    def query(self) -> Query:
        first = self.take()
        if first.kind != "word" or first.text not in VERBS:
            self.fail(_no_verb(first), first.at)
        verb = cast(Verb, first.text)
        loose = verb in ("argmax", "sample")
        closed = self.skip("(")
        if not closed and not loose:
            self.expect("(")
        at, count = self.count() if verb == "sample" else (first.at, None)
        what = "a variable or a condition" if verb == "P" else "a variable"
        asked = () if loose and self.at_bar_or_end(closed) else self.items(what)
        against: tuple[Item, ...] = ()
        if verb == "MI":
            self.expect(";", ",", hint=" MI takes two sides: MI(a; b).")
            against = self.items(what)
        given = self.items("a variable or a condition") if self.skip("|") else ()
        others = [","] if given else [",", "|"]
        if closed:
            self.expect(")", *others)
        elif self.token.kind != "end":
            wanted = ", ".join(f'"{other}"' for other in others)
            self.fail(f"Expected {wanted} or the end, found {_found(self.token)}.{self.hint()}")
        if self.token.kind != "end":
            self.fail(f"Expected the end, found {_found(self.token)}.")
        for item in (*asked, *against):
            if verb == "P" and isinstance(item, Soft):
                self.fail("Soft evidence (~) must be to the right of the bar.", item.name.at)
            if verb != "P" and not isinstance(item, Name):
                self.fail(f"{verb} takes variables, not conditions; P takes both.", item.name.at)
        if verb == "E" and len(asked) > 1:
            second = cast(Name, asked[1])
            self.fail("E takes one variable: ask about each one separately.", second.at)
        return Query(verb, asked, given, cast(tuple[Name, ...], against), count, at)

    def at_bar_or_end(self, closed: bool) -> bool:
        return self.token.kind == "end" or self.sees("sign", "|", *([")"] if closed else []))

    def count(self) -> tuple[int, int]:
        token = self.take()
        if token.kind != "word" or not all(c in "0123456789" for c in token.text):
            self.fail(f"Expected the number of records to sample, found {_found(token)}.", token.at)
        if len(token.text) > _MAX_DIGITS or int(token.text) > MAX_SAMPLE:
            self.fail(f"A question samples at most {MAX_SAMPLE:,} records.", token.at)
        self.skip(",")
        return token.at, int(token.text)

    def items(self, what: str) -> tuple[Item, ...]:
        items = [self.item(what)]
        while self.skip(","):
            items.append(self.item(what))
        return tuple(items)

    def item(self, what: str) -> Item:
        negation = self.take() if self.sees("word", "not") else None
        if negation is not None and self.sees("word", "not"):
            self.fail('Expected a condition after not, found "not".')
        negated = negation is not None
        left = self.operand("a condition after not" if negated else what)
        if self.sees("sign", "=", "!="):
            negated ^= self.take().text == "!="
            return Among(self.name(left), (self.label(),), negated)
        if self.sees("word", "in", "not"):
            return self.membership(left, negated)
        if self.sees("sign", *_ORDER):
            return self.order(left, negated)
        if self.sees("word", "applies", "does"):
            name = self.name(left)
            if self.take().text == "does":
                self.words("not", "apply")
                negated = not negated
            return Applies(name, negated)
        if negation is not None:
            if self.sees("sign", "~"):
                self.fail("Soft evidence (~) cannot be negated.", negation.at)
            self.fail(f"Expected a condition after not, found {_found(self.token)}.")
        return self.soft(left) if self.sees("sign", "~") else self.name(left)

    # Conditions

    def operand(self, what: str) -> Token:
        token = self.take()
        if token.kind not in ("word", "quoted"):
            self.fail(f"Expected {what}, found {_found(token)}.", token.at)
        return token

    def name(self, token: Token) -> Name:
        if token.kind == "word" and token.text in RESERVED:
            self.fail(
                f'Expected a variable, found "{token.text}": put it in quotes if that is its name.',
                token.at,
            )
        return Name(token.text, token.at)

    def label(self) -> Label:
        if self.sees("sign", "{"):
            self.fail("Expected a label; for one of several, write: in {x, y}.")
        if self.sees("sign", *_ORDER, "=", "!="):
            self.fail(
                f"Expected a label, found {_found(self.token)}: a label with symbols needs quotes."
            )
        return _label(self.operand("a label"))

    def words(self, *texts: str) -> None:
        for text in texts:
            if not self.sees("word", text):
                self.fail(f'Expected "{text}", found {_found(self.token)}.')
            self.take()

    def membership(self, left: Token, negated: bool) -> Condition:
        name = self.name(left)
        if self.sees("word", "not"):
            self.take()
            negated = not negated
        self.words("in")
        self.expect("{")
        labels = {self.label(): None}
        while self.skip(","):
            labels[self.label()] = None
        self.expect("}", ",")
        return Among(name, tuple(labels), negated)

    def soft(self, left: Token) -> Condition:
        name = self.name(left)
        self.take()
        self.expect("{")
        pairs: dict[Label, Label] = {}
        while True:
            label = self.label()
            if label in pairs:
                self.fail(f"The label {label} appears twice.", label.at)
            self.expect(":")
            number = pairs[label] = _label(self.operand("a number"))
            if not number.number or number.text.startswith("-"):
                reason = f"Expected a number of zero or more, found {quote(number.text)}."
                self.fail(reason, number.at)
            if not self.skip(","):
                break
        self.expect("}", ",")
        return Soft(name, tuple(pairs.items()))

    def order(self, left: Token, negated: bool) -> Condition:
        sign = self.take().text
        right = self.operand("a label")
        if self.sees("sign", *_ORDER):
            return self.range(left, sign, right, negated)
        if _label(left).number and not _label(right).number:
            left, sign, right = right, _MIRRORED[sign], left
        if negated:
            sign = _OPPOSITE[sign]
        bound = RangeEnd(_label(right), sign in ("<=", ">="))
        low, high = (bound, None) if sign in (">", ">=") else (None, bound)
        return Between(self.name(left), low, high)

    def range(self, left: Token, sign: str, middle: Token, negated: bool) -> Condition:
        at = self.token.at
        second = self.take().text
        right = self.operand("a label")
        if sign[0] != second[0]:
            self.fail(f'Expected "{sign[0]}" or "{sign[0]}=": both must point the same way.', at)
        ends = [
            RangeEnd(_label(left), sign.endswith("=")),
            RangeEnd(_label(right), second.endswith("=")),
        ]
        low, high = ends if sign[0] == "<" else reversed(ends)
        return Between(self.name(middle), low, high, negated)


def _label(token: Token) -> Label:
    number = token.kind == "word" and reads_as_number(token.text)
    return Label(token.text, number, token.at)


def _found(token: Token) -> str:
    return "the end" if token.kind == "end" else quote(token.text)


def _no_verb(token: Token) -> str:
    reason = f"Expected P(...), E(...), H(...), MI(...), argmax or sample, found {_found(token)}."
    near = [verb for verb in VERBS if verb.lower() == token.text.lower() and token.kind == "word"]
    return f"{reason} Did you mean {near[0]}?" if near else reason
