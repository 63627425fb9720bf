"""Write rows, tables, pictures and models to stdout, or atomically to a file."""

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import isfinite
from pathlib import PurePath
from typing import IO, Any

import click

from rejoint.cli.group import echo, in_options, is_ended
from rejoint.cli.options import option
from rejoint.domain.domain import Domain
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.io.atomic import atomic_file, name_if_full, resolve_target
from rejoint.io.model_file import SIGNATURE, SavedModel, write_open
from rejoint.model import Layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.text import clean_label, clean_text, format_bytes, format_number, plural


def format_classes(rank: int) -> str:
    """Return a number of classes in words.

    Examples
    --------
    >>> format_classes(1), format_classes(1200)
    ('1 class', '1,200 classes')
    """
    return plural(rank, "class", "classes")


def show_table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    left: int = 1,
    title: str = "",
    err: bool = False,
) -> None:
    """Print a table; the first ``left`` columns are text, the others numbers on the right."""
    # Most commands print no table.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = sys.stderr if err else sys.stdout
    lively = stream.isatty()
    console = Console(stderr=err, highlight=False, width=None if lively else 1000)
    table = Table(
        box=None, pad_edge=False, header_style="bold" if lively else "", padding=(0, 2, 0, 0)
    )
    for place, name in enumerate(head):
        title_of_column = Text(clean_label(name))
        table.add_column(
            title_of_column, justify="left" if place < left else "right", no_wrap=not lively
        )
    for row in rows:
        table.add_row(*(Text(clean_label(cell)) for cell in row))
    with console.capture() as shown:
        console.print(table)
    lines = [line.rstrip() for line in shown.get().splitlines()]
    if title:
        echo(title, err=err)
    click.echo("\n".join(lines), err=err)  # with the styles of the head


def show_columns(records: Records, source: str) -> None:
    """Print what was made of the columns, before anything long begins."""
    share = float((records.codes < 0).mean()) if records.codes.size else 0.0
    weight, mass = records.sample_weight, ""
    if weight is not None and records.design is None:
        mass = f" (weights add up to {format_number(float(weight.sum()))})"
    echo(
        f"{source}: {plural(len(records), 'record')}{mass}, "
        f"{plural(len(records.domain), 'column')}, {share:.1%} of the cells empty",
        err=True,
    )
    if records.design is not None:
        echo(records.design.text, err=True)
    empty = (records.codes < 0).mean(axis=0) if len(records) else [0.0] * len(records.domain)
    show_levels(records.domain, [f"{share:.1%}" for share in empty])


def show_levels(domain: Domain, empty: Sequence[str] | None = None) -> None:
    """Print the variables with their levels, and the shares of empty cells where they are given."""
    rows: list[list[Any]] = [[v.name, v.kind, list_levels(v), len(v)] for v in domain]
    head = ["column", "kind", "levels", "number"]
    if empty is not None:
        head, rows = [*head, "empty"], [[*r, e] for r, e in zip(rows, empty, strict=True)]
    show_table(head, rows, left=3, err=True)


def list_levels(variable: Any, most: int = 4) -> str:
    """Return the first levels of a variable, and whether there are more.

    Examples
    --------
    >>> from rejoint import Variable
    >>> list_levels(Variable("a", tuple("abcdef")))
    'a, b, c, d, ...'
    """
    shown = ", ".join(clean_label(level, 16) for level in variable.levels[:most])
    return shown + (", ..." if len(variable) > most else "")


_BLOCK = 10_000  # rows written at once


class _Terminal(io.RawIOBase):
    """Data on their way to a terminal, which gets them as text that does not steer it."""

    def write(self, data: Any) -> int:
        """Write bytes of text; no writer of this module parts a character."""
        sys.stdout.buffer.write(clean_text(bytes(data).decode(errors="replace")).encode())
        return len(data)


