"""Tables that come from files and go to them: what Marginals do with a folder."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal, Self

import numpy as np

from rejoint.domain import Domain
from rejoint.marginals.agreement import remark_on_disagreements
from rejoint.marginals.files import read_files
from rejoint.marginals.folders import find_folder, read_folder, write_tables
from rejoint.marginals.reading import ReadTables, check_covered, gather
from rejoint.marginals.store import TableStore
from rejoint.marginals.unknown import UnknownCells
from rejoint.marginals.weights import weights_of_tables

__all__ = ["TableExchange"]


class TableExchange(TableStore):
    """Tables that can be read and written; see :class:`rejoint.Marginals`."""

    @classmethod
    def read(
        cls,
        paths: Any,
        *,
        domain: Domain | None = None,
        kind: Literal["auto", "counts", "shares"] = "auto",
        table_weight: Mapping[Any, float] | float | None = None,
        noisy: bool = False,
        **options: Any,
    ) -> Self:
        r"""Read tables from a folder of CSV files, some files, or one that holds several.

        A folder that :meth:`write` made comes back as it was. Else each file is in long form (a
        column for each variable, one with the numbers) or a cross-tabulation; see the page on
        tables in the documentation. Totals are recognised and checked. Marks (``*``, ``.``,
        ``c``, ``<5``, nothing) are cells that are not known, which is not zero.

        Parameters
        ----------
        paths : path, or sequence of paths
            A folder, or files; ``-`` is standard input. gzip is unpacked.
        domain, kind, table_weight, noisy
            As for :meth:`from_tables`.
        **options
            ``suppressed``: further marks of cells that are not known, or a mapping from marks
            to bounds, ``{"*": (1, 4)}``. ``totals``: labels of totals; ``()`` for none.
            ``delimiter``, ``encoding``, ``decimal``: guessed where not given.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "smoke by age.csv")
        ...     text = "smoke \\ age,young,old,Total\nyes,30,<5,33\nno,20,40,60\n"
        ...     _ = path.write_text(text)
        ...     m = rj.Marginals.read(folder)
        >>> m
        Marginals(1 table of order 2 over 2 variables, about 93 records each, 1 cell not known)
        >>> m["smoke", "age"]
        array([[30.,  3.],
               [20., 40.]])
        """
        written = find_folder(paths)
        if written is not None:
            return cls(**read_folder(written))
        found = read_files(paths, domain=domain, noisy=noisy, **options)
        if table_weight is None or isinstance(table_weight, Mapping):
            table_weight = {**found.weights, **(table_weight or {})}
        made = cls._of_read(gather(found.tables, domain, kind), table_weight)
        check_covered(made.domain, made.index_subsets)
        remark_on_disagreements(made)
        return made

    def write(self, folder: str | PathLike[str]) -> None:
        """Write the tables to a folder of CSV files; :meth:`read` gives them back exactly.

        It is written whole or not at all. A folder with other files in it is left alone.

        Parameters
        ----------
        folder : path
            A new or empty one, or one that was written before, which is replaced.

        Examples
        --------
        >>> import rejoint as rj, tempfile
        >>> m = rj.Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     m.write(folder)
        ...     rj.Marginals.read(folder)["a", "b"]
        array([[1., 2.],
               [3., 4.]])
        """
        write_tables(self, folder)

    @classmethod
    def _of_read(cls, read: ReadTables, table_weight: Any) -> Self:
        """Tables over one domain, one after another."""
        flat = np.concatenate([*(table.ravel() for table in read.tables), np.empty(0)])
        starts = np.cumsum([0, *(table.size for table in read.tables)])
        unknown = [
            cells.shifted(int(start))
            for cells, start in zip(read.unknown, starts[:-1], strict=True)
            if cells is not None
        ]
        return cls(
            read.domain,
            read.subsets,
            flat,
            weights_of_tables(table_weight, read),
            counted=np.array(read.counted, dtype=bool),
            unknown=UnknownCells.together(unknown),
        )
