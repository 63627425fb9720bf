"""``rejoint inspect``: what is in a model file, and how well it fits."""

from collections.abc import Mapping
from typing import Any

import click
import numpy as np

from rejoint.cli.group import echo, in_options
from rejoint.cli.options import Options, declare, load_predictor, option, origin, split_names
from rejoint.cli.output import echo_json, format_classes, new_figure, save_figure, show_table
from rejoint.explorer.document import pair_fit, table_fit
from rejoint.identifiability.model_verdict import model_verdict
from rejoint.io.fit_notes import FIT_TEXTS
from rejoint.plots import factors
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.text import class_titles, clean_label, plural

_CLASSES = 12  # shown side by side


@declare(
    "MODEL --data --tables --plot --json +survey +tables",
    option("--variables A,B,...", "Show profiles of these variables only."),
)
def command(o: Options) -> None:
    """Show a model: how it was fitted, weights and profiles of its classes, worst-fitting tables.

    Without --data or --tables the tables are those that were compared when it was fitted.

    Examples
    --------
      rejoint inspect patients.rejoint
      rejoint inspect patients.rejoint --data patients.csv --variables smoke,lung
      rejoint inspect patients.rejoint --plot classes.svg
    """
    pmf, ensemble, notes = load_predictor(o.model)
    shown = split_names([o.variables]) if o.variables else list(pmf.domain.names)
    pmf.domain.indices(shown)  # an unknown name is an error here
    _, fit = compare_with(o, pmf, notes)
    if o.plot:
        levels = sum(len(pmf.domain[name]) for name in shown)
        figure = new_figure(3.5 + 0.5 * pmf.rank, 1.0 + 0.22 * levels)
        factors(pmf, shown, ax=figure.subplots())
        save_figure(figure, o.plot)
    # There is a verdict on every model from tables.
    verdict = None if pmf.tables is None else model_verdict(pmf)
    if o.json:
        echo_json(_plain(pmf, shown, notes, fit, verdict))
        return
    head = [format_classes(pmf.rank), plural(len(pmf.domain), "variable")]
    head += [plural(len(pmf.draws), "posterior draw")] if pmf.draws else []
    behind = origin(notes)
    echo(f"{o.model}: {', '.join(head)}" + (f"; fitted to {behind}" if behind else ""))
    for key in FIT_TEXTS:
        if notes.get(key):
            echo(in_options(str(notes[key])))
    if verdict is not None:
        echo(in_options(verdict.verdict))
    if ensemble is not None:
        members, names = plural(len(ensemble.members), "model"), ", ".join(ensemble.targets.names)
        echo(
            f"To predict {names}: {members}. The joint model, which is shown here, answers "
            "questions."
        )
    echo()
    _show_profiles(pmf, shown, notes)
    if fit and fit["tables"]:
        _show_fit(fit)


def compare_with(
    o: Options, pmf: LowRankPMF, notes: Mapping[str, Any]
) -> tuple[Records | None, dict[str, Any] | None]:
    """Return records of ``--data``, and the worst-fitting tables: of them, given, or noted."""
    if o.data is not None and o.tables is not None:
        raise click.UsageError("Give --data or --tables, not both.")
    if o.data is not None:
        records = o.read_records(o.data, pmf.domain)
        return records, pair_fit(pmf, records)
    if o.tables is not None:
        tables, _ = o.read_tables(o.tables)
        own = pmf.project(tables.domain.names).align(tables.domain)
        return None, table_fit(tables, tables.compare(own))
    return None, notes.get("fit")


def _plain(
    pmf: LowRankPMF, shown: list[str], notes: Mapping[str, Any], fit: Any, verdict: Any
) -> dict[str, Any]:
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
            for v in map(pmf.domain.__getitem__, shown)
        ],
        "fit": fit,
        "identifiability": verdict and verdict._asdict(),
        "notes": {key: value for key, value in notes.items() if key != "fit"},
    }


def _show_profiles(pmf: LowRankPMF, shown: list[str], notes: Mapping[str, Any]) -> None:
    groups = notes.get("classes_are_groups", True)
    order = np.argsort(-pmf.weights, kind="stable")[: _CLASSES if groups else 0]
    names = class_titles(pmf.rank, notes.get("class_names"))
    titles = [clean_label(names[f], 12) for f in order]
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


def _show_fit(fit: Mapping[str, Any], most: int = 10) -> None:
    distances = [table["distance"] for table in fit["tables"]]
    is_by_distance = distances == sorted(distances, reverse=True)
    order = "largest distance first" if is_by_distance else "largest excess over chance first"
    rows = [
        (
            ", ".join(table["names"]),
            f"{table['distance']:.4f}",
            "-" if table["chance"] is None else f"{table['chance']:.4f}",
            f"{table['records']:,.0f}",
        )
        for table in fit["tables"][:most]
    ]
    number = plural(fit["checked"], "table")
    title = f"\nWorst-fitting of {number}, {order} (share of the mass in wrong cells):"
    show_table(("table", "distance", "by chance", "records"), rows, title=title)
