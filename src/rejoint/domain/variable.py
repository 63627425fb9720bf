"""Variable: one discrete quantity, its levels, and the way from labels to codes and back."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.bins import Bin
from rejoint.domain.columns import Codes
from rejoint.domain.encoding import code_of, encode_column, unknown_error, unknown_text
from rejoint.domain.labels import Level, is_missing, is_number, native, nearest, show
from rejoint.domain.levels import checked_levels, checked_representatives, label_array
from rejoint.domain.series import read_column
from rejoint.remarks import remark

__all__ = ["HandleUnknown", "Kind", "Variable"]

Kind = Literal["nominal", "ordinal", "binned"]
HandleUnknown = Literal["missing", "error"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A discrete variable: its name and its levels in order.

    Labels match as Python compares them: 1, 1.0 and ``np.int64(1)`` are one level (and so
    is True), "1" is another.

    Parameters
    ----------
    name : str
        What the variable is called.
    levels : sequence of str, int, float, bool or Bin
        The labels it can take, in order; declared levels need not occur.
    kind : {"nominal", "ordinal", "binned"}, default "nominal"
        Whether the order of the levels means something; a variable whose levels are
        adjoining `Bin` intervals is always binned.
    representatives : sequence of float, optional
        Binned variables only: the number that stands for each bin, by default its middle.

    Examples
    --------
    >>> grade = Variable("grade", ("low", "mid", "high"), "ordinal")
    >>> len(grade), grade.code("mid")
    (3, 1)
    >>> grade.encode(["high", None, "low"])
    array([ 2, -1,  0], dtype=int16)
    """

    name: str
    levels: tuple[Level, ...]
    kind: Kind = "nominal"
    representatives: tuple[float, ...] | None = None
    _codes: dict[Level, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        levels = checked_levels(self.name, self.levels)
        kind = "binned" if any(isinstance(level, Bin) for level in levels) else self.kind
        stand_ins = checked_representatives(self.name, levels, kind, self.representatives)
        object.__setattr__(self, "name", str(self.name))
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "representatives", stand_ins)
        object.__setattr__(self, "_codes", {level: i for i, level in enumerate(levels)})

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.levels)

    def encode(self, column: Any, *, handle_unknown: HandleUnknown = "missing") -> Codes:
        """Turn labels into codes; missing cells are -1.

        Parameters
        ----------
        column : sequence
            Labels; numbers or bins where the variable is binned.
        handle_unknown : {"missing", "error"}, default "missing"
            What to do with labels that are no level: count them as missing, with a
            `Remark`, or raise an error.

        Returns
        -------
        ndarray of int16 (int32 beyond 32,767 levels)

        Examples
        --------
        >>> Variable("age", (Bin(0, 18), Bin(18, 65, True)), "binned").encode([12, 65, None])
        array([ 0,  1, -1], dtype=int16)
        >>> Variable("x", ("a", "b")).encode(["a", "c"], handle_unknown="error")
        Traceback (most recent call last):
        ...
        ValueError: Variable 'x', row 1: level 'c' is not among 'a', 'b'; declare it in the \
Domain or leave the cell empty.
        """
        check_handle_unknown(handle_unknown)
        codes, unknown = encode_column(self.levels, read_column(column, self.name))
        if unknown is not None:
            if handle_unknown == "error":
                raise unknown_error(self.name, self.levels, unknown)
            remark(unknown_text(self.name, self.levels, unknown))
        return codes

    def decode(self, codes: Any, *, missing: object = None) -> NDArray[Any]:
        """Turn codes into labels, as objects with `missing` in the holes if there are any.

        Examples
        --------
        >>> Variable("x", ("a", "b")).decode([1, 0])
        array(['b', 'a'], dtype='<U1')
        >>> Variable("x", ("a", "b")).decode([1, -1], missing="?")
        array(['b', '?'], dtype=object)
        """
        codes = np.asarray(codes, dtype=None if np.size(codes) else np.intp)
        if codes.size and not (codes.min() >= -1 and codes.max() < len(self)):
            bad = codes[(codes < -1) | (codes >= len(self))].flat[0]
            raise ValueError(
                f"Variable {self.name!r}: code {bad} is not among 0..{len(self) - 1} "
                "(-1 is missing)."
            )
        labels = label_array(self.levels)
        holes = codes < 0
        filled: NDArray[Any] = (labels.astype(object) if holes.any() else labels)[codes]
        if holes.any():
            filled[holes] = missing
        return filled

    def code(self, level: object) -> int:
        """Return the position of a level; of the bin around a number where binned.

        Examples
        --------
        >>> age = Variable("age", (Bin(0, 18), Bin(18, 65, True)), "binned")
        >>> age.code(20), age.code(Bin(0, 18)), age.code("[18, 65]")
        (1, 0, 1)
        >>> Variable("smoke", ("yes", "no")).code("yess")
        Traceback (most recent call last):
        ...
        ValueError: Variable 'smoke': level 'yess' is not among 'yes', 'no'. Did you mean 'yes'?
        """
        try:
            found = code_of(self.levels, self._codes, native(level))
        except TypeError:  # nothing that could be a label, or hashed
            found = -2
        if found < 0:
            raise ValueError(
                f"Variable {self.name!r}: level {level!r} is not among {show(self.levels)}."
                + nearest(level, self.levels)
            )
        return found

    @property
    def numeric(self) -> NDArray[np.float64]:
        """The value of each level as a number; its representative where binned.

        Examples
        --------
        >>> Variable("stars", (1, 2, 3)).numeric
        array([1., 2., 3.])
        >>> Variable("age", (Bin(0, 18), Bin(18, 65)), "binned").numeric
        array([ 9. , 41.5])
        """
        if self.representatives is not None:
            return np.array(self.representatives)
        words = [level for level in self.levels if not is_number(level)]
        if words:
            raise ValueError(
                f"Variable {self.name!r} has levels that are no numbers ({show(words)}): "
                "it has a mode, but no mean or other expectation."
            )
        return np.array(self.levels, dtype=np.float64)

    def likelihood(self, evidence: Any) -> NDArray[np.float64]:
        """Return how well each level agrees with the evidence.

        Parameters
        ----------
        evidence : level, collection of levels, or array of float
            A level (1 for it, 0 for the others); a list, tuple or set of levels (any of
            them); an array of floats with one likelihood for each level (soft evidence);
            None or NaN (no evidence, all ones).

        Examples
        --------
        >>> import numpy as np
        >>> x = Variable("x", ("a", "b", "c"))
        >>> x.likelihood("b"), x.likelihood(["a", "c"])
        (array([0., 1., 0.]), array([1., 0., 1.]))
        >>> x.likelihood(np.array([0.9, 0.1, 0.0]))
        array([0.9, 0.1, 0. ])
        """
        if isinstance(evidence, np.ndarray) and evidence.ndim > 0:
            if evidence.dtype.kind == "f":
                return _soft_evidence(self, evidence)
            evidence = evidence.ravel().tolist()
        if is_missing(evidence):
            return np.ones(len(self))
        several = isinstance(evidence, (list, tuple, set, frozenset, range))
        levels = list(evidence) if several and not isinstance(evidence, Bin) else [evidence]
        if not levels:
            raise ValueError(
                f"Variable {self.name!r}: an empty list of levels can never be true; "
                "leave the variable out if nothing is known about it."
            )
        weights = np.zeros(len(self))
        weights[[self.code(level) for level in levels]] = 1.0
        return weights


def check_handle_unknown(handle_unknown: str) -> None:
    """Refuse anything but the two ways to treat unknown labels.

    Examples
    --------
    >>> check_handle_unknown("drop")
    Traceback (most recent call last):
    ...
    ValueError: handle_unknown must be 'missing' or 'error', not 'drop'.
    """
    if handle_unknown not in ("missing", "error"):
        raise ValueError(f"handle_unknown must be 'missing' or 'error', not {handle_unknown!r}.")


def _soft_evidence(variable: Variable, evidence: NDArray[Any]) -> NDArray[np.float64]:
    if evidence.shape != (len(variable),):
        raise ValueError(
            f"Variable {variable.name!r} has {len(variable)} levels: soft evidence must be one "
            f"likelihood for each, not an array of shape {evidence.shape}."
        )
    if not (np.isfinite(evidence).all() and (evidence >= 0).all() and evidence.any()):
        raise ValueError(
            f"Variable {variable.name!r}: soft evidence must be finite, nonnegative and not all "
            f"zero, not {evidence}."
        )
    return evidence.astype(np.float64)