@contextmanager
def open_output(output: str | None, signature: bytes = b"") -> Iterator[IO[bytes]]:
    """Open stdout (None or ``-``), or a file, which appears when all of it is there."""
    if output is None or output == "-":
        with name_if_full("standard output"):
            stream: Any = sys.stdout.buffer
            gate: Any = _Terminal() if sys.stdout.isatty() else stream
            yield gate
            stream.flush()
        return
    with atomic_file(output, signature=signature) as file:
        yield file


def check_output(output: str, as_json: bool, signature: bytes = SIGNATURE) -> None:
    """Raise an error if a file cannot be written, before a long fit starts."""
    if output != "-":
        resolve_target(output, signature)
    elif as_json:
        raise click.UsageError("-o - and --json would both write to stdout: give -o a file name.")


model_option = option("-o --output FILE", "The model file; .json writes it as text.", required=True)


def write_saved(output: str, saved: SavedModel) -> int:
    """Write the contents of a model file; return the number of bytes."""
    made = io.BytesIO()
    write_open(made, saved, plain=output.lower().endswith(".json"))
    with open_output(output, SIGNATURE) as file:
        file.write(made.getbuffer())
    return len(made.getbuffer())


def end_fit(
    output: str,
    pmf: LowRankPMF,
    result: FitResult,
    notes: Mapping[str, Any],
    *,
    draws: bool,
    as_json: bool,
    ensemble: LabelEnsemble | None = None,
) -> None:
    """Write the model of a fit; report what was chosen, how it ended and what was written."""
    texts = (result.choice, result.stop, result.agreement)
    if ensemble is not None:  # a paragraph on each part
        texts = ("What each model weighs, by labels held out: rejoint inspect.", *texts[1:])
    echo("\n".join(in_options(text) for text in texts if text), err=True)
    saved = pmf.to_saved(to_plain(notes), draws=draws)
    room = write_saved(
        output, saved._replace(ensemble=None if ensemble is None else ensemble.to_saved())
    )
    kept = len(pmf.draws) if draws else 0
    if as_json:
        size = Layout(pmf.domain.shape).parameters(pmf.rank)
        found = {"rank": pmf.rank, "parameters": size, "draws": kept}
        if ensemble is not None:
            found["models"] = len(ensemble.members)
        echo_json({"model": output, "bytes": room, **found, **notes})
    parts = [format_classes(pmf.rank)]
    if ensemble is not None:
        count, names = plural(len(ensemble.members), "model"), ", ".join(ensemble.targets.names)
        parts = [f"{count} to predict {names}; joint of {parts[0]}"]
    if kept:
        parts.append(plural(kept, "posterior draw"))
    if pmf.counts is not None:
        parts.append(pmf.counts.description)
    say_written(output, parts, room)


def say_written(output: str, parts: Sequence[str], room: int) -> None:
    """Report what a fit has written, and whether Ctrl-C has ended it."""
    if is_ended():
        echo(f"Ended by Ctrl-C: the best model so far is in {output}.", err=True)
        return
    place = "to stdout" if output == "-" else output
    echo(f"Written: {place} ({', '.join(parts)}; {format_bytes(room)}).", err=True)


