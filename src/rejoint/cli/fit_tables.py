"""``rejoint fit-tables``: from published tables to a model file."""

from math import isnan
from typing import Any
from warnings import catch_warnings, simplefilter

import click

from rejoint.cli import options
from rejoint.cli.check_tables import describe_reading, list_disagreements, show_disagreements
from rejoint.cli.group import EXIT_FAR, echo, in_options, is_ended, keep_best
from rejoint.cli.options import TableReader
from rejoint.cli.output import (
    check_output,
    echo_json,
    show_table,
    to_plain,
    write_saved,
)
from rejoint.explorer.document import table_fit
from rejoint.factorization.factorize import factorize
from rejoint.io.fit_notes import fit_notes
from rejoint.marginals.compare import Fits
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Remark, join_messages
from rejoint.text import clean_label, format_number, plural

EXAMPLES = """\b
Examples:
  rejoint fit-tables triples -o model.rejoint
  rejoint fit-tables triples -o model.rejoint --rank 4
  rejoint fit-tables triples -o smooth.rejoint --solver smooth
  rejoint fit-tables smoke-lung.csv smoke-bronc.csv -o two.rejoint --rank 2 --within 0.05
  rejoint fit-tables published -o three.rejoint --rank 2 --missing x=unknown --solver kl"""


_SHOWN = 8  # tables of which it is said how they were understood


@click.command("fit-tables", epilog=EXAMPLES)
@click.argument("tables", metavar="DIR|FILES...", nargs=-1, required=True)
@options.model
@options.rank
@click.option(
    "--solver",
    type=click.Choice(["auto", "algebraic", "admm", "newton", "kl", "smooth"]),
    default="auto",
    show_default=True,
    help="auto meets the tables; with --rank it is least squares, as are algebraic, admm and "
    "newton. kl: Kullback-Leibler divergence. smooth: the mean of models of very many classes.",
)
@click.option("--starts", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--weighting",
    type=click.Choice(["equal", "count"]),
    default="equal",
    show_default=True,
    help="Whether tables count equally or by their number of records.",
)
@options.within("Exit with code 4 if a table is missed by more than this share of its mass.")
@click.option(
    "--older",
    metavar="VARIABLES",
    multiple=True,
    help="A table of an earlier time, by its variables: --older age,sex. Its odds ratios count, "
    "and not the shares that other tables have, too.",
)
@options.seed
@options.as_json
@options.of_tables
def command(
    tables: tuple[str, ...],
    output: str,
    rank: int | None,
    solver: Any,
    starts: int,
    weighting: Any,
    within: float | None,
    older: tuple[str, ...],
    seed: int,
    as_json: bool,
    table_reader: TableReader,
) -> None:
    """Learn a model from published tables alone: a folder of files, an archive, or some files.

    The model reproduces the published numbers: it is the only model of low rank that meets the
    tables, if there is one, and otherwise the joint nearest to independence that meets them. With
    --rank it has that many classes. The worst-fitting tables are printed. Ctrl-C ends the fit and
    keeps the best model so far (exit code 3).

    Files are as offices publish them: PC-Axis, JSON-stat, SDMX-CSV, TSV of Eurostat, or CSV, Excel
    and ODS in long form or as cross-tables. What a file does not say is proposed or asked; cells
    that were held back are unknown, not zero. `rejoint check-tables` shows each table.
    """
    check_output(output, as_json)
    marginals, readings = table_reader.read_with_readings(*tables)
    for reading in readings[:_SHOWN]:
        echo(describe_reading(reading), err=True)
    if len(readings) > _SHOWN:
        echo(f"... and {len(readings) - _SHOWN:,} more: rejoint check-tables", err=True)
    echo(repr(marginals), err=True)
    with catch_warnings():
        simplefilter("ignore", Remark)  # what the tables leave open is said in `stop`, too
        result = keep_best(
            factorize,
            marginals,
            rank or "auto",
            solver,
            n_init=starts,
            weighting=weighting,
            older=[[name.strip() for name in names.split(",")] for names in older],
            random_state=seed,
        )
    fits = marginals.compare(result.pmf)
    notes = fit_notes(
        result,
        tables=marginals,
        readings=readings,
        source=tables[0] if len(tables) == 1 and tables[0] != "-" else None,
        seed=seed,
        fit=table_fit(marginals, fits),
    )
    echo(in_options(join_messages([result.choice, result.stop], "\n")), err=True)
    write_saved(output, result.pmf.to_saved(to_plain(notes)))
    _say(marginals, fits, output, notes, as_json)
    if is_ended():
        echo(f"Ended by Ctrl-C: the best model so far is in {output}.", err=True)
    elif within is not None and fits and fits[0].distance > within:
        worst = ", ".join(fits[0].names)
        echo(
            f"Table {worst} is missed by {format_number(fits[0].distance)}: --within {within}.",
            err=True,
        )
        raise click.exceptions.Exit(EXIT_FAR)


def _say(
    marginals: Marginals, fits: Fits, output: str, notes: dict[str, Any], as_json: bool
) -> None:
    strife = list_disagreements(marginals)
    if as_json:
        plain = [fit._asdict() for fit in fits]
        apart = [d._asdict() for d in strife]
        echo_json({"model": output, **notes, "fits": plain, "disagreements": apart})
        return
    err = output == "-"
    rows = [
        (
            ", ".join(fit.names),
            ", ".join(f"{name}={clean_label(level, 20)}" for name, level in fit.cell.items()),
            f"{fit.distance:.4f}",
            "-" if isnan(fit.chance) else f"{fit.chance:.4f}",
            f"{fit.given:.4f}",
            f"{fit.model:.4f}",
        )
        for fit in fits[:10]
    ]
    head = ("table", "worst cell", "distance", "by chance", "given", "model")
    show_table(head, rows, left=2, title=f"Worst of {plural(len(fits), 'table')}:", err=err)
    show_disagreements(strife, err=err)
