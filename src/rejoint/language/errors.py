"""QueryError: what is wrong with a question, and where in its text."""

import unicodedata
from typing import Any

__all__ = ["QueryError", "pointed"]

_AROUND = 38  # characters shown on either side of the place in longer texts
_INDENT = "    "


class QueryError(ValueError):
    """A question that cannot be read, or that names what the model does not have.

    Attributes
    ----------
    reason : str
        What is wrong, what was expected, what may have been meant.
    text : str
        The question.
    position : int
        Where in the text, counted in characters (Unicode code points) from zero.

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.asia().ask("P(lung | smoek = yes)")
    Traceback (most recent call last):
    ...
    rejoint.language.errors.QueryError: No variable is called "smoek". Did you mean "smoke"?
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
    """Write a text on one line, cut around a place, with a caret below that place.

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
    """A character as it can stand in one line of any terminal."""
    category = unicodedata.category(char)
    if category[0] == "Z" or char in "\t\n\v\f\r":
        return " "
    return "\N{REPLACEMENT CHARACTER}" if category[0] == "C" else char


def _width(char: str) -> int:
    """Columns that a terminal gives a character, so that the caret stands below its place."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
