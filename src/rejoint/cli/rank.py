"""``rejoint rank``: how many classes the records support."""

from rejoint.cli.group import echo, keep_best
from rejoint.cli.options import Options, declare, option, several, split_numbers
from rejoint.cli.output import echo_json, new_figure, save_figure, show_columns, show_table
from rejoint.plots import rank_curve
from rejoint.rank.select import CRITERIA, select


@declare(
    "DATA --budget --plot --smooth --seed --json +data",
    option("--ranks 1,2,4,...", "The ranks to compare; chosen automatically by default."),
    several(
        f"--criterion {'|'.join(CRITERIA)}",
        "Probability of held-out records, information criteria, or a bound of the evidence; of "
        "several, the first one chooses.",
        default=["heldout"],
    ),
)
def command(o: Options) -> None:
    """Compare numbers of classes: the curve, the chosen number, and those that tie with it.

    Ctrl-C ends the search and prints the results so far (exit code 3).

    Examples
    --------
      rejoint rank patients.csv
      rejoint rank patients.csv --ranks 1,2,3 --criterion bic --criterion heldout
      rejoint rank patients.csv --ranks 1,2,3 --criterion bic --plot curve.svg
    """
    form = "whole numbers, such as 1,2,4"
    ranks = None if o.ranks is None else split_numbers(f"--ranks {o.ranks}", o.ranks, form, int)
    records = o.read_records(o.data)
    show_columns(records, o.data)
    curve = keep_best(select, records, ranks, **o.asked("criterion", "budget", "smooth"))
    if o.plot:
        figure = new_figure(7.0, 4.0)
        rank_curve(curve, ax=figure.subplots())
        save_figure(figure, o.plot)
    if o.json:
        fields = ("rank", "ranks", "scores", "errors", "tied", "criterion", "words")
        table = {"rank": curve.table.ranks, **curve.table.columns}
        echo_json({name: getattr(curve, name) for name in fields} | {"table": table})
        return
    head, *rows = curve.table.rows
    marks = {**dict.fromkeys(curve.tied, "tied"), curve.rank: "chosen"}
    marked = [[*row, marks.get(int(row[0]), "")] for row in rows]
    show_table([*head, ""], marked, left=0)
    echo(curve.words)
