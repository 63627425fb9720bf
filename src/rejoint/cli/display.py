"""Tables and numbers for people: on stdout where they are the answer, on stderr where remarks."""

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rejoint.records import Records

__all__ = ["classes", "clean", "few_levels", "show_columns", "show_table", "size"]

_WIDE = 60  # characters of a cell


def clean(value: Any, most: int = _WIDE) -> str:
    r"""A label as a terminal can show it: no control characters, not too long.

    Examples
    --------
    >>> clean("a\x1b[31mb"), clean("x" * 9, most=5)
    ('a\ufffd[31mb', 'xxxx…')
    """
    text = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(char)[0] == "C" else char
        for char in str(value)
    )
    return text if len(text) <= most else text[: most - 1] + "…"


def classes(rank: int) -> str:
    """A number of classes in words.

    Examples
    --------
    >>> classes(1), classes(1200)
    ('1 class', '1,200 classes')
    """
    return "1 class" if rank == 1 else f"{rank:,} classes"


def show_table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    left: int = 1,
    title: str = "",
    err: bool = False,
) -> None:
    """Print a table; the first ``left`` columns are text, the others numbers on the right."""
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
        table.add_column(name, justify="left" if place < left else "right", no_wrap=not lively)
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    with console.capture() as shown:
        console.print(table)
    lines = [line.rstrip() for line in shown.get().splitlines()]
    click.echo("\n".join([*([title] if title else []), *lines]), err=err)


def show_columns(records: "Records", source: str) -> None:
    """Print what was made of the columns, before anything long begins."""
    from rejoint.domain.labels import plural

    share = float((records.codes < 0).mean()) if records.codes.size else 0.0
    weight = records.sample_weight
    mass = "" if weight is None else f" (weights add up to {weight.sum():,.6g})"
    click.echo(
        f"{source}: {plural(len(records), 'record')}{mass}, "
        f"{plural(len(records.domain), 'column')}, {share:.1%} of the cells empty",
        err=True,
    )
    gone = (records.codes < 0).mean(axis=0) if len(records) else [0.0] * len(records.domain)
    rows = [
        (v.name, v.kind, few_levels(v), len(v), f"{empty:.1%}")
        for v, empty in zip(records.domain, gone, strict=True)
    ]
    show_table(("column", "kind", "levels", "number", "empty"), rows, left=3, err=True)


def few_levels(variable: Any, most: int = 4) -> str:
    """The first levels of a variable, and that there are more.

    Examples
    --------
    >>> from rejoint import Variable
    >>> few_levels(Variable("a", tuple("abcdef")))
    'a, b, c, d, ...'
    """
    shown = ", ".join(clean(level, 16) for level in variable.levels[:most])
    return shown + (", ..." if len(variable) > most else "")


def size(count: float) -> str:
    """A number of bytes in words.

    Examples
    --------
    >>> size(900), size(3_500_000)
    ('900 bytes', '3.5 MB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return (
                f"{count / scale:.2g} {unit}"
                if count < 100 * scale
                else f"{count / scale:.0f} {unit}"
            )
    return f"{count:.0f} bytes"
