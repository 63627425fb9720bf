"""Scan: records that are read part by part; packed codes, which make passes fast.

A pack is a folder of plain files. ``codes.bin`` has the rows in order, one byte per cell (two
or four where a variable has many levels), ``weight.bin`` their weights as float64 and
``clusters.bin`` the keys of their clusters as int64, if there are any, and ``meta.json``, which is
written last, the domain, the number of rows and the survey design.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rejoint import kernels
from rejoint.domain.domain import Domain
from rejoint.domain.variable import code_dtype
from rejoint.io.atomic import atomic_folder
from rejoint.io.fit_notes import check_notes
from rejoint.io.schema import (
    LARGEST,
    SchemaError,
    anything,
    flag,
    number,
    object_of,
    read_domain,
    read_json,
    text,
)
from rejoint.records.records import Records
from rejoint.records.survey_design import SurveyDesign
from rejoint.text import duration, plural

T = TypeVar("T")
Report = Callable[[str], None]

#: Bytes of records that a fit keeps; finding identical ones takes three times as much.
MEMORY = 2**26


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """Records of a source that may be larger than memory; make one by :func:`rejoint.scan`.

    ``Marginals.count`` and ``estimate`` accept it in place of Records: they need only sums over
    records, which are the same whether computed at once or part by part.

    Parameters
    ----------
    domain : Domain
        The variables.
    read : callable
        Called for each pass; returns the parts, in the same order each time.
    source : str
        Its name in messages.
    stamp : str
        Identifies the source: names, sizes and dates of files.
    rows : int, optional
        Number of rows, where it is known beforehand.
    memory : int
        Bytes of records that a fit may keep; if all fit, the fit is that of records in memory.
    quick : bool
        Whether reading adds little to the cost of a pass; otherwise a fit packs the records first.
    design : SurveyDesign, optional
        What survey weights were found to be worth.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
    >>> data.domain["a"].levels
    ('x', 'y', 'z')
    >>> rj.Marginals.count(data, order=1)["a"]
    array([1., 1., 1.])
    """

    domain: Domain
    read: Callable[[], Iterator[Records]]
    source: str = "a source"
    stamp: str = ""
    rows: int | None = None
    quick: bool = False
    memory: int = MEMORY
    design: SurveyDesign | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.scan(lambda: iter([{"a": ["x", "y"]}])).names
        ('a',)
        """
        return self.domain.names

    @property
    def threads(self) -> int:
        """Number of threads for the computation on one part."""
        return kernels.available_threads()

    @property
    def part_memory(self) -> int:
        """Bytes of records that one part may take."""
        return self.memory

    def __repr__(self) -> str:
        size = "" if self.rows is None else f"{plural(self.rows, 'row')}, "
        return f"Scan of {self.source}: {size}{plural(len(self.domain), 'variable')}"

    def _why_no_table(self) -> str:
        return (
            f"{self!r} is read part by part, which Marginals.count and estimate support; "
            "everything else needs records in memory: rejoint.read(path), or Records.of one of its "
            "parts."
        )

    def __iter__(self) -> Iterator[Records]:
        """Iterate over the parts, from the beginning."""
        return self.read()

    def map(
        self,
        function: Callable[..., T],
        skip: int = 0,
        report: Report | None = None,
        *,
        numbered: bool = False,
    ) -> Iterator[T]:
        """Apply a function to every part but the first ``skip``, in order.

        ``report`` receives the progress, with the time left where ``rows`` is known. A
        ``numbered`` function also receives the number of the part.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
        >>> list(data.map(len))
        [2, 1]
        """
        begun, before, done = perf_counter(), 0, 0
        for place, part in enumerate(self.read()):
            if place < skip:
                before += len(part)
                continue
            yield function(part, place) if numbered else function(part)
            done += len(part)
            if report is not None:
                report(describe_progress(before, done, self.rows, perf_counter() - begun))

    def pack(self, folder: str | PathLike[str]) -> "Scan":
        """Write the codes to a folder, one or two bytes per cell, over which passes are fast.

        ``rj.scan(folder)`` opens it again without reading the source.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = rj.scan(lambda: iter([{"a": ["x", "y"]}, {"a": ["z"]}]))
        ...     data.pack(pathlib.Path(folder, "a"))
        Scan of a: 3 rows, 1 variable
        """
        return replace(pack(self, folder), memory=self.memory)


def describe_progress(before: int, done: int, rows: int | None, seconds: float) -> str:
    """Describe the progress of a pass: rows before it, rows in some seconds, and rows in all."""
    if not rows:
        return plural(before + done, "record")
    left = seconds * max(rows - before - done, 0) / max(done, 1)
    share = min((before + done) / rows, 1.0)
    return f"{share:.0%} of {plural(rows, 'record')}, {duration(left)} left"


META = "meta.json"
_FORMAT = "rejoint pack"


class Packed(NamedTuple):
    """What a pack holds beside its codes: all that is needed to read them.

    Parameters
    ----------
    domain : Domain
    rows : int
    types : dict of dtype
        Type of the numbers in each file: codes, and perhaps weights and keys of clusters.
    design : SurveyDesign, optional
    size : int
        Rows of a part.
    is_own : bool
        Whether this process has written the codes, so that they need no check.
    """

    domain: Domain
    rows: int
    types: dict[str, Any]
    design: SurveyDesign | None
    size: int
    is_own: bool


