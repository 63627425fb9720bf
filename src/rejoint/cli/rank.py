"""``rejoint rank``: how many classes the records support."""

from typing import Any

import click

from rejoint.cli import options
from rejoint.cli.group import echo, keep_best
from rejoint.cli.options import DataReader
from rejoint.cli.output import echo_json, new_figure, save_figure, show_columns, show_table
from rejoint.plots import rank_curve
from rejoint.rank.select import CRITERIA, select

EXAMPLES = """\b
Examples:
  rejoint rank patients.csv
  rejoint rank patients.csv --ranks 1,2,3 --criterion bic --criterion heldout
  rejoint rank patients.csv --ranks 1,2,3 --criterion bic --plot curve.svg"""


@click.command("rank", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "--ranks", metavar="1,2,4,...", help="The ranks to compare; chosen automatically by default."
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    multiple=True,
    default=["heldout"],
    show_default=True,
    help="Probability of held-out records, information criteria, or a bound of the evidence; of "
    "several, the first one chooses.",
)
@options.budget
@click.option("--plot", metavar="FILE", help="Plot the curve to this file: .svg, .png, .pdf.")
@options.smooth
@options.seed
@options.as_json
@options.of_data
def command(
    data: str,
    ranks: str | None,
    criterion: Any,
    budget: float | None,
    plot: str | None,
    smooth: bool | None,
    seed: int,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Compare numbers of classes: the curve, the chosen number, and those that tie with it.

    Ctrl-C ends the search and prints the results so far (exit code 3).
    """
    try:
        chosen = None if ranks is None else [int(part) for part in ranks.split(",")]
    except ValueError:
        raise click.UsageError(f"--ranks {ranks}: write whole numbers, such as 1,2,4.") from None
    records = reader.read(data)
    show_columns(records, data)
    asked: dict[str, Any] = {"criterion": criterion, "budget": budget, "random_state": seed}
    asked["smooth"] = "auto" if smooth is None else smooth
    found = keep_best(select, records, chosen, **asked)
    if plot:
        figure = new_figure(7.0, 4.0)
        rank_curve(found, ax=figure.subplots())
        save_figure(figure, plot)
    if as_json:
        fields = ("rank", "ranks", "scores", "errors", "tied", "criterion", "words")
        table = {"rank": found.table.ranks, **found.table.columns}
        echo_json({name: getattr(found, name) for name in fields} | {"table": table})
    else:
        head, *rows = found.table.rows
        marks = {**dict.fromkeys(found.tied, "tied"), found.rank: "chosen"}
        marked = [[*row, marks.get(int(row[0]), "")] for row in rows]
        show_table([*head, ""], marked, left=0)
        echo(found.words)
