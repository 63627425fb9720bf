"""Tokens of a question: words, quoted texts and signs with their places; QueryError."""

import re
import unicodedata
from typing import Any, Literal, NamedTuple, NoReturn

_AROUND = 38  # characters shown on either side of the place in longer texts
_INDENT = "    "


class QueryError(ValueError):
    """Error raised for a text that is not a question, or for unknown names and levels.

    Attributes
    ----------
    reason : str
        What is wrong, what was expected, and a suggestion.
    text : str
        The question.
    position : int
        Place in the text, counted in characters (Unicode code points) from zero.

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.asia().ask("P(lung | smoek = yes)")
    Traceback (most recent call last):
    ...
    rejoint.language.tokens.QueryError: No variable is called "smoek". Did you mean "smoke"?
        P(lung | smoek = yes)
                 ^
    """

    reason: str
    text: str
    position: int

    def __init__(self, reason: str, text: str, position: int) -> None:
        self.reason, self.text, self.position = reason, text, position
        super().__init__(f"{reason}\n{pointed(text, position)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return QueryError, (self.reason, self.text, self.position)


def pointed(text: str, position: int) -> str:
    """Return a text on one line, cut around a place, with a caret below that place.

    Examples
    --------
    >>> print(pointed("P(a = )", 6))
        P(a = )
              ^
    """
    start, end = max(0, position - _AROUND), position + _AROUND
    if len(text) <= 2 * _AROUND:
        start, end = 0, len(text)
    line = "".join(char if char.isprintable() else " " for char in text)
    before = "..." * (start > 0) + line[start:position]
    after = line[position:end] + "..." * (end < len(text))
    return f"{_INDENT}{before}{after}\n{_INDENT}{' ' * sum(map(_width, before))}^"


def _width(char: str) -> int:
    """Return the number of terminal columns of a character."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


MAX_LENGTH = 10_000
"""Length of the longest question, in characters."""

_TOKEN = re.compile(
    r"""(?P<space>(?:[^\S\x1c-\x1f\x85]|\ufeff)+)
    |(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<sign><=|>=|!=|==|<>|[≤≥≠(){},;|:~=<>])
    |(?P<word>[^\s\ufeff(){},;|:~=<>!≤≥≠"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([\\\"'ntr])|u\{([0-9a-fA-F]{1,6})\})?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MEANING = {"==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!="}
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


class Token(NamedTuple):
    """A piece of a question and the place where it begins.

    Examples
    --------
    >>> tokenize("a=1")[1]
    Token(kind='sign', text='=', at=1)
    """

    kind: Literal["word", "quoted", "sign", "end"]
    text: str
    at: int


def tokenize(text: str) -> list[Token]:
    """Split a question into tokens; the last one marks the end.

    Examples
    --------
    >>> [token.text for token in tokenize("P(age >= 40 | 'my town' = Łódź)")]
    ['P', '(', 'age', '>=', '40', '|', 'my town', '=', 'Łódź', ')', '']
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(
            f"A question has at most {MAX_LENGTH:,} characters; this one has {len(text):,}.",
            text,
            MAX_LENGTH,
        )
    tokens, at = list[Token](), 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        kind = match.lastgroup if match else None
        piece = match[0] if match else text[at]
        if kind == "quoted":
            tokens.append(Token("quoted", _unescape(text, at + 1, at + len(piece) - 1), at))
        elif kind == "sign":
            tokens.append(Token("sign", _MEANING.get(piece, piece), at))
        elif kind != "space":
            if not is_word(piece):
                _fail_at_word(text, at, piece)
            tokens.append(Token("word", piece, at))
        at += len(piece)
    return [*tokens, Token("end", "", len(text))]


def _fail_at_word(text: str, at: int, word: str) -> NoReturn:
    """Raise an error at the first character that no word has."""
    if word in ('"', "'"):
        _unescape(text, at + 1, len(text))
        raise QueryError(f"This quote is never closed: expected another {word}", text, at)
    place, char = next(pair for pair in enumerate(word, at) if not is_word(pair[1]))
    advice = "put names and labels that contain it in quotes."
    if unicodedata.category(char) in ("Pi", "Pf"):
        advice = "quotes are written \" or '"
    raise QueryError(f"The character {quote(char)} has no meaning here: {advice}", text, place)


def _unescape(text: str, start: int, end: int) -> str:
    """Return what is in quotes; the backslash escapes quotes, itself, n, t, r and u{hex digits}."""

    def character(match: re.Match[str]) -> str:
        letter, digits = match.groups()
        if letter:
            return _LETTERS.get(letter, letter)
        if digits and int(digits, 16) <= 0x10FFFF:
            return chr(int(digits, 16))
        raise QueryError(
            "Unknown escape in a quoted text: expected \\\\, \\\", \\', \\n, \\t, \\r or \\u{...}; "
            "a backslash itself is written \\\\",
            text,
            start + match.start(),
        )

    return _ESCAPE.sub(character, text[start:end])


def is_word(text: str) -> bool:
    """Return whether a name or label needs no quotes.

    It has letters, marks and digits of any script (the categories L, M and N), and four signs.

    Examples
    --------
    >>> is_word("HS-grad"), is_word("<=50K"), is_word("")
    (True, False, False)
    """
    return text != "" and all(c in "_.-+" or unicodedata.category(c)[0] in "LMN" for c in text)


def reads_as_number(text: str) -> bool:
    """Return whether a bare word is a number: digits, at most one point, an exponent, a sign.

    Examples
    --------
    >>> [reads_as_number(word) for word in ("40", "-1.5e+3", ".5", "5.", "1-2", "e5", "inf")]
    [True, True, True, True, False, False, False]
    """
    return _NUMBER.fullmatch(text) is not None


def quote(text: str) -> str:
    r"""Return a text in double quotes that is parsed to the same text.

    Examples
    --------
    >>> print(quote('say "no"\n'))
    "say \"no\"\n"
    """
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '\\"':
        return "\\" + char
    if char in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
    if unicodedata.category(char)[0] == "C" or unicodedata.category(char) in ("Zl", "Zp"):
        return f"\\u{{{ord(char):x}}}"
    return char
