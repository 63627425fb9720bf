"""Tables in a folder: one CSV file for each, and ``tables.json``.

The CSV files are in long form, without cells that are zero. ``tables.json`` has the rest: variables
and their levels in order and type, weights, bounds of unknown cells, moments. A new folder is
written under a temporary name and then renamed. In a folder that has tables, ``tables.json`` is
replaced after the new CSV files are there, and the former ones are removed after that. The name of
each CSV file ends with a digest of its content, so no name ever stands for two tables: who reads
while another writes gets the old tables or the new ones, never some of both. Files of others in the
folder stay.
"""

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.io.atomic import atomic_file, atomic_folder, lock_folder, sync_folder
from rejoint.io.saved_tables import SUMS, check_sums, check_unknown, moment, read_moment
from rejoint.io.schema import (
    SchemaError,
    flag,
    list_of,
    nullable,
    number,
    object_of,
    one_of,
    read_domain,
    read_json,
    text,
)
from rejoint.marginals.moments import Moment
from rejoint.marginals.suppression import UnknownCells
from rejoint.records.delimited import Dialect, read_rows
from rejoint.records.files import Source
from rejoint.text import cite, plural, show

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

FORMAT, SCHEMA, MANIFEST = "rejoint.tables", 1, "tables.json"

#: Cells of all tables of a folder; more than these gigabytes are not read.
MOST_CELLS = 2**29

UNKNOWN = "*"


def write_tables(store: "Marginals", folder: str | os.PathLike[str]) -> None:
    """Write tables to a folder; ``Marginals.read(folder)`` gives them back exactly.

    Parameters
    ----------
    store : Marginals
        The tables.
    folder : path
        A new or empty folder, or one that this function wrote, whose tables are replaced.

    Examples
    --------
    >>> import rejoint as rj, tempfile
    >>> m = rj.Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(m, folder)
    ...     sorted(os.listdir(folder))
    ['0_a__b-944a8cab.csv', 'tables.json']
    """
    target = Path(os.path.realpath(folder))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot write '{folder}': there is no folder '{target.parent}'.")
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"Cannot write '{folder}': there is a file of that name.")
    for variable in store.domain:
        if len({str(level) for level in variable.levels}) < len(variable):
            raise ValueError(
                f"Variable {cite(variable.name)} has levels that look the same as text: rename "
                "them."
            )
    with _open_folder(target) as place:
        listed = _write(store, place)
        _remove_former(place, listed)


@contextmanager
def _open_folder(target: Path) -> Iterator[Path]:
    """A folder to write tables to: one that is renamed at the end, or the one that has tables."""
    if find_folder(target) is None:
        with atomic_folder(target) as aside:
            yield aside
    else:
        with lock_folder(target):
            yield target


def _write(store: "Marginals", folder: Path) -> set[str]:
    """Write the tables, then what lists them; return the names of their files."""
    entries, digits = [], len(str(max(len(store) - 1, 0)))
    for i, names in enumerate(store.subsets):
        kind = "count" if store.counted[i] else "share"
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow([*names, kind])
        writer.writerows(_cells(store, i))
        content = written.getvalue().encode()
        plain = re.sub(r"[^\w.+-]+", "_", "__".join(names))[:80]
        file = f"{i:0{digits}d}_{plain}-{_digest(content)}.csv"
        with atomic_file(folder / file, alone=False) as out:
            out.write(content)
        weight = float(store.table_weight[i])
        entry = {"file": file, "variables": names, "numbers": kind, "weight": weight}
        if store.rounding[i]:
            entry["rounding"] = float(store.rounding[i])
        entries.append(entry)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "domain": store.domain.to_json(),
        "tables": entries,
    }
    if store.noisy:
        manifest["noisy"] = True
    if store.unknown is not None:
        manifest["unknown"] = _unknown_to_json(store)
    if store.moments:
        manifest["moments"] = [_moment_to_json(moment) for moment in store.moments]
    sync_folder(folder)
    with atomic_file(folder / MANIFEST) as out:
        out.write(json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False).encode())
    return {str(entry["file"]) for entry in entries}


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=4).hexdigest()


