"""Domain: the variables of a problem in order, and where names and levels lie in it."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import Bin, Level
from rejoint.domain.variable import EmptyCells, Variable
from rejoint.text import cite, nearest, show


@dataclass(frozen=True)
class Domain:
    """The variables of a problem, in order.

    Parameters
    ----------
    variables : sequence of Variable
        Each with a name of its own.

    Examples
    --------
    >>> d = Domain.of({"smoke": ["yes", "no"], "x": 3})
    >>> d.names, d.shape
    (('smoke', 'x'), (2, 3))
    >>> d["smoke"].levels
    ('yes', 'no')
    """

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        variables = tuple(self.variables)
        for v in variables:
            if not isinstance(v, Variable):
                raise TypeError(
                    f"A Domain is made of Variables, not of {cite(v)}; "
                    "Domain.of({name: levels}) makes one from plain lists."
                )
        object.__setattr__(self, "variables", variables)
        refuse_duplicates(v.name for v in variables)

    @classmethod
    def of(cls, levels: Mapping[Any, Sequence[Level] | int]) -> "Domain":
        """Make a domain from names and levels; a number n stands for the levels 0..n-1.

        Examples
        --------
        >>> Domain.of({"smoke": ["yes", "no"], "x": 3})["x"].levels
        (0, 1, 2)
        """
        if not isinstance(levels, Mapping):
            raise TypeError(
                "A domain is made of a dict from names to levels, such as {'a': ['x', 'y'], 'b': "
                f"3}}; got {type(levels).__name__}."
            )
        variables = []
        for name, own in levels.items():
            if isinstance(own, int):
                own = range(own)
            elif isinstance(own, (str, bytes)) or not isinstance(own, Iterable):
                raise TypeError(
                    f"Variable {cite(str(name))}: levels must be a list of labels or their number, "
                    f"not {cite(own)}"
                )
            variables.append(Variable(str(name), tuple(own)))
        return cls(tuple(variables))

    @classmethod
    def of_shape(cls, shape: Sequence[int]) -> "Domain":
        """Make a domain of variables x0, x1, ... with levels 0, 1, ...

        Examples
        --------
        >>> Domain.of_shape([2, 3]).names
        ('x0', 'x1')
        """
        return cls.of({f"x{n}": int(size) for n, size in enumerate(shape)})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order.

        Examples
        --------
        >>> Domain.of({"a": 2, "b": 3}).names
        ('a', 'b')
        """
        return tuple(v.name for v in self.variables)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each variable.

        Examples
        --------
        >>> Domain.of({"a": 2, "b": 3}).shape
        (2, 3)
        """
        return tuple(len(v) for v in self.variables)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.names)}

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        """Iterate over the variables."""
        return iter(self.variables)

    def __contains__(self, name: object) -> bool:
        """Say whether a variable of this name is there."""
        return str(name) in self._positions

    def __getitem__(self, key: str | int) -> Variable:
        """Return a variable by name, or by position if the key is an integer."""
        return self.variables[self.index(key) if isinstance(key, str) else key]

    def index(self, name: Hashable) -> int:
        """Return the position of a variable.

        Examples
        --------
        >>> d = Domain.of({"smoke": 2, "age": 3})
        >>> d.index("age")
        1
        >>> d.index("smoek")
        Traceback (most recent call last):
        ...
        KeyError: "No variable 'smoek' among 'smoke', 'age'. Did you mean 'smoke'?"
        """
        try:
            return self._positions[str(name)]
        except KeyError:
            near = nearest(name, self.names)
            raise KeyError(f"No variable {cite(name)} among {show(self.names)}.{near}") from None

    def indices(self, names: str | Iterable[Hashable]) -> tuple[int, ...]:
        """Return the positions of several variables; a text is taken as one name.

        Examples
        --------
        >>> d = Domain.of({"a": 2, "b": 2, "c": 2})
        >>> d.indices(["c", "a"]), d.indices("b")
        ((2, 0), (1,))
        """
        return tuple(self.index(n) for n in ([names] if isinstance(names, str) else names))

    def project(self, names: str | Iterable[Hashable]) -> "Domain":
        """Return the domain of some of the variables, in the order asked.

        Examples
        --------
        >>> Domain.of({"a": 2, "b": 3, "c": 4}).project(["c", "a"]).shape
        (4, 2)
        """
        return Domain(tuple(self.variables[i] for i in self.indices(names)))

    def to_json(self) -> dict[str, Any]:
        """Return the domain as plain lists and dicts that JSON can hold.

        Examples
        --------
        >>> Domain.of({"a": ["x", "y"]}).to_json()
        {'variables': [{'name': 'a', 'kind': 'nominal', 'levels': ['x', 'y']}]}
        """
        return {"variables": [_variable_to_json(v) for v in self.variables]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Domain":
        """Make the domain that `to_json` wrote.

        Examples
        --------
        >>> d = Domain.of({"a": ["x", "y"], "b": 3})
        >>> Domain.from_json(d.to_json()) == d
        True
        """
        return cls(tuple(_variable_from_json(v) for v in data["variables"]))


def refuse_duplicates(names: Iterable[str]) -> None:
    """Raise an error that lists every name that occurs more than once.

    Examples
    --------
    >>> refuse_duplicates(["a", "b", "a"])
    Traceback (most recent call last):
    ...
    ValueError: Two or more variables are called 'a': each needs its own name (names are \
compared as text).
    """
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"Two or more variables are called {show(twice)}: "
            "each needs its own name (names are compared as text)."
        )


def _variable_to_json(variable: Variable) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": variable.name, "kind": variable.kind}
    plain["levels"] = [_level_to_json(level) for level in variable.levels]
    if variable.representatives is not None:
        plain["representatives"] = list(variable.representatives)
    if variable.contents is not None:
        plain["contents"] = [[[*map(_plain, x)] for x in pairs] for pairs in variable.contents]
    if variable.empty is not None:
        levels = [_level_to_json(level) for level in variable.empty.levels]
        plain["empty"] = {"parent": variable.empty.parent, "levels": levels}
    return plain


def _plain(number: float) -> float:
    """Return whole numbers without a decimal point."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _variable_from_json(plain: Mapping[str, Any]) -> Variable:
    stand_ins, empty = plain.get("representatives"), plain.get("empty")
    if empty is not None:
        parent = empty["parent"]
        if not (parent is None or isinstance(parent, str)):
            raise TypeError(f"the parent {cite(parent)} is not a name")
        empty = EmptyCells(parent, tuple(map(_level_from_json, empty["levels"])))
    levels = tuple(map(_level_from_json, plain["levels"]))
    stand_ins = None if stand_ins is None else tuple(stand_ins)
    return Variable(plain["name"], levels, plain["kind"], stand_ins, plain.get("contents"), empty)


