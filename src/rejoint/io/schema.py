"""Schemas of the JSON in files, which may come from strangers: checked before anything uses it.

A schema is a function of a value and of what it is called; it returns the value or raises a
`SchemaError`. Models with their notes, checkpoints, folders of tables and packs are read by these.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from rejoint.domain.domain import Domain
from rejoint.text import MOST_TEXT, cite, plural

Schema = Callable[[Any, str], Any]

LARGEST = 1e200
"""Whole numbers in JSON may have any size, which no float or sum of some holds."""

_MOST_SHOWN = 60  # characters of a value in a message


class SchemaError(ValueError):
    """Error raised for JSON that is not as its file should have it.

    Examples
    --------
    >>> text()(3, "its title")
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: its title is 3, expected text
    """


def _refuse(value: Any, where: str, wanted: str) -> NoReturn:
    try:
        shown = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        shown = type(value).__name__
    shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "..."
    raise SchemaError(f"{where} is {shown}, expected {wanted}")


def text(most: int = MOST_TEXT) -> Schema:
    """Accept text up to a number of characters."""

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, str) or len(value) > most:
            _refuse(value, where, "text" if not isinstance(value, str) else "short text")
        try:
            value.encode()
        except UnicodeEncodeError:
            _refuse(value, where, "text that a file can hold")
        return value

    return check


def number(
    low: float = -LARGEST, high: float = LARGEST, *, whole: bool = False, allow_nan: bool = False
) -> Schema:
    """Accept a number within bounds.

    Examples
    --------
    >>> number(0, 1)(0.5, "its share")
    0.5
    """
    kinds = (int,) if whole else (int, float)
    wanted = "a whole number" if whole else "a number"
    if low > -LARGEST and high < LARGEST:
        wanted += f" from {low:g} to {high:g}"
    elif low > -LARGEST:
        wanted += f" of at least {low:g}"

    def check(value: Any, where: str) -> Any:
        inside = type(value) in kinds and (low <= value <= high or (allow_nan and value != value))
        if not inside:
            _refuse(value, where, wanted)
        return value

    return check


def flag(value: Any, where: str) -> Any:
    """Accept true or false.

    Examples
    --------
    >>> flag(True, "it")
    True
    """
    if type(value) is not bool:
        _refuse(value, where, "true or false")
    return value


def nullable(schema: Schema) -> Schema:
    """Accept null too."""
    return lambda value, where: None if value is None else schema(value, where)


def list_of(item: Schema, *, size: int | None = None) -> Schema:
    """Accept a list, of a given number of items.

    Examples
    --------
    >>> list_of(text(), size=2)(["a"], "its pair")
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: its pair has 1 item, not 2
    """

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            _refuse(value, where, "a list")
        if size is not None and len(value) != size:
            raise SchemaError(f"{where} has {plural(len(value), 'item')}, not {size:,}")
        for k, each in enumerate(value, start=1):
            item(each, f"item {k} of {where}")
        return value

    return check


def pair_of(first: Schema, second: Schema) -> Schema:
    """Accept a list of two items.

    Examples
    --------
    >>> pair_of(flag, number())([True, 3], "it")
    [True, 3]
    """

    def check(value: Any, where: str) -> Any:
        list_of(anything, size=2)(value, where)
        first(value[0], f"item 1 of {where}")
        second(value[1], f"item 2 of {where}")
        return value

    return check


def dict_of(item: Schema) -> Schema:
    """Accept an object whose values all have one schema."""

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            _refuse(value, where, "an object")
        for key, each in value.items():
            item(each, f"{cite(key[:_MOST_SHOWN])} of {where}")
        return value

    return check


def object_of(
    required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None
) -> Schema:
    """Accept an object with these keys; other keys are ignored.

    Examples
    --------
    >>> object_of({"a": flag})({"a": True, "b": 3}, "it")
    {'a': True, 'b': 3}
    """

    def check(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            _refuse(value, where, "an object")
        for key, schema in required.items():
            if key not in value:
                raise SchemaError(f"{where} has no {cite(key)}")
            schema(value[key], f"{cite(key)} of {where}")
        for key, schema in (optional or {}).items():
            if key in value:
                schema(value[key], f"{cite(key)} of {where}")
        return value

    return check


def anything(value: Any, where: str) -> Any:
    """Accept any value, which another reader checks.

    Examples
    --------
    >>> anything([1], "it")
    [1]
    """
    return value


def read_json(data: bytes | str, *, allow_nan: bool = False) -> Any:
    """Return the value of a JSON text; raise a SchemaError if it is invalid or too deep.

    Examples
    --------
    >>> read_json("[" * 100_000)
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: its JSON cannot be read: ...
    """
    try:
        return json.loads(data, parse_constant=None if allow_nan else _refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"its JSON cannot be read: {str(error)[:200]}") from error


def _refuse_constant(found: str) -> NoReturn:
    raise ValueError(f"{found} is not a number")


def read_domain(plain: Any) -> Domain:
    """Return the domain of a file; raise a SchemaError if it is invalid.

    Examples
    --------
    >>> read_domain({})
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: its domain cannot be read: 'variables'
    """
    try:
        return Domain.from_json(plain)
    except (
        *(KeyError, TypeError, ValueError, AttributeError, IndexError),
        *(OverflowError, RecursionError),
    ) as error:
        raise SchemaError(f"its domain cannot be read: {str(error)[:200]}") from error
