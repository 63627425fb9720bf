"""``rejoint fit-tables``: from published tables to a model file."""

from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import click

from rejoint.cli.group import ENDED, FAR, in_options
from rejoint.cli.options import as_json, output_option, seed_option
from rejoint.cli.output import check_place, clean, echo_json, show_table, write_saved
from rejoint.messages import Remark, join_messages

if TYPE_CHECKING:
    from rejoint.marginals.compare import Fits
    from rejoint.marginals.marginals import Marginals

EXAMPLES = """\b
Examples:
  rejoint fit-tables triples -o model.rejoint
  rejoint fit-tables triples -o model.rejoint --rank 4
  rejoint fit-tables triples -o smooth.rejoint --solver smooth
  rejoint fit-tables smoke-lung.csv smoke-bronc.csv -o two.rejoint --rank 2 --within 0.05
  rejoint fit-tables published -o three.rejoint --rank 2 --suppressed x --solver kl"""


def read_options(callback: Any) -> Any:
    """Options of files that hold tables."""
    for option in reversed(
        [
            click.option(
                "--kind",
                type=click.Choice(["auto", "counts", "shares"]),
                default="auto",
                help="What the numbers are; told by themselves by default.",
            ),
            click.option(
                "--suppressed",
                multiple=True,
                metavar="MARK",
                help="A mark of cells that were held back, beside the usual ones (., *, <5, ...).",
            ),
            click.option("--noisy", is_flag=True, help="Noise was added: cells may be negative."),
            click.option("--delimiter", metavar="CHAR", help="Between cells; guessed by default."),
            click.option("--encoding", metavar="NAME", help="Of the text; guessed by default."),
            click.option("--decimal", type=click.Choice([".", ","]), help="Guessed by default."),
        ]
    ):
        callback = option(callback)
    return callback


def read_tables(paths: tuple[str, ...], **how: Any) -> "Marginals":
    """Tables of a folder, of some files, or of one that holds several."""
    from rejoint.marginals.marginals import Marginals

    options = {key: value for key, value in how.items() if value not in (None, (), False)}
    return Marginals.read(paths[0] if len(paths) == 1 else list(paths), **options)


@click.command("fit-tables", epilog=EXAMPLES, short_help="Learn a model from published tables.")
@click.argument("tables", metavar="DIR|FILES...", nargs=-1, required=True)
@output_option("The model file; .json makes it text.", required=True)
@click.option("--rank", type=click.IntRange(min=1), help="Number of classes; chosen without it.")
@click.option(
    "--solver",
    type=click.Choice(["auto", "algebraic", "admm", "newton", "kl", "smooth"]),
    default="auto",
    show_default=True,
    help="Least squares, or Kullback-Leibler divergence (kl); smooth foretells tables that were "
    "not published best, by very many classes, which mean nothing.",
)
@click.option("--starts", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--weighting",
    type=click.Choice(["equal", "count"]),
    default="equal",
    show_default=True,
    help="Whether tables count the same or by their number of records.",
)
@click.option(
    "--within",
    type=click.FloatRange(min=0.0),
    help="End with exit code 4 if a table is missed by more than this share of its mass.",
)
@seed_option
@as_json
@read_options
def command(
    tables: tuple[str, ...],
    output: str,
    rank: int | None,
    solver: Any,
    starts: int,
    weighting: Any,
    within: float | None,
    seed: int,
    as_json: bool,
    **how: Any,
) -> None:
    """Learn a model from tables alone: a folder of CSV files, some files, or one with several.

    Files are in long form (a column for each variable, one with the numbers) or cross-tables with
    labels on both sides. Counts, shares or percentages; totals are recognised and checked; cells
    that were held back are unknown, not zero. The tables that are met worst are printed. Ctrl-C
    ends the fit and keeps the best model so far (exit code 3).
    """
    from rejoint.factorization import factorize
    from rejoint.io.fit_notes import fit_notes

    if as_json and output == "-":
        raise click.UsageError("-o - and --json would both write to stdout: name a file.")
    check_place(output)
    marginals = read_tables(tables, **how)
    click.echo(repr(marginals), err=True)
    wanted: Any = "auto" if rank is None else rank
    with catch_warnings():
        simplefilter("ignore", Remark)  # what the tables leave open is said in `stop`, too
        result = factorize(
            marginals, wanted, solver, n_init=starts, weighting=weighting, random_state=seed
        )
    fits = marginals.compare(result.pmf)
    notes = fit_notes(
        result,
        tables=marginals,
        source=tables[0] if len(tables) == 1 and tables[0] != "-" else None,
        seed=seed,
        fit=fit_note(marginals, fits),
    )
    click.echo(in_options(join_messages([result.choice, result.stop], "\n")), err=True)
    write_saved(output, result.pmf, notes)
    _say(marginals, fits, output, notes, as_json)
    if notes.get("interrupted"):
        click.echo(f"Ended by Ctrl-C: the best model so far is in {output}.", err=True)
        raise click.exceptions.Exit(ENDED)
    if within is not None and fits and fits[0].distance > within:
        worst = ", ".join(fits[0].names)
        click.echo(
            f"Table {worst} is missed by {fits[0].distance:.4g}: --within {within}.", err=True
        )
        raise click.exceptions.Exit(FAR)


def fit_note(marginals: "Marginals", fits: "Fits", listed: int = 30) -> dict[str, Any]:
    """Tables that a model meets worst, as the notes of a model file have them."""
    worst = [
        {
            "names": list(fit.names),
            "distance": fit.distance,
            "chance": None if fit.chance != fit.chance else fit.chance,
            "records": float(marginals.total(*fit.names)),
        }
        for fit in fits[:listed]
    ]
    return {"tables": worst, "checked": len(fits), "all": len(fits)}


def _say(
    marginals: "Marginals", fits: "Fits", output: str, notes: dict[str, Any], as_json: bool
) -> None:
    strife = [d for d in marginals.disagreements() if d.distance > 1e-9]
    if as_json:
        plain = [fit._asdict() for fit in fits]
        apart = [d._asdict() for d in strife]
        echo_json({"model": output, **notes, "fits": plain, "disagreements": apart})
        return
    err = output == "-"
    rows = [
        (
            ", ".join(fit.names),
            ", ".join(f"{name}={clean(level, 20)}" for name, level in fit.cell.items()),
            f"{fit.distance:.4f}",
            "-" if fit.chance != fit.chance else f"{fit.chance:.4f}",
            f"{fit.given:.4f}",
            f"{fit.model:.4f}",
        )
        for fit in fits[:10]
    ]
    head = ("table", "worst cell", "distance", "by chance", "given", "model")
    show_table(head, rows, left=2, title=f"Worst of {len(fits):,} tables:", err=err)
    if strife:
        apart_rows = [
            (", ".join(d.first), ", ".join(d.second), ", ".join(d.shared), f"{d.distance:.4f}")
            for d in strife[:5]
        ]
        title = "Tables that disagree on what they share:"
        show_table(
            ("table", "table", "shared", "distance"), apart_rows, left=3, title=title, err=err
        )
