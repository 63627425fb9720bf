"""``rejoint fit-tables``: from published tables to a model file."""

from math import isnan
from typing import Any
from warnings import catch_warnings, simplefilter

import click

from rejoint.cli.check_tables import describe_reading, list_disagreements, show_disagreements
from rejoint.cli.group import EXIT_FAR, echo, in_options, is_ended, keep_best
from rejoint.cli.options import Options, argument, declare, option, several, split_names
from rejoint.cli.output import (
    check_output,
    echo_json,
    model_option,
    show_table,
    to_plain,
    write_saved,
)
from rejoint.explorer.document import table_fit
from rejoint.factorization.factorize import factorize
from rejoint.io.fit_notes import fit_notes
from rejoint.marginals.compare import Fits
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Remark
from rejoint.text import clean_label, format_number, plural

_SHOWN = 8  # tables of which it is said how they were understood


@declare(
    "--rank --within --seed --json +tables",
    argument("tables", "DIR|FILES..."),
    model_option,
    option(
        "--solver auto|algebraic|admm|newton|kl|smooth",
        "auto meets the tables; with --rank it is least squares, as are algebraic, admm and "
        "newton. kl: Kullback-Leibler divergence. smooth: the mean of models of very many classes.",
        default="auto",
    ),
    option("--starts N", "Number of starts.", default=10),
    option(
        "--weighting equal|count",
        "Whether tables count equally or by their number of records.",
        default="equal",
    ),
    several(
        "--older VARIABLES",
        "A table of an earlier time, by its variables: --older age,sex. Its odds ratios count, "
        "and not the shares that other tables have, too.",
    ),
)
def command(o: Options) -> None:
    """Learn a model from published tables alone: a folder of files, an archive, or some files.

    The model reproduces the published numbers: it is the only model of low rank that meets the
    tables, if there is one, and otherwise the joint nearest to independence that meets them. With
    --rank it has that many classes. The worst-fitting tables are printed. Ctrl-C ends the fit and
    keeps the best model so far (exit code 3).

    Files are as offices publish them: PC-Axis, JSON-stat, SDMX-CSV, TSV of Eurostat, or CSV, Excel
    and ODS in long form or as cross-tables. What a file does not say is proposed or asked; cells
    that were held back are unknown, not zero. `rejoint check-tables` shows each table.

    Examples
    --------
      rejoint fit-tables triples -o model.rejoint
      rejoint fit-tables triples -o model.rejoint --rank 4
      rejoint fit-tables triples -o smooth.rejoint --solver smooth
      rejoint fit-tables smoke-lung.csv smoke-bronc.csv -o two.rejoint --rank 2 --within 0.05
      rejoint fit-tables published -o three.rejoint --rank 2 --missing x=unknown --solver kl
    """
    check_output(o.output, o.json)
    marginals, files = o.read_tables(*o.tables)
    for reading in files.readings[:_SHOWN]:
        echo(describe_reading(reading), err=True)
    if len(files.readings) > _SHOWN:
        echo(f"... and {len(files.readings) - _SHOWN:,} more: rejoint check-tables", err=True)
    echo(repr(marginals), err=True)
    asked = o.asked("rank", "solver", "weighting")
    asked |= {"n_init": o.starts, "older": [split_names([names]) for names in o.older]}
    with catch_warnings():
        simplefilter("ignore", Remark)  # what the tables leave open is said in `stop`, too
        result = keep_best(factorize, marginals, **asked)
    fits = marginals.compare(result.pmf)
    notes = fit_notes(
        result,
        tables=marginals,
        readings=files.readings,
        source=o.tables[0] if len(o.tables) == 1 and o.tables[0] != "-" else None,
        seed=o.seed,
        fit=table_fit(marginals, fits),
    )
    echo("\n".join(in_options(text) for text in (result.choice, result.stop) if text), err=True)
    write_saved(o.output, result.pmf.to_saved(to_plain(notes)))
    _show_fits(marginals, fits, o, notes)
    if is_ended():
        echo(f"Ended by Ctrl-C: the best model so far is in {o.output}.", err=True)
    elif o.within is not None and fits and fits[0].distance > o.within:
        missed = f"{', '.join(fits[0].names)} is missed by {format_number(fits[0].distance)}"
        echo(f"Table {missed}: --within {o.within}.", err=True)
        raise click.exceptions.Exit(EXIT_FAR)


def _show_fits(marginals: Marginals, fits: Fits, o: Options, notes: dict[str, Any]) -> None:
    strife = list_disagreements(marginals)
    if o.json:
        plain = {"fits": [fit._asdict() for fit in fits]}
        plain["disagreements"] = [d._asdict() for d in strife]
        echo_json({"model": o.output, **notes, **plain})
        return
    err = o.output == "-"
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
