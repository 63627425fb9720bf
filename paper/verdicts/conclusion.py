"""One conclusion of the paper's text."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from paper.framework import Done

Found = Mapping[str, Done]
Verdict = tuple[str, str]


class Conclusion(NamedTuple):
    """What the paper says, what it rests on here, and how to judge it."""

    says: str
    rests_on: tuple[str, ...]
    judge: Callable[[Found], Verdict]


def confirmed(holds: bool, why: str) -> Verdict:
    """A verdict that a number decides."""
    return "confirmed" if holds else "not confirmed", why
