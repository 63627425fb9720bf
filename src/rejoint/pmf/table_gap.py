"""Tables in which a model and the records it was fitted to differ beyond chance."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from rejoint.text import format_fields

#: Notes that an answer carries at most.
MOST_NOTES = 2


class TableGap(NamedTuple):
    """One table of records against a model's.

    Parameters
    ----------
    names : tuple of str
        Variables of the table.
    distance : float
        Total variation: the share of the records that is in other cells than the model says.
    chance : float
        What chance alone would make it if the model were right.
    cell : str
        The cell that differs most.
    given, model : float
        Its share of the records, and its probability.

    Examples
    --------
    >>> print(TableGap(("a", "b"), 0.03, 0.01, "a = x, b = y", 0.25, 0.22).text)
    The records differ from the model in a, b: a = x, b = y has a share of 0.250 in \
the records and 0.220 in the model (0.030 of the mass is in other cells, 0.010 by chance).
    """

    names: tuple[str, ...]
    distance: float
    chance: float
    cell: str
    given: float
    model: float

    def __repr__(self) -> str:
        return format_fields(self)

    @property
    def text(self) -> str:
        """The gap in one sentence."""
        return (
            f"The records differ from the model in {', '.join(self.names)}: {self.cell} has a "
            f"share of {self.given:.3f} in the records and {self.model:.3f} in the model "
            f"({self.distance:.3f} of the mass is in other cells, {self.chance:.3f} by chance)."
        )


def note_gaps(
    gaps: Iterable[TableGap], names: Collection[str], known: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the sentences that an answer about some variables carries.

    ``known`` are all variables of the model; others were conditioned on, and belong to every
    question.

    Examples
    --------
    >>> gaps = [TableGap(("a", "b"), 0.03, 0.01, "a = x, b = y", 0.25, 0.22)]
    >>> len(note_gaps(gaps, {"a", "b", "c"})), note_gaps(gaps, {"a", "c"})
    (1, ())
    """
    concerned = [gap.text for gap in gaps if set(gap.names) & set(known or gap.names) <= set(names)]
    return tuple(concerned[:MOST_NOTES])


def read_gaps(plain: Any, names: Collection[str]) -> tuple[TableGap, ...]:
    """Read gaps from the notes of a file; what is not one of these variables is left out.

    Examples
    --------
    >>> read_gaps([{"names": ["a"]}, None], ["a"])
    ()
    """
    found = []
    for each in plain if isinstance(plain, list) else []:
        if not isinstance(each, dict) or set(each) != set(TableGap._fields):
            continue
        numbers = [each[name] for name in ("distance", "chance", "given", "model")]
        own = each["names"]
        if not isinstance(own, list | tuple) or not all(name in names for name in own):
            continue
        if isinstance(each["cell"], str) and all(type(number) is float for number in numbers):
            found.append(TableGap(**{**each, "names": tuple(own)}))
    return tuple(found)
