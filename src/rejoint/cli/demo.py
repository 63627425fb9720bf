"""``rejoint demo``: a known network, records with missing values, and how much is recovered."""

from pathlib import Path
from time import perf_counter

import click

from rejoint import metrics, plots
from rejoint.cli.group import echo
from rejoint.cli.options import Options, declare, option
from rejoint.cli.output import echo_json, new_figure, save_figure, show_table
from rejoint.datasets.simulate import asia, remove_cells
from rejoint.factorization.factorize import factorize
from rejoint.marginals.marginals import Marginals
from rejoint.plots import describe
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.text import plural

RECORDS = 5_000
MISSING = 0.3
ORDER = 3
RANK = 5  # one choice among several tried: examples/plot_asia.py prints the error for 3 to 8
QUESTIONS: tuple[tuple[dict[str, str], dict[str, str]], ...] = (
    ({"lung": "yes"}, {"smoke": "yes", "dysp": "yes"}),
    ({"lung": "yes"}, {"smoke": "yes", "xray": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes", "xray": "yes"}),
    ({"either": "no"}, {"xray": "yes", "dysp": "no"}),
    ({"tub": "yes"}, {"lung": "no", "xray": "yes"}),
    ({"tub": "yes"}, {"asia": "yes", "xray": "yes"}),
)


@declare(
    "--seed --json",
    option(
        "--output DIR",
        "Folder for the plot; created if it does not exist.",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("demo"),
    ),
)
def command(o: Options) -> None:
    """Recover the Asia network from records with missing values.

    Samples records of eight variables from a network whose joint is known, removes cells, and
    recovers the joint from tables of three variables, without knowing the graph.

    Examples
    --------
      rejoint demo --seed 1 --output pictures --json
    """
    truth = asia()
    complete = truth.sample(RECORDS, random_state=o.seed)
    records = remove_cells(complete, MISSING, random_state=o.seed)
    echo(f"{RECORDS:,} records of the Asia network, {MISSING:.0%} of the cells removed.", err=True)
    estimate = _recover(records, o.seed)
    answers = {
        describe(event, given): [pmf.prob(event, given=given) for pmf in (truth, estimate)]
        for event, given in QUESTIONS
    }
    errors = {
        name: [metrics.total_variation(truth, pmf), metrics.tensor_error(truth, pmf)]
        for name, pmf in _rivals(estimate, records, complete).items()
    }
    picture = _draw(truth, estimate, o.output)
    if o.json:
        parts = {"true and recovered": answers, "total variation and relative error": errors}
        echo_json({**parts, "plot": picture})
        return
    seen = [sum(given.items() <= row.items() for row in records.rows()) for _, given in QUESTIONS]
    rows: list[list[str]] = [
        [name, *map("{:.3f}".format, values), f"{count:,}"]
        for (name, values), count in zip(answers.items(), seen, strict=True)
    ]
    head = ("question across variables", "true", "recovered", "records with the evidence")
    show_table(head, rows)
    rows = [[name, *map("{:.3f}".format, values)] for name, values in errors.items()]
    echo()
    show_table(("error of the joint (256 cells)", "total variation", "relative"), rows)
    if picture is None:
        echo("No plot: it needs matplotlib (pip install 'rejoint[plots]').", err=True)
    else:
        echo(f"Plot: {picture}")


def _recover(records: Records, seed: int) -> LowRankPMF:
    start = perf_counter()
    marginals = Marginals.count(records, order=ORDER)
    result = factorize(marginals, rank=RANK, random_state=seed)
    number, seconds = plural(len(marginals), "table"), perf_counter() - start
    how = f"of {ORDER} variables counted and factored at rank {RANK} in {seconds:.1f} s"
    echo(f"{number} {how}. {result.stop}", err=True)
    return result.pmf


def _rivals(estimate: LowRankPMF, records: Records, complete: Records) -> dict[str, LowRankPMF]:
    """Return the recovered joint and those of simpler ways, which put its error in proportion."""
    filled = Records(records.domain, records.codes[(records.codes >= 0).all(axis=1)])
    shares = [records.marginal([name])[:, None] for name in records.names]
    return {
        "rejoint": estimate,
        f"counting the {len(filled)} complete records": _count_joint(filled),
        "treating the variables as independent": LowRankPMF([1.0], shares, records.domain),
        f"counting all {RECORDS:,} before cells were removed": _count_joint(complete),
    }


def _count_joint(records: Records) -> LowRankPMF:
    return LowRankPMF.from_dense(records.marginal(records.names), domain=records.domain)


def _draw(truth: LowRankPMF, estimate: LowRankPMF, folder: Path) -> Path | None:
    """Write the picture; None where matplotlib is missing."""
    try:
        figure = new_figure(12, 5.5)
    except ImportError:
        return None
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    plots.posteriors({"true": truth, "recovered": estimate}, QUESTIONS, ax=left)
    plots.factors(estimate, ax=right)
    left.set_title("Questions to the true and to the recovered joint", loc="left")
    right.set_title("The hidden classes that were found", loc="left")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "asia.png"
    save_figure(figure, str(path))
    return path