_TABLE_FILE = re.compile(r"\d+_.*-([0-9a-f]{8})\.csv", re.DOTALL)


def _remove_former(folder: Path, listed: Collection[str]) -> None:
    """Remove tables that are no longer listed; a file is one of ours if its name has its digest."""
    for path in folder.iterdir():
        found = _TABLE_FILE.fullmatch(path.name)
        if found is None or path.name in listed or not path.is_file():
            continue
        if _digest(path.read_bytes()) == found[1]:
            path.unlink(missing_ok=True)


def _cells(store: "Marginals", i: int) -> Iterator[list[str]]:
    """Yield rows of one table: labels, and the shortest text of the number that is exact."""
    table = store.counts_of(i)
    cells = store.unknown_of(i)
    gone = set() if cells is None else set(cells.places.tolist())
    variables = [store.domain[n] for n in store.index_subsets[i]]
    there = np.flatnonzero(table.ravel())
    for place in sorted({*there.tolist(), *gone}):
        at = np.unravel_index(place, table.shape)
        labels = [str(v.levels[int(code)]) for v, code in zip(variables, at, strict=True)]
        yield [*labels, UNKNOWN if place in gone else _text(float(table[at]))]


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _unknown_to_json(store: "Marginals") -> dict[str, Any]:
    cells = store.unknown
    assert cells is not None
    return {
        "places": cells.places.tolist(),
        "low": cells.low.tolist(),
        "high": [value if np.isfinite(value) else None for value in cells.high.tolist()],
        "guess": store.flat[cells.places].tolist(),
        "sums": [[members.tolist(), value] for members, value in cells.sums],
    }


def _moment_to_json(moment: Moment) -> dict[str, Any]:
    vectors = [vector.tolist() for vector in moment.vectors]
    return {
        "variables": moment.variables,
        "vectors": vectors,
        "value": moment.value,
        "label": moment.label,
    }


def find_folder(paths: Any) -> Path | None:
    """Return the folder if :func:`write_tables` wrote it.

    Examples
    --------
    >>> find_folder("no such folder") is None
    True
    """
    if not isinstance(paths, str | os.PathLike) or not Path(paths, MANIFEST).is_file():
        return None
    try:
        manifest = read_json(Path(paths, MANIFEST).read_bytes())
    except SchemaError:
        return None
    known = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    return Path(paths) if known else None


def read_folder(folder: Path) -> dict[str, Any]:
    """Return the parts of the Marginals that :func:`write_tables` wrote.

    Examples
    --------
    >>> import rejoint as rj, tempfile
    >>> m = rj.Marginals.from_tables({("a", "b"): [[0.1, 0.2], [0.3, 0.4]]})
    >>> with tempfile.TemporaryDirectory() as name:
    ...     write_tables(m, name)
    ...     read_folder(Path(name))["flat"]
    array([0.1, 0.2, 0.3, 0.4])
    """
    while True:
        content = (folder / MANIFEST).read_bytes()
        try:
            return _read_listed(folder, content)
        except FileNotFoundError as error:
            # Another process may have put new tables in place of those that were listed.
            if (folder / MANIFEST).read_bytes() == content:
                what = f"'{folder / MANIFEST}' lists a file that is not there"
                raise ValueError(f"{what}: {error}") from error


_NUMBERS = list_of(number())
_PLACES = list_of(number(0, whole=True))
_MANIFEST = object_of(
    {
        "tables": list_of(
            object_of(
                {
                    "file": text(most=255),
                    "variables": list_of(text()),
                    "numbers": one_of("count", "share"),
                    "weight": number(0.0),
                },
                {"rounding": number(0.0)},
            )
        ),
    },
    {
        "noisy": flag,
        "unknown": object_of(
            {
                **{"places": _PLACES, "low": _NUMBERS, "guess": _NUMBERS},
                **{"high": list_of(nullable(number())), "sums": SUMS},
            }
        ),
    },
)