def _level_to_json(level: Level) -> Any:
    if isinstance(level, Bin):
        ends = [_level_to_json(float(level.left)), _level_to_json(float(level.right))]
        return {"bin": [*ends, level.closed_right]}
    if isinstance(level, float) and not math.isfinite(level):
        return {"float": str(level)}  # JSON has no infinity
    return level


def _level_from_json(plain: Any) -> Level:
    if not isinstance(plain, dict):
        return plain  # type: ignore[no-any-return]
    if "float" in plain:
        return float(plain["float"])
    left, right, closed = plain["bin"]
    return Bin(_level_from_json(left), _level_from_json(right), closed)  # type: ignore[arg-type]


def positions(domain: Domain, names: str | Iterable[Hashable]) -> tuple[int, ...]:
    """Return the positions of the requested variables; a repeated one is an error.

    Examples
    --------
    >>> positions(Domain.of({"a": 2, "b": 3}), ["b", "a"])
    (1, 0)
    >>> positions(Domain.of({"a": 2, "b": 3}), ["b", "b"])
    Traceback (most recent call last):
    ...
    ValueError: Variable 'b' is requested twice: name each variable once.
    """
    asked = domain.indices(names)
    for n, times in Counter(asked).items():
        if times > 1:
            name = cite(domain.names[n])
            raise ValueError(f"Variable {name} is requested twice: name each variable once.")
    return asked


def level_order(domain: Domain, wanted: Domain) -> list[NDArray[np.intp]]:
    """Positions of the levels of each wanted variable in `domain`; an error if they differ.

    Examples
    --------
    >>> level_order(Domain.of({"a": ["x", "y"], "b": 2}), Domain.of({"b": 2, "a": ["y", "x"]}))
    [array([0, 1]), array([1, 0])]
    """
    if set(domain.names) != set(wanted.names):
        odd = sorted(set(domain.names) ^ set(wanted.names))
        raise ValueError(
            f"The two have different variables: {show(odd)} "
            f"{'is' if len(odd) == 1 else 'are'} in one only. Project both onto their common "
            "variables."
        )
    orders = []
    for variable in wanted:
        levels = domain[variable.name].levels
        if set(levels) != set(variable.levels):
            both = set(levels) & set(variable.levels)
            lone = [level for level in (*levels, *variable.levels) if level not in both]
            raise ValueError(
                f"Variable {cite(variable.name)} has different levels in the two: {cite(lone[0])} "
                "is in one only. Declare the same levels in both domains."
            )
        place = {level: i for i, level in enumerate(levels)}
        orders.append(np.array([place[level] for level in variable.levels]))
    return orders
