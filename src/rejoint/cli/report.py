"""``rejoint report``: a report about a model on one page."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import combinations, islice, product
from math import isfinite, log, prod
from pathlib import PurePath
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from rejoint import __version__
from rejoint.cli import options
from rejoint.cli.group import echo, in_options
from rejoint.cli.inspect import describe_order, fit_of
from rejoint.cli.options import DataReader, TableReader, load_with_notes, origin
from rejoint.cli.output import check_output, echo_json, format_classes, open_output
from rejoint.explorer.document import describe_limit
from rejoint.explorer.page import load_template
from rejoint.identifiability.model_verdict import model_verdict
from rejoint.io.fit_notes import FIT_TEXTS, records_behind
from rejoint.language.query import Label, Name
from rejoint.model import Layout
from rejoint.pmf.entropy import conditional_entropy, mutual_information
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.table_as_read import TableAsRead, list_as_read
from rejoint.records.records import Records
from rejoint.records.survey_design import SurveyDesign
from rejoint.text import clean_label, format_count, format_interval, plural

Notes = Mapping[str, Any]
Part = dict[str, Any]

#: What is drawn at the most, so that the page stays readable.
LEVELS, CLASSES, VARIABLES, TABLES, CELLS = 12, 16, 24, 20, 60

_ROW = 18  # height of a line of text


class Section(NamedTuple):
    """A title, the name of its place and template, and what the template shows."""

    title: str
    place: str
    part: Part | None


class Shape(NamedTuple):
    """An element of a picture; text is None where it has none."""

    tag: str
    attributes: dict[str, Any]
    text: str | None = None


class Picture(NamedTuple):
    """An SVG picture and what it is called."""

    width: float
    height: float
    label: str
    shapes: Sequence[Shape]


def page(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """Return the whole page as HTML.

    Examples
    --------
    >>> asked = Section("Ask it", "ask", {"commands": "rejoint ask a<b"})
    >>> text = page("A & B", "two variables", [asked], "")
    >>> "A &amp; B" in text, "a&lt;b" in text, "<script" in text
    (True, True, False)
    """
    template = load_template("rejoint.cli", "report.html")
    return template.render(title=title, lead=lead, sections=sections, footer=footer).lstrip()


def sections(
    pmf: LowRankPMF, notes: Notes, records: Records | None, fit: Part | None, file: str
) -> list[Section]:
    """Return all sections that have something to show.

    Examples
    --------
    >>> import rejoint as rj
    >>> [s.title for s in sections(rj.datasets.asia(), {}, None, None, "asia.rejoint")]
    ['Data', 'Number of classes', 'Identifiability', 'Classes', 'Dependence', 'Ask it']
    """
    found = [
        Section("Data", "data", _data(pmf, notes, records)),
        Section("Empty cells", "empty", _empty(notes, records)),
        Section("Number of classes", "rank", _rank(pmf, notes)),
        Section("Identifiability", "identifiability", _identifiability(pmf, notes)),
        Section("Fit to tables", "fit", _fit(fit)),
        Section("Tables as given", "given", _given(pmf, notes)),
        Section("Classes", "classes", _classes(pmf, notes)),
        Section("Tabulated together", "blocks", _blocks(pmf)),
        Section("Dependence", "dependence", _dependence(pmf)),
        Section("Ask it", "ask", _ask(pmf, file)),
    ]
    return [section for section in found if section.part is not None]


def _data(pmf: LowRankPMF, notes: Notes, records: Records | None) -> Part:
    said = []
    if records is not None:
        said.append(f"{plural(len(records), 'record')} are shown beside the model.")
        if records.design is not None:
            said.append(records.design.text)
    elif number := records_behind(notes):
        said.append(f"The model is based on {plural(round(number), 'record')}.")
        if (design := SurveyDesign.from_json(notes.get("survey_design"))) is not None:
            said.append(design.text)
    if notes.get("tables"):
        said.append(f"It was fitted to {plural(len(notes['tables']), 'table')} of them.")
    size = Layout(pmf.domain.shape).parameters(pmf.rank)
    cells = format_count(prod(pmf.domain.shape))
    said.append(
        f"{plural(len(pmf.domain), 'variable')}, {cells} possible combinations, "
        f"{plural(size, 'parameter')}."
    )
    variables = [
        {
            "name": clean_label(v.name, 40),
            "kind": v.kind,
            "size": len(v),
            "levels": _levels(pmf, n, records),
            "more": len(v) - LEVELS,
        }
        for n, v in enumerate(pmf.domain)
    ]
    return {
        "summary": " ".join(said),
        "has_records": records is not None,
        "variables": variables,
    }


def _levels(pmf: LowRankPMF, n: int, records: Records | None) -> list[Part]:
    """Return the levels of a variable that there is room for, each with its bar."""
    variable, shares = pmf.domain[n], pmf.marginal([pmf.domain.names[n]])
    seen: Any = [None] * len(variable)
    if records is not None and (records.codes[:, n] >= 0).any():
        seen = records.marginal([variable.name])
    return [
        {
            "label": clean_label(variable.levels[i], 32),
            "bar": bar(shares[i], seen[i]),
            "share": shares[i],
        }
        for i in _shown_levels(pmf, n)
    ]


def _shown_levels(pmf: LowRankPMF, n: int) -> list[int]:
    """Return the levels to show: the most probable, or the first where order matters."""
    size = len(pmf.domain[n])
    if size <= LEVELS or pmf.domain[n].kind != "nominal":
        return list(range(min(size, LEVELS)))
    shares = pmf.marginal([pmf.domain.names[n]])
    return [int(i) for i in np.argsort(-shares, kind="stable")[:LEVELS]]


def _empty(notes: Notes, records: Records | None) -> Part | None:
    if records is not None:
        missing = dict(zip(records.names, (records.codes < 0).mean(axis=0), strict=True))
    else:
        missing = {name: float(share) for name, share in (notes.get("missing") or {}).items()}
    if not missing:
        return None
    if not any(missing.values()):
        return {"worst": []}
    said = f"{np.mean(list(missing.values())):.1%} of the cells are empty."
    if records is not None:
        complete = float((records.codes >= 0).all(axis=1).mean())
        kinds = plural(len(np.unique(records.codes < 0, axis=0)), "pattern")
        said += f" {complete:.1%} of the records are complete; {kinds} of missing values."
    worst = sorted(missing.items(), key=lambda item: -item[1])[:VARIABLES]
    rows = [{"name": clean_label(n, 40), "bar": bar(share), "share": share} for n, share in worst]
    return {"summary": said, "worst": rows}


def _rank(pmf: LowRankPMF, notes: Notes) -> Part:
    found = notes.get("rank_curve")
    curved = isinstance(found, dict) and len(found.get("ranks", ())) > 1
    held_out = curved and found and found.get("criterion") == "heldout"
    error = "standard errors of the difference from it"
    return {
        "lines": error if held_out else "the difference that is considered negligible",
        "classes": format_classes(pmf.rank),
        "groups": notes.get("classes_are_groups", True),
        "notes": [
            *(in_options(notes[key]) for key in FIT_TEXTS if notes.get(key)),
            *filter(None, [describe_limit(pmf)]),
        ],
        "curve": curve(found) if curved and found else None,
    }


def _identifiability(pmf: LowRankPMF, notes: Notes) -> Part | None:
    """Whether tables determine the model: those it was fitted to, or all of three variables."""
    if pmf.tables is None and not notes.get("classes_are_groups", True):
        return None
    found = model_verdict(pmf)
    if found is None:
        return None
    return {
        "question": found.question,
        "verdict": in_options(found.verdict),
        "details": [in_options(each) for each in found.details],
    }


def _fit(fit: Part | None) -> Part | None:
    if not fit or not fit["tables"]:
        return None
    shown = fit["tables"][:TABLES]
    rows = [(", ".join(t["names"]), float(t["distance"]), t["chance"]) for t in shown]
    known = [t for t in fit["tables"] if t["chance"] is not None]
    order = describe_order(fit["tables"])
    said = f"The tables that the model meets worst, of {fit['checked']:,} compared, {order}."
    if known:
        over = sum(t["distance"] > 2.0 * t["chance"] for t in known)
        listed = plural(len(known), "table")
        said += f" {over:,} of {listed} differ by more than twice the average distance by chance."
    return {"summary": said, "bars": paired_bars(rows)}


def _given(pmf: LowRankPMF, notes: Notes) -> Part | None:
    """Each table as it was read, next to the model's values."""
    tables, left = list_as_read(pmf, notes.get("tables"), most_tables=TABLES)
    if not tables:
        return None
    return {"tables": [_given_table(pmf, table) for table in tables], "left": left}


