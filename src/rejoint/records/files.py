"""Source: a file or standard input, unpacked, that can be opened more than once."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

_GZIP = b"\x1f\x8b"


class Source:
    """A file, or standard input (``-``), that can be opened more than once.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input, which is kept in memory so that it can be read twice.
    groups : range, optional
        Row groups of a Parquet file to read; all by default.
    content : bytes, optional
        What the file holds, where it is part of another one.

    Examples
    --------
    >>> Source("data/people.csv.gz").suffix
    '.csv'
    """

    def __init__(
        self,
        path: str | PathLike[str],
        groups: range | None = None,
        content: bytes | None = None,
    ) -> None:
        self.path = path
        self.groups = groups
        self.name = "standard input" if str(path) == "-" else str(path)
        self._kept = content

    @property
    def suffix(self) -> str:
        """Extension of the name, without ``.gz``, in lower case."""
        parts = [suffix.lower() for suffix in Path(self.name).suffixes]
        parts = parts[:-1] if parts and parts[-1] == ".gz" else parts
        return parts[-1] if parts else ""

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open at the beginning; gzip is recognized by its first bytes, not by the name."""
        with self._raw() as raw:
            start = raw.read(2)
            raw.seek(0)
            try:
                if start == _GZIP:
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield unpacked  # type: ignore[misc]
                else:
                    yield raw
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(
                    f"{self.name}: the gzip file is cut short or corrupt ({error}); copy it again."
                ) from error

    @contextmanager
    def _raw(self) -> Iterator[BinaryIO]:
        if str(self.path) == "-" or self._kept is not None:
            yield self._in_memory()
            return
        try:
            file = open(self.path, "rb")  # noqa: SIM115 (closed below; errors of the body pass)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"No file '{self.name}': check the name and the folder."
            ) from None
        except IsADirectoryError:
            raise IsADirectoryError(f"'{self.name}' is a folder; name a file.") from None
        with file:
            yield file

    def _in_memory(self) -> BinaryIO:
        if self._kept is None:
            self._kept = sys.stdin.buffer.read()
        return io.BytesIO(self._kept)