def pack(
    scan: Scan, folder: str | PathLike[str], report: Callable[[str], None] | None = None
) -> Scan:
    """Write the parts of a scan to a folder, which must be new or empty; parts keep their sizes."""
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as place:
        packed = _write_parts(scan, place, report)
        head = {"format": _FORMAT, "version": 1, "rows": packed.rows}
        head |= {"type": packed.types["codes"].str, "weighted": "weight" in packed.types}
        head["clustered"] = "clusters" in packed.types
        head["design"] = None if scan.design is None else scan.design.to_json()
        head["domain"] = scan.domain.to_json()
        (place / META).write_text(json.dumps(head), "utf-8")
    return _open(Path(folder), packed)


def pack_aside(scan: Scan, folder: Path, report: Callable[[str], None] | None = None) -> Scan:
    """Write the parts of a scan to a folder of this process alone, which is removed at its end."""
    packed = _open(folder, _write_parts(scan, folder, report))
    return replace(packed, source=scan.source, stamp=scan.stamp, memory=scan.memory)


def _write_parts(scan: Scan, place: Path, report: Callable[[str], None] | None) -> Packed:
    """Write codes and what is beside them."""
    kind = np.dtype(code_dtype(max(scan.domain.shape, default=1)))
    count = longest = 0
    with ExitStack() as stack:
        files = {"codes": stack.enter_context(open(place / "codes.bin", "wb"))}
        for part in scan:
            columns = {"codes": part.codes.astype(kind), "clusters": part.cluster_keys}
            columns["weight"] = part.sample_weight
            if part.sample_weight is None and "weight" in files:
                columns["weight"] = np.ones(len(part))
            for name, column in columns.items():
                if column is not None:
                    if name not in files:
                        files[name] = stack.enter_context(open(place / f"{name}.bin", "wb"))
                        np.ones(count, dtype=column.dtype).tofile(files[name])
                    column.tofile(files[name])
            count, longest = count + len(part), max(longest, len(part))
            if report is not None:
                report(f"{plural(count, 'record')} read")
    types = {"codes": kind} | {name: BESIDE[name] for name in files if name != "codes"}
    size = longest or rows_of_part(len(scan.domain))
    return Packed(scan.domain, count, types, scan.design, size, True)


def _open(place: Path, packed: Packed) -> Scan:
    """The scan of a pack."""
    codes = (place / "codes.bin").stat()
    stamp = f"pack {packed.rows} {codes.st_size} {codes.st_mtime_ns}"
    rest = place.name, stamp, packed.rows, True, MEMORY, packed.design
    return Scan(packed.domain, partial(_parts, place, packed), *rest)


_HEAD = object_of(
    {
        **{"rows": number(0, whole=True), "type": text(), "weighted": flag, "domain": anything},
    },
    {"clustered": flag, "design": anything},
)


def open_pack(folder: str | PathLike[str], size: int | None = None) -> Scan:
    """Open a folder written by :func:`pack`; its codes are checked as they are read."""
    place = Path(folder)
    try:
        head = read_json((place / META).read_bytes())
        if not isinstance(head, dict) or head.get("format") != _FORMAT or head.get("version") != 1:
            raise ValueError(f"'{folder}' is not a pack of records that this version can read.")
        _HEAD(head, META)
        domain = read_domain(head["domain"])
        check_notes({"survey_design": head.get("design")})
    except SchemaError as error:
        raise ValueError(f"'{folder}' is damaged: {error}.") from error
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"'{folder}' is not a pack of records: it has no {META}.") from None
    rows = head["rows"]
    if head["type"] not in ("|i1", "<i2", "<i4"):
        raise ValueError(f"'{folder}' is damaged: 'type' of {META} is none of codes.")
    types: dict[str, np.dtype[Any]] = {"codes": np.dtype(head["type"])}
    there = {"weight": head["weighted"], "clusters": head.get("clustered", False)}
    types |= {name: kind for name, kind in BESIDE.items() if there[name]}
    for name, kind in types.items():
        wide = len(domain) if name == "codes" else 1
        if (place / f"{name}.bin").stat().st_size != rows * wide * kind.itemsize:
            count = plural(rows, "row")
            raise ValueError(f"'{folder}' is damaged: {name}.bin does not have {count}.")
    design = SurveyDesign.from_json(head.get("design"))
    return _open(
        place, Packed(domain, rows, types, design, size or rows_of_part(len(domain)), False)
    )


def rows_of_part(variables: int) -> int:
    """Return the number of rows of a part that takes some megabytes."""
    return int(np.clip(4_000_000 // max(variables, 1), 1000, 100_000))


#: Types of what a pack has beside codes.
BESIDE: dict[str, np.dtype[Any]] = {"weight": np.dtype(np.float64), "clusters": np.dtype(np.int64)}


def _parts(place: Path, pack: Packed) -> Iterator[Records]:
    wide = len(pack.domain)
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(open(place / f"{name}.bin", "rb")) for name in pack.types
        }
        for start in range(0, pack.rows, pack.size):
            count = min(pack.size, pack.rows - start)
            columns = {
                name: np.fromfile(file, pack.types[name], count * (wide if name == "codes" else 1))
                for name, file in files.items()
            }
            codes, mass = columns["codes"].reshape(count, wide), columns.get("weight")
            if not pack.is_own:
                low, high = codes.min(axis=0, initial=0), codes.max(axis=0, initial=-1)
                if (low < -1).any() or (high >= np.array(pack.domain.shape)).any():
                    raise ValueError(f"'{place}' is damaged: there are codes that are no levels.")
                if mass is not None and not ((mass >= 0.0) & (mass < LARGEST)).all():
                    what = "weight.bin has numbers that are no weights"
                    raise ValueError(f"'{place}' is damaged: {what}.")
            keys = columns.get("clusters")
            yield Records._trusted(pack.domain, codes, mass, cluster_keys=keys)