def _given_table(pmf: LowRankPMF, table: TableAsRead) -> Part:
    levels = [pmf.domain[name].levels for name in table.names]
    rows = [
        {
            "labels": [clean_label(x, 30) for x in labels],
            "given": table.write_given(place),
            "model": table.write_model(place),
        }
        for place, labels in enumerate(islice(product(*levels), CELLS))
    ]
    left = table.model.size - len(rows)
    return {"names": table.names, "text": table.text, "rows": rows, "left": left}


def _classes(pmf: LowRankPMF, notes: Notes) -> Part | None:
    if not notes.get("classes_are_groups", True):
        return None
    order = np.argsort(-pmf.weights, kind="stable")[:CLASSES].tolist()
    names = notes.get("class_names")
    listed = [
        {
            "number": f + 1,
            "name": clean_label(names[f], 30) if names else "",
            "bar": bar(float(pmf.weights[f])),
            "weight": pmf.weights[f],
            "typical": _typical(pmf, f),
        }
        for f in order
    ]
    labels: list[str] = []
    cells: list[list[float]] = []
    breaks: list[int] = []
    for n, variable in enumerate(pmf.domain.variables[:VARIABLES]):
        breaks.append(len(labels))
        for i in _shown_levels(pmf, n):
            labels.append(
                f"{clean_label(variable.name, 20)} = {clean_label(variable.levels[i], 20)}"
            )
            cells.append([float(pmf.factors[n][i, f]) for f in order])
    titles = [str(f + 1) for f in order]
    return {
        "named": bool(names),
        "averaged": pmf.mixture is not pmf,
        "classes": listed,
        "profiles": heat_map(labels, titles, cells, label="Class profiles", breaks=breaks),
        "left": pmf.rank - len(order),
    }


