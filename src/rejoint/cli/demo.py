"""``rejoint demo``: a known network, records with holes, and how much of it comes back."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import click
from rich import box
from rich.console import Console
from rich.table import Table

from rejoint import datasets, metrics, plots
from rejoint.cli.options import as_json
from rejoint.cli.output import echo_json
from rejoint.factorization import factorize
from rejoint.marginals.marginals import Marginals
from rejoint.plots import describe
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records

RECORDS = 5_000
MISSING = 0.3
ORDER = 3
RANK = 5  # one choice among several tried: examples/plot_asia.py prints the error for 3 to 8
QUESTIONS = (
    ({"lung": "yes"}, {"smoke": "yes", "dysp": "yes"}),
    ({"lung": "yes"}, {"smoke": "yes", "xray": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes", "xray": "yes"}),
    ({"either": "no"}, {"xray": "yes", "dysp": "no"}),
    ({"tub": "yes"}, {"lung": "no", "xray": "yes"}),
    ({"tub": "yes"}, {"asia": "yes", "xray": "yes"}),
)


EXAMPLES = """\b
Examples:
  rejoint demo --seed 1 --output pictures --json"""


@click.command("demo", epilog=EXAMPLES)
@click.option("--seed", default=0, show_default=True, help="Seed of the records and of the fit.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the plot; made if need be.",
)
@as_json
def command(seed: int, output: Path, as_json: bool) -> None:
    """Recover the Asia network from records with holes.

    Samples records of eight variables from a network whose joint is known, removes cells, and
    recovers the joint from tables of three variables, without knowing the graph.
    """
    out, err = Console(), Console(stderr=True)
    truth = datasets.asia()
    complete = truth.sample(RECORDS, random_state=seed)
    records = datasets.remove_cells(complete, MISSING, random_state=seed)
    err.print(f"{RECORDS:,} records of the Asia network, {MISSING:.0%} of the cells removed.")
    estimate = _recover(records, seed, err)
    picture = _draw(truth, estimate, output)
    if as_json:
        _write_json(truth, estimate, records, complete, picture)
        return
    out.print(_answers(truth, estimate, records))
    out.print(_errors(truth, estimate, records, complete))
    if picture is None:
        err.print("No plot: it needs matplotlib (pip install 'rejoint\\[plots]').")
    else:
        out.print(f"Plot: {picture}", highlight=False)


def _recover(records: Records, seed: int, err: Console) -> LowRankPMF:
    start = perf_counter()
    marginals = Marginals.count(records, order=ORDER)
    result = factorize(marginals, rank=RANK, random_state=seed)
    seconds = perf_counter() - start
    err.print(
        f"{len(marginals)} tables of {ORDER} variables counted and factored at rank {RANK} "
        f"in {seconds:.1f} s. {result.stop}",
        highlight=False,
    )
    return result.pmf


def _write_json(
    truth: LowRankPMF,
    estimate: LowRankPMF,
    records: Records,
    complete: Records,
    picture: Path | None,
) -> None:
    answers = {
        describe(event, given): [pmf.prob(event, given=given) for pmf in (truth, estimate)]
        for event, given in QUESTIONS
    }
    errors = dict(_distances(truth, estimate, records, complete))
    echo_json(
        {
            "true and recovered": answers,
            "total variation and relative error": errors,
            "plot": picture,
        }
    )


def _answers(truth: LowRankPMF, estimate: LowRankPMF, records: Records) -> Table:
    """Posteriors of the network beside the recovered ones."""
    table = _table("Questions across variables", "true", "recovered", "seen")
    table.caption = "seen: records that show the evidence"
    for event, given in QUESTIONS:
        pair = [pmf.prob(event, given=given) for pmf in (truth, estimate)]
        seen = sum(
            all(row[name] == level for name, level in given.items()) for row in records.rows()
        )
        table.add_row(describe(event, given), *[f"{value:.3f}" for value in pair], f"{seen:,}")
    return table


def _errors(truth: LowRankPMF, estimate: LowRankPMF, records: Records, complete: Records) -> Table:
    """Distance from the true joint, with simpler ways to put it in proportion."""
    table = _table("Error of the joint (256 cells)", "total variation", "relative")
    for name, distances in _distances(truth, estimate, records, complete):
        table.add_row(name, *(f"{distance:.3f}" for distance in distances))
    return table


def _distances(
    truth: LowRankPMF, estimate: LowRankPMF, records: Records, complete: Records
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Total variation and relative error of each way."""
    whole = Records(records.domain, records.codes[(records.codes >= 0).all(axis=1)])
    for name, pmf in {
        "rejoint": estimate,
        f"counting the {len(whole)} records without a hole": _counted(whole),
        "taking the variables as independent": _independent(records),
        f"counting all {RECORDS:,} before cells were removed": _counted(complete),
    }.items():
        yield name, (metrics.total_variation(truth, pmf), metrics.tensor_error(truth, pmf))


def _counted(records: Records) -> LowRankPMF:
    """Shares of records without holes, as they are."""
    return LowRankPMF.from_dense(records.marginal(records.names), domain=records.domain)


def _independent(records: Records) -> LowRankPMF:
    """Product of the shares of each variable: rank one."""
    factors = [records.marginal([name])[:, None] for name in records.names]
    return LowRankPMF([1.0], factors, records.domain)


def _draw(truth: LowRankPMF, estimate: LowRankPMF, folder: Path) -> Path | None:
    """Write the picture; None where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(12, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    plots.posteriors({"true": truth, "recovered": estimate}, QUESTIONS, ax=left)
    plots.factors(estimate, ax=right)
    left.set_title("Questions to the true and to the recovered joint", loc="left")
    right.set_title("The hidden classes that were found", loc="left")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "asia.png"
    figure.savefig(path, dpi=150)
    return path


def _table(title: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", title=title)
    table.caption_justify, table.caption_style = "left", "dim"
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    return table
