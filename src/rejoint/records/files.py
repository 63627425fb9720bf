"""Source: a file, a pipe or standard input, unpacked, which can be opened again; its text."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rejoint.cost import read_all
from rejoint.messages import remark
from rejoint.text import cite

_GZIP = b"\x1f\x8b"

#: Bytes that encoding and delimiter are guessed from.
SAMPLE_BYTES = 2**18

#: Characters of a line. What has no end of line would be read until memory ends.
MOST_LINE = 2**28

_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


class Source:
    """A file, a pipe, or standard input (``-``), that can be opened more than once.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input. What can be read only once, as a pipe, is kept in memory.
    groups : range, optional
        Row groups of a Parquet file to read; all by default.
    content : bytes, optional
        What the file holds, where it is part of another one.
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
        if str(self.path) == "-" and self._kept is None:
            self._kept = read_stdin()
        if self._kept is not None:
            yield io.BytesIO(self._kept)
            return
        try:
            file = open(self.path, "rb")  # noqa: SIM115 (closed below; errors of the body pass)
        except FileNotFoundError:
            text = f"No file '{self.name}': check the name and the folder."
            raise FileNotFoundError(text) from None
        except IsADirectoryError:
            text = f"'{self.name}' is a folder; give the name of a file."
            raise IsADirectoryError(text) from None
        with file:
            if file.seekable():
                yield file
            else:
                self._kept = read_all(file, self.name)
                yield io.BytesIO(self._kept)


def read_stdin() -> bytes:
    """Return all of standard input; raise an error in words where it is closed."""
    if sys.stdin is None:
        raise ValueError("Standard input is closed: give the name of a file.")
    return read_all(sys.stdin.buffer, "standard input")


class Beginning(NamedTuple):
    """Encoding of a text, its first characters, and whether these are all."""

    encoding: str
    text: str
    is_all: bool


def read_beginning(source: Source, encoding: str | None = None) -> Beginning:
    """Return the encoding of a text, as given or guessed, and the beginning of the text."""
    with source.open() as file:
        sample = file.read(SAMPLE_BYTES)
    encoding = encoding or _guess_encoding(source, sample)
    try:
        text = sample.decode(encoding, errors="replace")
    except (LookupError, ValueError):  # unknown, not of text, or with a zero in its name
        no = "is not known to Python as an encoding of text"
        raise ValueError(f"encoding={cite(encoding)} {no}.") from None
    if "\0" in text:
        use = "give format= if it has another format, or encoding="
        raise ValueError(f"{source.name} contains zero bytes, so it is not text: {use}.")
    return Beginning(encoding, text, len(sample) < SAMPLE_BYTES)


def _guess_encoding(source: Source, sample: bytes) -> str:
    for mark, encoding in _MARKS.items():
        if sample.startswith(mark):
            return encoding
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(sample) - error.start > 3:  # otherwise the sample ends within a character
            remark(
                f"{source.name} is not UTF-8 (byte {error.start}): it is read as Windows-1252, the "
                "most common other Western encoding. Give encoding= if that is wrong."
            )
            return "cp1252"
    return "utf-8"


def read_lines(source: Source, encoding: str) -> Iterator[str]:
    """Yield the lines of a text with their ends."""
    with source.open() as file:
        lines = io.TextIOWrapper(file, encoding=encoding, newline="")
        seen = 0
        try:
            while line := lines.readline(MOST_LINE):
                if len(line) == MOST_LINE:
                    long = f"line {seen + 1} has {MOST_LINE:,} characters or more"
                    no = "it is not text with one record per line"
                    raise ValueError(f"{source.name}, {long}: {no}.")
                seen += 1
                yield line
        except UnicodeError as error:
            reason = getattr(error, "reason", error)
            use = "Use encoding=, for instance 'latin-1'"
            text = f"{source.name}, after line {seen}: not {encoding} ({reason}). {use}."
            raise ValueError(text) from error
        lines.detach()  # the source closes what it opened