def _typical(pmf: LowRankPMF, f: int) -> str:
    """Return the levels by which a class differs most from all records."""
    found = []
    for n, variable in enumerate(pmf.domain):
        apart = pmf.factors[n][:, f] - pmf.marginal(variable.name)
        i = int(np.argmax(apart))
        text = f"{clean_label(variable.name, 24)} = {clean_label(variable.levels[i], 24)}"
        found.append((float(apart[i]), f"{text} ({pmf.factors[n][i, f]:.0%})"))
    best = sorted(found, reverse=True)[:3]
    return "; ".join(text for gap, text in best if gap > 0.02) or "like the whole"


def _blocks(pmf: LowRankPMF) -> Part | None:
    """Variables of each block, and how strong it is, the strongest first."""
    names, weights = pmf.domain.names, pmf.mixture.weights
    rows = [
        {
            "names": ", ".join(clean_label(names[n], 40) for n in block.members),
            "bits": block.information(weights) / log(2.0),
        }
        for block in pmf.mixture._blocks
    ]
    return {"rows": sorted(rows, key=lambda row: -row["bits"])} if rows else None


def _dependence(pmf: LowRankPMF) -> Part | None:
    """How much one variable says about another, as a share of what there is to say."""
    size = len(pmf.domain)
    if size < 2 or size > VARIABLES or pmf.rank > 2_000:
        return None
    names = [clean_label(name, 30) for name in pmf.domain.names]
    shares = _information_shares(pmf)
    numbers = [str(k + 1) for k in range(size)]
    rows = [f"{name}  {k}" for name, k in zip(names, numbers, strict=True)]
    pairs = sorted(combinations(range(size), 2), key=lambda p: -shares[p])[:3]
    told = [f"{names[i]} and {names[j]} ({shares[i, j]:.0%})" for i, j in pairs if shares[i, j] > 0]
    return {
        "map": heat_map(rows, numbers, shares.tolist(), label="Dependence of pairs", size=30),
        "strongest": ", ".join(told),
    }


