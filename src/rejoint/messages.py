"""Messages to users: plain sentences that name arguments as Python writes them.

The command line says its options in their place: ``bins={'age': 5}`` becomes ``--bins 'age=5'``
where a message is shown.
"""

import os
import sys
import warnings
from collections.abc import Iterable
from math import inf, isfinite
from time import perf_counter
from types import EllipsisType
from typing import Any, Self

from rejoint.text import cite, clean_label, duration, shorten

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def Argument(name: str, value: Any = ...) -> str:
    """Return an argument of a Python function, with the value to give, if there is one."""
    return f"{name}={'' if isinstance(value, EllipsisType) else _literal(value)}"


#: The name of a function, a method or an argument in Python; advice that only Python can follow.
PythonName = PythonOnly = str


class Message(str):
    """A text made of a template and of values, long ones of which are shortened."""

    #: The sentences that it was joined of.
    parts: tuple[str, ...] = ()

    def __new__(cls, template: str, /, **fields: Any) -> Self:
        """Format the template."""
        shown = {key: _shorten(value) for key, value in fields.items()}
        return super().__new__(cls, template.format(**shown) if fields else template)


def _shorten(value: Any) -> Any:
    plain = str(value) if isinstance(value, tuple | list | dict) else value
    if type(plain) is not str or (shown := shorten(plain)) == plain:
        return value
    return shown


def join_messages(parts: Iterable[str], between: str = " ") -> Message:
    """Join texts into one message; empty ones are left out."""
    kept = [part for part in parts if part]
    message = Message(between.join(kept))
    if between.isspace():
        message.parts = tuple(p for part in kept for p in getattr(part, "parts", ()) or (part,))
    return message


def _literal(value: Any) -> str:
    """Return a value as it is written in Python, with ``...`` for what is left to the reader."""
    if isinstance(value, EllipsisType):
        return "..."
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_literal(key)}: {_literal(cell)}" for key, cell in value.items())
        return f"{{{', '.join(pairs)}}}"
    return cite(value)


class Remark(UserWarning):
    """Warning about a default decision of rejoint, and how to decide otherwise.

    Remarks are ordinary warnings: silence them or turn them into errors by the
    standard filters.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     remark("Variable 'age' has 73 distinct numbers.")
    >>> said[0].category.__name__, str(said[0].message)
    ('Remark', "Variable 'age' has 73 distinct numbers.")
    """


#: Texts of remarks that were given.
_GIVEN: set[str] = set()


def remark(text: str) -> None:
    """Warn with a `Remark` that points at the first line outside this package.

    The same text is given once a session, unless the filter of warnings that applies to it says
    "always" or "error".

    Parameters
    ----------
    text : str
        What happened, where, and what to do about it.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", Remark)
    ...     remark("a remark can be made an error")
    Traceback (most recent call last):
    ...
    rejoint.messages.Remark: a remark can be made an error
    """
    # The depth of the call differs from path to path, so it is looked up, not passed along.
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    module = frame.f_globals.get("__name__") or "<unknown>"
    action = _filter_of(str(text), module, frame.f_lineno)
    # Folds of a cross-validation differ in their cells: once for each variable will do.
    key = str(text).partition(":")[0] if module.startswith("sklearn.") else str(text)
    if action in _WHERE_NEW and key in _GIVEN:
        return
    if action != "ignore":
        _GIVEN.add(key)
    warnings.warn(text, Remark, stacklevel=depth + 1)


#: Actions of filters by which a warning is given where it is new.
_WHERE_NEW = ("default", "module", "once")


def _filter_of(text: str, module: str, line: int) -> str:
    """The action of the first filter of warnings that applies to a remark."""
    # Python forgets which warnings were given whenever any filter changes, which libraries do.
    for action, pattern, category, modules, number in warnings.filters:
        if (
            issubclass(Remark, category)
            and (pattern is None or pattern.match(text))
            and (modules is None or modules.match(module))
            and number in (0, line)
        ):
            return action
    return "default"


class FitInterrupted(KeyboardInterrupt):
    """Raised when Ctrl-C ends a fit; ``result`` is the best result so far.

    Examples
    --------
    >>> try:
    ...     raise FitInterrupted("the best so far")
    ... except KeyboardInterrupt as interrupted:
    ...     interrupted.result
    'the best so far'
    """

    def __init__(self, result: Any) -> None:
        super().__init__("Interrupted: .result has the best fit so far.")
        self.result = result


class Countdown:
    """Estimates how much time is left from the speed of the work that is done.

    Parameters
    ----------
    total : float
        All the work, in any unit.
    done : float
        What of it was done before.

    Examples
    --------
    >>> countdown = Countdown(100.0)
    >>> countdown.tell(0.0)
    ''
    >>> countdown.begun -= 10.0  # as if ten seconds had passed
    >>> countdown.tell(25.0)
    ', about 30 seconds left'
    """

    def __init__(self, total: float, done: float = 0.0) -> None:
        self.total, self.first, self.begun = total, done, perf_counter()

    def tell(self, done: float) -> str:
        """Return about how much time is left; empty in the first second."""
        passed, made = perf_counter() - self.begun, done - self.first
        if passed < 1.0 or not made > 0.0:
            return ""
        return f", about {duration(passed * max(self.total - done, 0.0) / made)} left"


class Progress:
    """Lines of progress on a terminal's stderr, each over the last; silent elsewhere.

    Examples
    --------
    >>> with Progress(shown=False) as report:
    ...     report("start 1")
    """

    def __init__(self, shown: bool | None = None, every: float = 0.2) -> None:
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.every = every
        self.last = -inf

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown and isfinite(self.last):
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, line: str) -> None:
        """Show a line, unless the last one is fresh."""
        now = perf_counter()
        if self.shown and now - self.last >= self.every:
            self.last = now
            sys.stderr.write(f"\r\x1b[K{clean_label(line, 1000)}")
            sys.stderr.flush()
