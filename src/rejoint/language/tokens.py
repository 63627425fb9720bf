"""Tokens of a question: words, quoted texts and signs with their places; QueryError."""

import unicodedata
from typing import Any, Literal, NamedTuple

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
    before = "..." * (start > 0) + "".join(map(_shown, text[start:position]))
    after = "".join(map(_shown, text[position:end])) + "..." * (end < len(text))
    return f"{_INDENT}{before}{after}\n{_INDENT}{' ' * sum(map(_width, before))}^"


def _shown(char: str) -> str:
    """Return a character that any terminal can show in one line."""
    category = unicodedata.category(char)
    if category[0] == "Z" or char in "\t\n\v\f\r":
        return " "
    return "\N{REPLACEMENT CHARACTER}" if category[0] == "C" else char


def _width(char: str) -> int:
    """Return the number of terminal columns of a character."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


MAX_LENGTH = 10_000
"""Length of the longest question, in characters."""

# Longest first, so that <= is not read as < and =.
_SIGNS = ("<=", ">=", "!=", "==", "<>", "≤", "≥", "≠", *"(){},;|:~=<>")
_MEANING = {"==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!="}
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t", "r": "\r"}
_HEX = "0123456789abcdefABCDEF"


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
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if _is_space(text[at]):
            at += 1
            continue
        token, at = _next(text, at)
        tokens.append(token)
    return [*tokens, Token("end", "", len(text))]


def _next(text: str, at: int) -> tuple[Token, int]:
    """Return the token that begins at a place, and the place after it."""
    char = text[at]
    if char in "\"'":
        return _quoted(text, at)
    if _is_word_char(char):
        end = at + 1
        while end < len(text) and _is_word_char(text[end]):
            end += 1
        return Token("word", text[at:end], at), end
    for sign in _SIGNS:
        if text.startswith(sign, at):
            return Token("sign", _MEANING.get(sign, sign), at), at + len(sign)
    advice = "put names and labels that contain it in quotes."
    if unicodedata.category(char) in ("Pi", "Pf"):
        advice = "quotes are written \" or '"
    raise QueryError(f"The character {quote(char)} has no meaning here: {advice}", text, at)


def _quoted(text: str, start: int) -> tuple[Token, int]:
    """A text in quotes; the backslash escapes quotes, itself, n, t, r and u{hex digits}."""
    parts: list[str] = []
    at = start + 1
    while at < len(text):
        char = text[at]
        if char == text[start]:
            return Token("quoted", "".join(parts), start), at + 1
        if char == "\\":
            char, at = _escape(text, at)
        else:
            at += 1
        parts.append(char)
    raise QueryError(f"This quote is never closed: expected another {text[start]}", text, start)


def _escape(text: str, at: int) -> tuple[str, int]:
    letter = text[at + 1 : at + 2]
    if letter and letter in _ESCAPES:
        return _ESCAPES[letter], at + 2
    if letter == "u" and text[at + 2 : at + 3] == "{":
        end = at + 3
        while end < len(text) and text[end] in _HEX and end < at + 9:
            end += 1
        digits = text[at + 3 : end]
        if digits and text[end : end + 1] == "}" and int(digits, 16) <= 0x10FFFF:
            return chr(int(digits, 16)), end + 1
    raise QueryError(
        "Unknown escape in a quoted text: expected \\\\, \\\", \\', \\n, \\t, \\r or \\u{...}; "
        "a backslash itself is written \\\\",
        text,
        at,
    )


def _is_space(char: str) -> bool:
    return char in "\t\n\v\f\r\ufeff" or unicodedata.category(char)[0] == "Z"


def _is_word_char(char: str) -> bool:
    """Letters, marks and digits of any script (the categories L, M and N), and four signs."""
    return char in "_.-+" or unicodedata.category(char)[0] in "LMN"


def is_word(text: str) -> bool:
    """Return whether a name or label needs no quotes.

    Examples
    --------
    >>> is_word("HS-grad"), is_word("<=50K"), is_word("")
    (True, False, False)
    """
    return text != "" and all(map(_is_word_char, text))


def reads_as_number(text: str) -> bool:
    """Return whether a bare word is a number: digits, at most one point, an exponent, a sign.

    Examples
    --------
    >>> [reads_as_number(word) for word in ("40", "-1.5e+3", ".5", "5.", "1-2", "e5", "inf")]
    [True, True, True, True, False, False, False]
    """
    at = _after_sign(text, 0)
    end = _after_digits(text, at)
    digits = end - at
    if text[end : end + 1] == ".":
        at, end = end + 1, _after_digits(text, end + 1)
        digits += end - at
    if digits and text[end : end + 1] in ("e", "E"):
        at = _after_sign(text, end + 1)
        end = _after_digits(text, at)
        digits = end - at
    return digits > 0 and end == len(text)


def _after_sign(text: str, at: int) -> int:
    return at + 1 if text[at : at + 1] in ("+", "-") else at


def _after_digits(text: str, at: int) -> int:
    while at < len(text) and text[at] in "0123456789":
        at += 1
    return at


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
