"""Tables in a folder: one CSV file for each, and ``tables.json``.

The CSV files are in long form, without cells that are zero. ``tables.json`` has the rest, as a
model file has it (see :mod:`rejoint.io.saved_tables`): variables and their levels in order and
type, weights, bounds of unknown cells, moments. A new folder is written under a temporary name and
then renamed. In a folder that has tables, ``tables.json`` is replaced after the new CSV files are
there, and the former ones are removed after that. The name of each CSV file ends with a digest of
its content, so no name ever stands for two tables: who reads while another writes gets the old
tables or the new ones, never some of both. Files of others in the folder stay.
"""

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.io.archive import array_of, lists_of
from rejoint.io.atomic import atomic_file, atomic_folder, lock_folder, sync_folder
from rejoint.io.saved_tables import (
    CELLS,
    UNKNOWN,
    SavedMoment,
    SavedTables,
    check_unknown,
    tables_of_plain,
    tables_to_plain,
)
from rejoint.io.schema import (
    SchemaError,
    flag,
    list_of,
    number,
    object_of,
    read_domain,
    read_json,
    text,
)
from rejoint.marginals.moments import Moment
from rejoint.marginals.unknown import UnknownCells
from rejoint.records.delimited import Dialect, read_rows
from rejoint.records.files import Source
from rejoint.text import cite, plural, show

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

FORMAT, SCHEMA, MANIFEST = "rejoint.tables", 2, "tables.json"

#: Cells of all tables of a folder; more than these gigabytes are not read.
MOST_CELLS = 2**29

_MARK = "*"


def write_tables(store: "Marginals", folder: str | os.PathLike[str]) -> None:
    """Write tables to a new or empty folder, or to one that has tables, which are replaced."""
    target = Path(os.path.realpath(folder))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Cannot write '{folder}': there is no folder '{target.parent}'.")
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"Cannot write '{folder}': there is a file of that name.")
    for variable in store.domain:
        if len({str(level) for level in variable.levels}) < len(variable):
            what = f"Variable {cite(variable.name)} has levels that look the same as text"
            raise ValueError(f"{what}: rename them.")
    with _open_folder(target) as place:
        _remove_former(place, _write(store, place))


@contextmanager
def _open_folder(target: Path) -> Iterator[Path]:
    """A folder to write tables to: one that is renamed at the end, or the one that has tables."""
    if find_folder(target) is None:
        with atomic_folder(target) as aside:
            yield aside
    else:
        with lock_folder(target):
            yield target


def _write(store: "Marginals", folder: Path) -> list[str]:
    """Write the tables, then what lists them; return the names of their files."""
    files, digits = [], len(str(max(len(store) - 1, 0)))
    for i, names in enumerate(store.subsets):
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(_header(names, store.counted[i]))
        writer.writerows(_cells(store, i))
        content = written.getvalue().encode()
        plain = re.sub(r"[^\w.+-]+", "_", "__".join(names))[:80]
        files.append(f"{i:0{digits}d}_{plain}-{_digest(content)}.csv")
        with atomic_file(folder / files[-1]) as out:
            out.write(content)
    tables, arrays = tables_to_plain(to_saved(store), store.domain)
    if UNKNOWN in arrays:
        tables[UNKNOWN] = lists_of(arrays[UNKNOWN])
    if store.unknown is not None:
        tables["guess"] = store.flat[store.unknown.places].tolist()
    manifest = {"format": FORMAT, "schema": SCHEMA, "domain": store.domain.to_json()}
    manifest |= {"files": files, "tables": tables}
    sync_folder(folder)
    with atomic_file(folder / MANIFEST) as out:
        out.write(json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False).encode())
    return files


def _header(names: Sequence[str], counted: Any) -> list[str]:
    return [*names, "count" if counted else "share"]


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=4).hexdigest()


_TABLE_FILE = re.compile(r"\d+_.*-([0-9a-f]{8})\.csv", re.DOTALL)


def _remove_former(folder: Path, listed: Collection[str]) -> None:
    """Remove tables that are no longer listed; a file is one of ours if its name has its digest."""
    for path in folder.iterdir():
        match = _TABLE_FILE.fullmatch(path.name)
        is_former = match and path.name not in listed and path.is_file()
        if match and is_former and _digest(path.read_bytes()) == match[1]:
            path.unlink(missing_ok=True)


def _cells(store: "Marginals", i: int) -> Iterator[list[str]]:
    """Yield rows of one table: labels, and the shortest text of the number that is exact."""
    table, cells = store.counts_of(i), store.unknown_of(i)
    unknown = set() if cells is None else set(cells.places.tolist())
    variables = [store.domain[n] for n in store.index_subsets[i]]
    for place in sorted(unknown.union(np.flatnonzero(table.ravel()).tolist())):
        at = np.unravel_index(place, table.shape)
        labels = [str(v.levels[int(code)]) for v, code in zip(variables, at, strict=True)]
        value = float(table[at])
        is_plain = value.is_integer() and abs(value) < 2**53
        number = str(int(value)) if is_plain else repr(value)
        yield [*labels, _MARK if place in unknown else number]


def find_folder(paths: Any) -> Path | None:
    """Return the folder if :func:`write_tables` wrote it."""
    if not isinstance(paths, str | os.PathLike) or not Path(paths, MANIFEST).is_file():
        return None
    try:
        manifest = read_json(Path(paths, MANIFEST).read_bytes())
    except SchemaError:
        return None
    is_ours = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    return Path(paths) if is_ours else None


