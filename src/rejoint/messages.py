"""Remarks: what a user should know although it is no error."""

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Remark(UserWarning):
    """Something that rejoint decided for you, and how to decide otherwise.

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


def remark(text: str) -> None:
    """Warn with a `Remark` that points at the first line outside this package.

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
    warnings.warn(text, Remark, stacklevel=depth + 1)