def _read_listed(folder: Path, content: bytes) -> dict[str, Any]:
    try:
        manifest = object_of({"schema": number(1, whole=True)})(read_json(content), MANIFEST)
        if manifest["schema"] > SCHEMA:
            raise ValueError(
                f"'{folder}' has schema version {manifest['schema']}; this rejoint reads versions "
                f"up to {SCHEMA}: update rejoint to read it."
            )
        return _read(folder, _MANIFEST(manifest, MANIFEST))
    except (SchemaError, KeyError) as error:
        raise ValueError(
            f"'{folder / MANIFEST}' is not in the format of rejoint ({error}): write it again, or "
            "remove it to read the tables on their own."
        ) from error


def _read(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    domain = read_domain(manifest.get("domain"))
    entries = manifest["tables"]
    subsets = tuple(tuple(domain.indices(entry["variables"])) for entry in entries)
    sizes = [prod(domain.shape[n] for n in subset) for subset in subsets]
    if sum(sizes) > MOST_CELLS:
        raise SchemaError(f"its tables have {plural(sum(sizes), 'cell')}, which are too many")
    plain = list_of(moment(domain))(manifest.get("moments", []), f"'moments' of {MANIFEST}")
    tables = [_read_table(folder, domain, entry) for entry in entries]
    flat = np.concatenate([*tables, np.empty(0)])
    parts: dict[str, Any] = {
        "domain": domain,
        "index_subsets": subsets,
        "table_weight": np.array([float(entry["weight"]) for entry in entries]),
        "counted": np.array([entry["numbers"] == "count" for entry in entries], dtype=bool),
        "moments": tuple(Moment(*read_moment(each)) for each in plain),
        "noisy": bool(manifest.get("noisy", False)),
        "rounding": np.array([float(entry.get("rounding", 0.0)) for entry in entries]),
    }
    if "unknown" in manifest:
        cells = manifest["unknown"]
        high = [np.inf if value is None else value for value in cells["high"]]
        if len({len(cells[name]) for name in ("places", "low", "high", "guess")}) > 1:
            raise SchemaError("its unknown cells have lists of different lengths")
        rows = np.array([cells["places"], cells["low"], high], dtype=float).reshape(3, -1)
        places = check_unknown(rows, len(flat))
        starts = np.cumsum([0, *sizes], dtype=np.int64)
        sums = check_sums(cells, places, starts)
        flat[places] = cells["guess"]
        known = tuple((np.array(members, dtype=np.intp), value) for members, value in sums)
        parts["unknown"] = UnknownCells(places, rows[1], rows[2], known)
    if np.isnan(flat).any():
        raise ValueError(
            f"'{folder}': a cell is marked as not known, but tables.json does not list it."
        )
    return {**parts, "flat": flat}


def _read_table(folder: Path, domain: Domain, entry: dict[str, Any]) -> NDArray[np.float64]:
    file = str(entry["file"])
    if not file or Path(file).name != file or (folder / file).is_dir():
        where = f"'{folder / MANIFEST}' names '{file}'"
        raise ValueError(f"{where}, which is not a file of its folder.")
    variables = [domain[name] for name in entry["variables"]]
    codes: list[dict[str, int]] = [
        {str(level): i for i, level in enumerate(v.levels)} for v in variables
    ]
    table = np.zeros([len(v) for v in variables])
    rows = read_rows(Source(folder / file), Dialect("utf-8", ","))
    _, header = next(rows, (0, []))
    if header[:-1] != list(entry["variables"]):
        raise ValueError(f"'{folder / file}': its header does not match tables.json.")
    for line, row in rows:
        try:
            at = tuple(code[label] for code, label in zip(codes, row[:-1], strict=True))
            table[at] = np.nan if row[-1] == UNKNOWN else _cell(row[-1])
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"'{folder / file}', line {line}: [{show(row)}] is not a cell of "
                f"{cite(entry['variables'])} ({str(error)[:80]})."
            ) from error
    return table.ravel()


def _cell(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{value} is not a count or share")
    return value