def read_folder(folder: Path) -> dict[str, Any]:
    """Return the parts of the Marginals that :func:`write_tables` wrote."""
    while True:
        content = (folder / MANIFEST).read_bytes()
        try:
            return _read(folder, content)
        except FileNotFoundError as error:
            # Another process may have put new tables in place of those that were listed.
            if (folder / MANIFEST).read_bytes() == content:
                what = f"'{folder / MANIFEST}' lists a file that is not there"
                raise ValueError(f"{what}: {error}") from error
        except (SchemaError, KeyError) as error:
            raise ValueError(
                f"'{folder / MANIFEST}' is not in the format of rejoint ({error}): write it again, "
                "or remove it to read the tables on their own."
            ) from error


_MANIFEST = object_of({"files": list_of(text(most=255)), "tables": object_of({})})


def _read(folder: Path, content: bytes) -> dict[str, Any]:
    manifest = object_of({"schema": number(1, whole=True)})(read_json(content), MANIFEST)
    if manifest["schema"] != SCHEMA:
        raise ValueError(
            f"'{folder}' has schema version {manifest['schema']}; this rejoint reads version "
            f"{SCHEMA}: read it by the version that wrote it."
        )
    _MANIFEST(manifest, MANIFEST)
    domain, plain = read_domain(manifest.get("domain")), manifest["tables"]
    saved = tables_of_plain(plain, {}, domain)
    sizes = [prod(domain.shape[n] for n in subset) for subset in saved.subsets]
    if sum(sizes) > MOST_CELLS:
        raise SchemaError(f"its tables have {plural(sum(sizes), 'cell')}, which are too many")
    list_of(text(), size=len(sizes))(manifest["files"], f"'files' of {MANIFEST}")
    counted = plain.get("counted", [True] * len(sizes))
    list_of(flag, size=len(sizes))(counted, f"'counted' of {MANIFEST}")
    tables = [
        _read_table(folder, file, Domain(tuple(domain[n] for n in subset)), is_count)
        for file, subset, is_count in zip(manifest["files"], saved.subsets, counted, strict=True)
    ]
    arrays = {CELLS: np.concatenate([*tables, np.empty(0)])}
    if UNKNOWN in plain:
        arrays[UNKNOWN] = array_of(plain[UNKNOWN], "<f8", f"{cite(UNKNOWN)} of its tables")
        places = check_unknown(arrays[UNKNOWN], len(arrays[CELLS]))
        guess = list_of(number(), size=len(places))(plain.get("guess"), f"'guess' of {MANIFEST}")
        arrays[CELLS][places] = guess
    if np.isnan(arrays[CELLS]).any():
        what = "a cell is marked as not known, but tables.json does not list it"
        raise ValueError(f"'{folder}': {what}.")
    return of_saved(tables_of_plain(plain, arrays, domain))


def _read_table(folder: Path, file: str, domain: Domain, is_count: bool) -> FloatArray:
    if not file or Path(file).name != file or (folder / file).is_dir():
        where = f"'{folder / MANIFEST}' names '{file}'"
        raise ValueError(f"{where}, which is not a file of its folder.")
    codes = [{str(level): i for i, level in enumerate(v.levels)} for v in domain]
    table = np.zeros(domain.shape)
    rows = read_rows(Source(folder / file), Dialect("utf-8", ","))
    _, header = next(rows, (0, []))
    if header != _header(domain.names, is_count):
        raise ValueError(f"'{folder / file}': its header does not match tables.json.")
    for line, row in rows:
        try:
            at = tuple(code[label] for code, label in zip(codes, row[:-1], strict=True))
            table[at] = np.nan if row[-1] == _MARK else _number(row[-1])
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"'{folder / file}', line {line}: [{show(row)}] is not a cell of "
                f"{cite(domain.names)} ({str(error)[:80]})."
            ) from error
    return table.ravel()


def _number(cell: str) -> float:
    value = float(cell)
    if not isfinite(value):
        raise ValueError(f"{value} is not a count or share")
    return value


def to_saved(store: "Marginals") -> SavedTables:
    """Return what files have of tables."""
    rows, sums = None, []
    if (cells := store.unknown) is not None:
        rows = np.vstack([cells.places, cells.low, cells.high])
        sums = [(tuple(members.tolist()), float(value)) for members, value in cells.sums]
    return SavedTables(
        store.domain,
        store.index_subsets,
        store.flat,
        weight=store.table_weight,
        counted=store.counted,
        rounding=store.rounding,
        noisy=store.noisy,
        unknown=rows,
        sums=tuple(sums),
        moments=tuple(SavedMoment(m.variables, m.vectors, m.value, m.label) for m in store.moments),
    )


def of_saved(saved: SavedTables) -> dict[str, Any]:
    """Return the parts of the Marginals of a file."""
    unknown = None
    if saved.unknown is not None:
        places, low, high = saved.unknown
        sums = tuple((np.array(members, dtype=np.intp), value) for members, value in saved.sums)
        unknown = UnknownCells(places.astype(np.intp), low, high, sums)
    return {
        "domain": saved.domain,
        "index_subsets": saved.subsets,
        "flat": saved.cells,
        "table_weight": saved.weight,
        "moments": tuple(Moment(*moment) for moment in saved.moments),
        "counted": saved.counted,
        "unknown": unknown,
        "noisy": saved.noisy,
        "rounding": saved.rounding,
    }
