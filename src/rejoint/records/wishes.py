"""Wishes: what the user said about columns, gathered column by column."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from rejoint.domain import Kind
from rejoint.domain.labels import Level

__all__ = ["Wish", "Wishes", "read_wishes"]


class Wish(NamedTuple):
    """What the user said about a column; None where nothing was said.

    `bins` is the number of quantile bins, their edges, or False for every value its level.

    Examples
    --------
    >>> Wish().silent, Wish(bins=5).silent
    (True, False)
    """

    kind: Kind | None = None
    levels: Sequence[Level] | None = None
    bins: int | Sequence[float] | NDArray[Any] | None = None

    @property
    def silent(self) -> bool:
        """Whether nothing was said."""
        return self.kind is None and self.levels is None and self.bins is None


class Wishes(NamedTuple):
    """What the user said about columns: of each by name, and of all others.

    Examples
    --------
    >>> Wishes({"a": Wish(bins=5)}, Wish()).of("b")
    Wish(kind=None, levels=None, bins=None)
    """

    by_name: Mapping[str, Wish]
    others: Wish

    def of(self, name: str) -> Wish:
        """Return what was said about a column."""
        return self.by_name.get(name, self.others)


def read_wishes(
    kinds: Mapping[Any, Kind] | None,
    levels: Mapping[Any, Sequence[Level]] | None,
    bins: Mapping[Any, Any] | Literal[False] | None,
) -> Wishes:
    """Gather by column what was said by kind of wish.

    Examples
    --------
    >>> read_wishes({"a": "ordinal"}, None, False)
    Wishes(by_name={'a': Wish(kind='ordinal', levels=None, bins=False)},
           others=Wish(kind=None, levels=None, bins=False))
    """
    others = Wish(bins=False) if bins is False else Wish()
    edges = {} if bins is False else _mapping("bins", bins)
    by_name: dict[str, Wish] = {}
    for field, wishes in (
        ("kind", _mapping("kinds", kinds)),
        ("levels", _mapping("levels", levels)),
    ):
        for name, wish in wishes.items():
            by_name[name] = by_name.get(name, others)._replace(**{field: wish})
    for name, wish in edges.items():
        # None in the mapping is said aloud: no bins; absence from it leaves the rule.
        by_name[name] = by_name.get(name, others)._replace(bins=False if wish is None else wish)
    return Wishes(by_name, others)


def _mapping(argument: str, wishes: object) -> dict[str, Any]:
    if wishes is None:
        return {}
    if not isinstance(wishes, Mapping):
        raise TypeError(f"{argument} must be a dict from names of variables, not {wishes!r}.")
    return {str(name): wish for name, wish in wishes.items()}