def write_rows(
    output: str | None,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    as_json: bool = False,
) -> None:
    """Write rows as the name of the file says: CSV, TSV, JSON lines, Parquet, Arrow; gzipped."""
    suffixes = [suffix.lower() for suffix in PurePath(output or "").suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (["", *suffixes[:-1]] if packed else ["", *suffixes])[-1]
    with open_output(output) as file:
        if kind in (".parquet", ".pq", ".arrow", ".feather"):
            _write_arrow(file, names, rows, parquet=kind in (".parquet", ".pq"))
            return
        if as_json or kind in (".json", ".jsonl", ".ndjson"):
            lines = _json_lines(names, rows)
        else:
            context = click.get_current_context(silent=True)
            if context is not None and context.params.get("spreadsheet"):
                names, rows = _disarm(names), map(_disarm, rows)
            lines = _csv_lines(names, rows, "\t" if kind == ".tsv" else ",")
        # No time in the header: the same rows are the same bytes.
        target: Any = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if packed else file
        for text in lines:
            target.write(text.encode())
        if packed:
            target.close()


_FORMULA = re.compile("[\t\r\n ]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_SIGNED_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?%?")


def _disarm(row: Sequence[Any]) -> list[Any]:
    """Return a row with an apostrophe before each text that a spreadsheet would run.

    Examples
    --------
    >>> _disarm(["=1+1", "-5", "a=b", -5, "@SUM(A1)"])
    ["'=1+1", '-5', 'a=b', -5, "'@SUM(A1)"]
    """
    return [
        f"'{cell}"
        if isinstance(cell, str) and _FORMULA.match(cell) and not _SIGNED_NUMBER.fullmatch(cell)
        else cell
        for cell in row
    ]


def _json_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    for row in rows:
        cells = {name: to_plain(cell) for name, cell in zip(names, row, strict=True)}
        yield json.dumps(cells, ensure_ascii=False, allow_nan=False) + "\n"


def _csv_lines(
    names: Sequence[str], rows: Iterable[Sequence[Any]], delimiter: str
) -> Iterator[str]:
    left = iter(rows)
    block: list[Sequence[Any]] = [names]
    while block:
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(block)
        yield text.getvalue()
        block = list(islice(left, _BLOCK))


def _write_arrow(
    file: IO[bytes], names: Sequence[str], rows: Iterable[Sequence[Any]], *, parquet: bool
) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(
            "Parquet and Arrow files are written by pyarrow: pip install 'rejoint[arrow]', or name "
            "the file .csv."
        ) from None
    columns = list(zip(*([to_plain(cell) for cell in row] for row in rows), strict=True))
    columns = columns or [()] * len(names)
    table = pa.table([pa.array(_alike(column)) for column in columns], names=list(names))
    if parquet:
        pq.write_table(table, file)
        return
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _alike(column: Sequence[Any]) -> list[Any]:
    """Return cells of one type: text, where numbers and text meet."""
    kinds = {type(cell) for cell in column if cell is not None}
    if len(kinds) < 2 or kinds <= {int, float}:
        return list(column)
    return [None if cell is None else str(cell) for cell in column]


def to_plain(value: Any) -> Any:
    """Return a value as JSON can hold it: bins as text, numbers that are not finite as None.

    Examples
    --------
    >>> from rejoint import Bin
    >>> to_plain({"age": Bin(0, 18), ("a", "b"): float("nan")})
    {'age': '[0, 18)', 'a, b': None}
    """
    if isinstance(value, Mapping):
        texts = (", ".join(map(str, k)) if isinstance(k, tuple) else str(k) for k in value)
        return dict(zip(texts, map(to_plain, value.values()), strict=True))
    if isinstance(value, str):
        return in_options(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if type(value).__name__ == "Bin":
        return str(value)
    if isinstance(value, Sequence):
        return [to_plain(part) for part in value]
    return str(value)


def echo_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    with open_output(None) as file:
        file.write((json.dumps(to_plain(value), ensure_ascii=False, indent=1) + "\n").encode())


def record_rows(records: Records, numbers: bool = False) -> Iterator[list[Any]]:
    """Yield rows of labels, None where empty; bins as text or as their representative numbers."""
    columns = []
    for variable in records.domain:
        binned = variable.kind == "binned"
        levels = variable.representatives if binned and numbers else variable.levels
        labels = [str(x) if binned and not numbers else x for x in levels or ()]
        columns.append([*labels, *[None] * (len(variable) - len(labels)), None])
    for row in records.codes.tolist():
        yield [levels[code] for levels, code in zip(columns, row, strict=True)]


def new_figure(width: float, height: float) -> Any:
    """Return a figure without a window."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "Pictures are drawn by matplotlib, which is not installed: "
            "pip install 'rejoint[plots]'."
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: str) -> None:
    """Write a figure, all of it or nothing."""
    kind = PurePath(path).suffix.lower().removeprefix(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"'{path}': pictures are .svg, .png or .pdf, not .{kind}.")
    with open_output(path) as file:
        figure.savefig(file, format=kind, dpi=150)