def _information_shares(pmf: LowRankPMF) -> NDArray[np.float64]:
    size, answer = len(pmf.domain), pmf.mixture._parts
    shares = np.zeros((size, size))
    entropy = [conditional_entropy(answer, (n,)).value for n in range(size)]
    for i, j in combinations(range(size), 2):
        least = min(entropy[i], entropy[j])
        told = mutual_information(answer, (i,), (j,)).value
        shares[i, j] = shares[j, i] = np.clip(told / least if least > 0 else 0.0, 0.0, 1.0)
    return shares


def _ask(pmf: LowRankPMF, file: str) -> Part:
    varied = [v for v in pmf.domain if len(v) > 1] or list(pmf.domain)
    first, last = varied[0], varied[-1]
    level = first.levels[0]
    given = f"{Name(first.name)} = {Label(str(level), isinstance(level, int | float))}"
    named = shlex.quote(file)
    lines = [
        f"rejoint ask {named} {shlex.quote(f'P({Name(last.name)} | {given})')}",
        f"rejoint sample {named} -n 100",
        f"rejoint explore {named}",
    ]
    return {"commands": "\n".join(lines)}


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Shape:
    place = {"x": f"{x:g}", "y": f"{y:g}"}
    return Shape("text", {**place, "class": kind, "text-anchor": anchor}, clean_label(text, 42))


def _box(x: float, y: float, width: float, height: float, kind: str, **more: str) -> Shape:
    sides = {"x": x, "y": y, "width": max(width, 0), "height": height}
    shown = {name: f"{side:.2f}" for name, side in sides.items()}
    return Shape("rect", {**shown, "class": kind, **more})


def bar(share: float, seen: float | None = None, width: int = 120) -> Picture:
    """Draw a bar for a share, with a tick where the data have it.

    Examples
    --------
    >>> [shape.attributes["class"] for shape in bar(0.5, 0.4).shapes]
    ['track', 'fill', 'tick']
    """
    shapes = [_box(0, 2, width, 10, "track"), _box(0, 2, share * width, 10, "fill")]
    if seen is not None and isfinite(seen):
        shapes.append(_box(seen * width - 1, 0, 2, 14, "tick"))
    return Picture(width, 14, f"{share:.1%}", shapes)


def paired_bars(rows: Sequence[tuple[str, float, float | None]], width: int = 640) -> Picture:
    """Draw a line for each row: a bar for the first number, a tick for the second."""
    top = max([value for _, a, b in rows for value in (a, b or 0.0)], default=0.0) or 1.0
    names = min(max((len(name) for name, _, _ in rows), default=0) * 7 + 12, 300)
    room = width - names - 60
    shapes = []
    for k, (name, value, other) in enumerate(rows):
        y = k * (_ROW + 4)
        shapes += [_text(0, y + 14, name), _box(names, y + 4, value / top * room, 12, "fill")]
        if other is not None:
            shapes.append(_box(names + other / top * room - 1, y + 1, 2, 18, "tick"))
        end = names + max(value, other or 0.0) / top * room + 8
        shapes.append(_text(end, y + 14, f"{value:.3f}", "number"))
    return Picture(width, len(rows) * (_ROW + 4) + 2, "Distances of tables", shapes)


