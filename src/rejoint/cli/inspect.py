"""``rejoint inspect``: what is in a model file, and how well it fits."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

from rejoint.cli import options
from rejoint.cli.group import echo, in_options
from rejoint.cli.options import DataReader, TableReader, load_predictor, origin, split_names
from rejoint.cli.output import (
    echo_json,
    format_classes,
    new_figure,
    save_figure,
    show_table,
)
from rejoint.explorer.document import pair_fit, table_fit
from rejoint.identifiability.model_verdict import ModelVerdict, model_verdict
from rejoint.io.fit_notes import FIT_TEXTS
from rejoint.marginals.marginals import Marginals
from rejoint.plots import factors
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.text import class_titles, clean_label, plural

EXAMPLES = """\b
Examples:
  rejoint inspect patients.rejoint
  rejoint inspect patients.rejoint --data patients.csv --variables smoke,lung
  rejoint inspect patients.rejoint --plot classes.svg"""

_CLASSES = 12  # shown side by side


@click.command("inspect", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option("--data", metavar="DATA", help="Records to compare the model with.")
@click.option("--tables", metavar="DIR", help="Tables to compare the model with.")
@click.option("--variables", metavar="A,B,...", help="Show profiles of these variables only.")
@click.option("--plot", metavar="FILE", help="Plot the profiles to this file: .svg, .png, .pdf.")
@options.as_json
@options.of_tables
@options.of_survey
def command(
    model: str,
    data: str | None,
    tables: str | None,
    variables: str | None,
    plot: str | None,
    as_json: bool,
    reader: DataReader,
    table_reader: TableReader,
) -> None:
    """Show a model: how it was fitted, weights and profiles of its classes, worst-fitting tables.

    Without --data or --tables the tables are those that were compared when it was fitted.
    """
    pmf, ensemble, notes = load_predictor(model)
    shown = split_names([variables]) if variables else list(pmf.domain.names)
    pmf.domain.indices(shown)  # an unknown name is an error here
    records = None if data is None else reader.read(data, pmf.domain)
    fit = fit_of(pmf, notes, records, table_reader.read(tables) if tables else None)
    if plot:
        _draw(pmf, shown, plot)
    if as_json:
        echo_json(_plain(pmf, shown, notes, fit))
        return
    _show_head(pmf, model, notes)
    if ensemble is not None:
        members, names = len(ensemble.members), ", ".join(ensemble.targets.names)
        echo(
            f"To predict {names}: {plural(members, 'model')}. The joint model, which is shown "
            "here, answers questions."
        )
    echo()
    _show_profiles(pmf, shown, notes)
    _show_fit(fit)


def fit_of(
    pmf: LowRankPMF,
    notes: Mapping[str, Any],
    records: Records | None,
    tables: Marginals | None,
) -> dict[str, Any] | None:
    """Return the worst-fitting tables of a model: of records, of tables, or of its file."""
    if records is not None and tables is not None:
        raise click.UsageError("Give --data or --tables, not both.")
    if records is not None:
        return pair_fit(pmf, records)
    if tables is not None:
        own = pmf.project(tables.domain.names).align(tables.domain)
        return table_fit(tables, tables.compare(own))
    fit: dict[str, Any] | None = notes.get("fit")
    return fit


def _plain(pmf: LowRankPMF, shown: list[str], notes: Mapping[str, Any], fit: Any) -> dict[str, Any]:
    variables = [pmf.domain[name] for name in shown]
    return {
        "rank": pmf.rank,
        "weights": pmf.weights,
        "classes": class_titles(pmf.rank, notes.get("class_names")),
        "draws": len(pmf.draws),
        "variables": [
            {
                "name": v.name,
                "kind": v.kind,
                "levels": v.levels,
                "overall": pmf.marginal([v.name]),
                "profiles": pmf.factors[pmf.domain.index(v.name)].T,
            }
            for v in variables
        ],
        "fit": fit,
        "identifiability": None if pmf.tables is None else _verdict(pmf)._asdict(),
        "notes": {key: value for key, value in notes.items() if key != "fit"},
    }


def _show_head(pmf: LowRankPMF, model: str, notes: Mapping[str, Any]) -> None:
    behind = origin(notes)
    echo(
        f"{model}: {format_classes(pmf.rank)}, "
        f"{plural(len(pmf.domain), 'variable')}"
        + (f", {plural(len(pmf.draws), 'posterior draw')}" if pmf.draws else "")
        + (f"; fitted to {behind}" if behind else "")
    )
    for key in FIT_TEXTS:
        if notes.get(key):
            echo(in_options(str(notes[key])))
    if pmf.tables is not None:
        echo(in_options(_verdict(pmf).verdict))


def _verdict(pmf: LowRankPMF) -> ModelVerdict:
    found = model_verdict(pmf)
    assert found is not None  # there is one on every model from tables
    return found


def _show_profiles(pmf: LowRankPMF, shown: list[str], notes: Mapping[str, Any]) -> None:
    groups = notes.get("classes_are_groups", True)
    order = np.argsort(-pmf.weights, kind="stable")[: _CLASSES if groups else 0]
    named = class_titles(pmf.rank, notes.get("class_names"))
    titles = [clean_label(named[f], 12) for f in order]
    rows: list[list[Any]] = []
    if groups:
        rows = [["weight", "", "", *(f"{pmf.weights[f]:.3f}" for f in order)]]
    for name in shown:
        n = pmf.domain.index(name)
        overall = pmf.marginal([name])
        for i, level in enumerate(pmf.domain[n].levels):
            cells = [f"{pmf.factors[n][i, f]:.3f}" for f in order]
            rows.append([name if i == 0 else "", level, f"{overall[i]:.3f}", *cells])
    show_table(("variable", "level", "overall", *titles), rows, left=2)
    if groups and pmf.mixture is not pmf:
        echo("The classes are those of one representative model; overall is the posterior mean.")
    if not groups:
        echo("Its classes are parts of an average, not groups of records; --json has them.")
    elif pmf.rank > _CLASSES:
        left = plural(pmf.rank - _CLASSES, "smaller class", "smaller classes")
        echo(f"... and {left}; --json has all.")


def describe_order(tables: Sequence[Mapping[str, Any]]) -> str:
    """Describe by what tables are sorted, the worst first.

    Examples
    --------
    >>> describe_order([{"distance": 0.2, "chance": None}, {"distance": 0.1, "chance": None}])
    'largest distance first'
    """
    distances = [table["distance"] for table in tables]
    if distances == sorted(distances, reverse=True):
        return "largest distance first"
    return "largest excess over chance first"


def _show_fit(fit: dict[str, Any] | None, most: int = 10) -> None:
    if not fit or not fit["tables"]:
        return
    echo()
    rows = [
        (
            ", ".join(table["names"]),
            f"{table['distance']:.4f}",
            "-" if table["chance"] is None else f"{table['chance']:.4f}",
            f"{table['records']:,.0f}",
        )
        for table in fit["tables"][:most]
    ]
    order = describe_order(fit["tables"])
    title = (
        f"Worst-fitting of {plural(fit['checked'], 'table')}, {order} (share of the mass in wrong "
        "cells):"
    )
    show_table(("table", "distance", "by chance", "records"), rows, title=title)


def _draw(pmf: LowRankPMF, shown: list[str], path: str) -> None:
    levels = sum(len(pmf.domain[name]) for name in shown)
    figure = new_figure(3.5 + 0.5 * pmf.rank, 1.0 + 0.22 * levels)
    factors(pmf, shown, ax=figure.subplots())
    save_figure(figure, path)
