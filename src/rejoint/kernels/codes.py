"""SparseCodes: records by what is observed of them, as a CSR matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.kernels.backend import Codes, check_codes


@dataclass(frozen=True, eq=False)
class SparseCodes:
    """Observed values, record after record: the CSR form of a table of codes.

    Memory and the time of a pass grow with the number of observed values, not with records times
    variables.

    Parameters
    ----------
    starts : (M + 1,) array of int
        Where the values of each record begin, and their number at the end.
    cells : array of int
        For each value its level, numbered through all variables: ``sum(levels[:n]) + code``.
        Increasing within a record, and at most one of each variable.
    levels : sequence of N int
        Number of levels of each variable.

    Examples
    --------
    >>> found = SparseCodes.of_codes(np.array([[-1, 2], [0, -1], [-1, -1]], dtype=np.int16), [2, 3])
    >>> found.starts, found.cells
    (array([0, 1, 2, 2]), array([4, 0], dtype=int32))
    >>> found.to_codes()
    array([[-1,  2],
           [ 0, -1],
           [-1, -1]], dtype=int16)
    """

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(int(n) for n in self.levels))
        for name, dtype in (("starts", np.int64), ("cells", np.int32)):
            array = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            if array is getattr(self, name) and array.flags.writeable:
                array = array.view()  # the caller's own stays writable
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        self._check()

    def _check(self) -> None:
        if min(self.levels, default=0) < 1:
            raise ValueError(f"Each variable needs at least one level, got {self.levels[:10]}.")
        starts, cells = self.starts, self.cells
        if starts.ndim != 1 or cells.ndim != 1 or not len(starts):
            raise ValueError("starts and cells must have one dimension; starts must not be empty.")
        if starts[0] != 0 or starts[-1] != len(cells) or (np.diff(starts) < 0).any():
            raise ValueError(f"starts must rise from 0 to the number of cells, {len(cells)}.")
        if len(cells) and not 0 <= cells.min() <= cells.max() < sum(self.levels):
            raise ValueError(f"cells must be levels, numbered from 0 to {sum(self.levels) - 1}.")
        rising = np.diff(self.variables) > 0
        begun = starts[(starts > 0) & (starts < len(cells))] - 1
        rising[begun] = True  # from one record to the next
        if not rising.all():
            row = int(np.searchsorted(starts, np.argmin(rising), side="right")) - 1
            raise ValueError(
                f"Record {row}: cells must be in the order of the variables, at most one of each."
            )

    @classmethod
    def of_codes(cls, codes: Codes, levels: Sequence[int]) -> "SparseCodes":
        """Make them from a table of codes, -1 where a value is missing.

        Examples
        --------
        >>> SparseCodes.of_codes(np.array([[1, 0]], dtype=np.int16), [2, 2]).cells
        array([1, 2], dtype=int32)
        """
        check_codes(codes, levels)
        row, column = np.nonzero(codes >= 0)
        first = _begins(levels)
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(codes)))])
        return cls.trusted(starts, first[column] + codes[row, column], tuple(levels))

    @classmethod
    def trusted(
        cls, starts: NDArray[Any], cells: NDArray[Any], levels: tuple[int, ...]
    ) -> "SparseCodes":
        """Make them without checks, from arrays that were made of codes already checked.

        Kernels read where these arrays say: use the constructor for any others.

        Examples
        --------
        >>> SparseCodes.trusted(np.array([0, 1]), np.array([1]), (2,)).to_codes()
        array([[1]], dtype=int16)
        """
        made = object.__new__(cls)
        for name, value in (
            ("starts", np.ascontiguousarray(starts, dtype=np.int64)),
            ("cells", np.ascontiguousarray(cells, dtype=np.int32)),
        ):
            value.setflags(write=False)
            object.__setattr__(made, name, value)
        object.__setattr__(made, "levels", levels)
        return made

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"SparseCodes({len(self):,} x {len(self.levels):,}, {self.size:,} observed)"

    @property
    def size(self) -> int:
        """Number of observed values.

        Examples
        --------
        >>> SparseCodes.of_codes(np.array([[1, -1]], dtype=np.int16), [2, 2]).size
        1
        """
        return len(self.cells)

    @cached_property
    def variables(self) -> NDArray[np.int32]:
        """Variable of each value."""
        of_level = np.repeat(np.arange(len(self.levels), dtype=np.int32), self.levels)
        return of_level[self.cells]

    @property
    def first(self) -> NDArray[np.int64]:
        """The first level of each variable, numbered through all variables."""
        return _begins(self.levels)

    @property
    def codes(self) -> NDArray[np.int64]:
        """Code of each value: its level within its variable.

        Examples
        --------
        >>> SparseCodes(np.array([0, 2]), np.array([1, 2]), (2, 2)).codes
        array([1, 0])
        """
        return self.cells - self.first[self.variables]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of observed values of each record."""
        return np.diff(self.starts)

    def __getitem__(self, rows: Any) -> "SparseCodes":
        """Return some records: a slice, an array of numbers, or a boolean mask."""
        chosen = np.arange(len(self))[rows]
        if chosen.ndim != 1:
            raise IndexError("SparseCodes take a slice or an array of records.")
        counts = self.counts[chosen]
        starts = np.concatenate([[0], np.cumsum(counts)])
        # Numbers 0, 1, ... of the new values, shifted to where each record begins.
        shift = np.repeat(self.starts[:-1][chosen] - starts[:-1], counts)
        return SparseCodes.trusted(starts, self.cells[np.arange(starts[-1]) + shift], self.levels)

    def pick(self, variables: Sequence[int]) -> "SparseCodes":
        """Return some of the variables, each once, in the order given.

        Examples
        --------
        >>> SparseCodes(np.array([0, 2]), np.array([1, 2]), (2, 3)).pick([1, 0]).cells
        array([0, 4], dtype=int32)
        """
        levels = tuple(self.levels[n] for n in variables)
        begins = np.full(len(self.levels), -1, dtype=np.int64)  # of the levels of each variable
        begins[list(variables)] = _begins(levels)
        begin = begins[self.variables]
        kept = np.flatnonzero(begin >= 0)
        cells = self.codes[kept] + begin[kept]
        row = np.repeat(np.arange(len(self)), self.counts)[kept]
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self)))])
        return SparseCodes(starts, cells[np.lexsort((cells, row))], levels)

    def to_codes(self) -> Codes:
        """Return a table of codes.

        Examples
        --------
        >>> SparseCodes(np.array([0, 2]), np.array([1, 2]), (2, 2)).to_codes()
        array([[1, 0]], dtype=int16)
        """
        wide = max(self.levels) > np.iinfo(np.int16).max
        codes = np.full((len(self), len(self.levels)), -1, dtype=np.int32 if wide else np.int16)
        row = np.repeat(np.arange(len(self)), self.counts)
        codes[row, self.variables] = self.codes
        return codes


def _begins(levels: Sequence[int]) -> NDArray[np.int64]:
    """Where the levels of each variable begin, numbered through all variables."""
    sizes = np.asarray(levels, dtype=np.int64)
    return np.cumsum(sizes) - sizes