def curve(found: Mapping[str, Any], width: int = 640, height: int = 240) -> Picture:
    """Draw the score against the rank, with the error of the difference from the rank chosen.

    Examples
    --------
    >>> shown = {"rank": 2, "ranks": [1, 2], "scores": [-2.0, -1.0], "errors": [0.1, 0.0]}
    >>> [shape.tag for shape in curve({**shown, "tied": [2]}).shapes].count("circle")
    2
    """
    ranks, scores, errors = found["ranks"], found["scores"], found["errors"]
    best = ranks.index(found["rank"])
    # As in plots.rank_curve: ranks far too small would flatten the part that matters.
    near = range(max(best - 1, 0), len(ranks))
    low = min(scores[k] - errors[k] for k in near)
    high = max(scores[k] + errors[k] for k in near)
    low, high = low - 0.1 * (high - low or 1.0), high + 0.1 * (high - low or 1.0)
    left, right, bottom = 76, width - 16, height - 34

    def x(rank: float) -> float:
        return float(left + (rank - ranks[0]) / max(ranks[-1] - ranks[0], 1) * (right - left))

    def y(score: float) -> float:
        return float(min(bottom - (score - low) / (high - low) * (bottom - 10), bottom + 6))

    line = " ".join(f"{x(r):.1f},{y(s):.1f}" for r, s in zip(ranks, scores, strict=True))
    shapes = [Shape("polyline", {"points": line, "class": "line"})]
    for value in (low + (high - low) * part for part in (0.1, 0.5, 0.9)):
        shapes.append(
            _text(left - 14, y(value) + 4, format_interval(value, low, high)[0], "number", "end")
        )
    for rank, score, error in zip(ranks, scores, errors, strict=True):
        kind = "chosen" if rank == found["rank"] else "tied" if rank in found["tied"] else "dot"
        tall = y(score - error) - y(score + error)
        center = {"cx": f"{x(rank):.1f}", "cy": f"{y(score):.1f}", "r": 5}
        shapes += [
            _box(x(rank) - 0.75, y(score + error), 1.5, tall, "line-fill"),
            Shape("circle", {**center, "class": kind}),
            _text(x(rank), bottom + 20, str(rank), "number", "middle"),
        ]
    shapes.append(_text(right, height - 2, "classes", "faint", "end"))
    return Picture(width, height, "Score of each number of classes", shapes)


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[float]],
    *,
    label: str,
    breaks: Sequence[int] = (),
    size: int = 34,
) -> Picture:
    """Draw cells between 0 and 1 as shades and numbers; a gap before each row of ``breaks``.

    Examples
    --------
    >>> len(heat_map(["a"], ["x", "y"], [[0.2, 0.8]], label="shares").shapes)
    7
    """
    names = min(max((len(name) for name in rows), default=0) * 7 + 12, 280)
    shapes = [
        _text(names + (k + 0.5) * size, 14, name, "number", "middle")
        for k, name in enumerate(columns)
    ]
    down = 22.0
    for r, name in enumerate(rows):
        down += 6 if r in breaks else 0
        shapes.append(_text(names - 8, down + 14, clean_label(name, 40), "", "end"))
        for k, value in enumerate(cells[r]):
            x = names + k * size
            shade = f"fill-opacity:{value:.3f}"
            kind = "number light" if value > 0.55 else "number"
            text = f"{100 * value:.0f}" if value >= 0.005 else ""
            shapes += [
                _box(x, down, size - 2, _ROW, "cell", style=shade),
                _text(x + size / 2 - 1, down + 13, text, kind, "middle"),
            ]
        down += _ROW + 2
    return Picture(names + len(columns) * size + 4, down + 2, label, shapes)


EXAMPLES = """\b
Examples:
  rejoint report patients.rejoint -o report.html
  rejoint report patients.rejoint --data patients.csv --title "Patients" -o report.html"""


@click.command("report", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option("--data", metavar="DATA", help="Records to show beside the model.")
@click.option("--tables", metavar="DIR", help="Tables to compare the model with.")
@click.option("--title", help="Title of the page; the file name by default.")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True)
@options.as_json
@options.of_tables
@options.of_survey
def command(
    model: str,
    data: str | None,
    tables: str | None,
    title: str | None,
    output: str,
    as_json: bool,
    reader: DataReader,
    table_reader: TableReader,
) -> None:
    """Write a report: data, empty cells, rank and why, identifiability, fit, classes, dependence.

    One HTML file that has no scripts and fetches nothing. It has no records in it: only shares,
    and the tables that the model was fitted to, if there are any.
    """
    check_output(output, as_json, signature=b"")
    pmf, notes = load_with_notes(model)
    records = None if data is None else reader.read(data, pmf.domain)
    fit = fit_of(pmf, notes, records, table_reader.read(tables) if tables else None)
    found = sections(pmf, notes, records, fit, PurePath(model).name)
    behind = origin(notes)
    lead = f"A joint model of {plural(len(pmf.domain), 'variable')}" + (
        f", from {behind}." if behind else "."
    )
    name = title or ("Model" if model == "-" else PurePath(model).stem)
    text = page(name, lead, found, f"Made by rejoint {__version__}.")
    with open_output(output) as file:
        file.write(text.encode())
    if as_json:
        echo_json({"report": output, "sections": [section.title for section in found]})
    elif output != "-":
        echo(f"Written: {output}.", err=True)
