"""One conclusion of the paper's text."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from paper.framework import Done

Found = Mapping[str, Done]
Verdict = tuple[str, str]
CONFIRMED, IN_PART, NOT_CONFIRMED = "confirmed", "in part", "not confirmed"


class Conclusion(NamedTuple):
    """What the paper says, what it rests on here, and how to judge it."""

    says: str
    rests_on: tuple[str, ...]
    judge: Callable[[Found], Verdict]


def decide(holds: Iterable[bool], why: str) -> Verdict:
    """Return the verdict that follows from the parts of a claim: all hold, some do, or none."""
    parts = [bool(part) for part in holds]
    if not parts:
        raise ValueError("A claim has no parts yet.")
    if all(parts):
        return CONFIRMED, why
    return (IN_PART if any(parts) else NOT_CONFIRMED), why
