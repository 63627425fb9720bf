"""``rejoint report``: all about a model on one page, the print view of the explorer."""

import shlex
from collections.abc import Mapping
from math import prod
from pathlib import PurePath
from typing import Any

import click
import numpy as np

from rejoint.cli.group import echo, in_options
from rejoint.cli.inspect import compare_with
from rejoint.cli.options import Options, declare, load_predictor, option, origin
from rejoint.cli.output import check_output, echo_json, format_classes, open_output
from rejoint.explorer.document import document
from rejoint.explorer.page import page
from rejoint.identifiability.model_verdict import model_verdict
from rejoint.io.fit_notes import FIT_TEXTS
from rejoint.language.query import Label, Name
from rejoint.model import Layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.records.survey_design import SurveyDesign
from rejoint.text import format_count, plural

Notes = Mapping[str, Any]


def print_view(
    pmf: LowRankPMF, notes: Notes, records: Records | None, fit: Any, title: str, file: str
) -> dict[str, Any]:
    """Return the document of the explorer's page that is shown for print."""
    groups, curve = notes.get("classes_are_groups", True), notes.get("rank_curve")
    average = "" if groups else ": parts of an average, not groups of records"
    report = {
        "lead": f"A joint model of {plural(len(pmf.domain), 'variable')}"
        + (f", from {behind}." if (behind := origin(notes)) else "."),
        "data": _describe_data(pmf, notes, records),
        "counted": None if records is None else _count(records),
        "empty": _describe_empty(notes, records),
        "classes": f"The model has {format_classes(pmf.rank)}{average}.",
        "groups": groups,
        "curve": curve if isinstance(curve, dict) and len(curve["ranks"]) > 1 else None,
        "commands": _list_commands(pmf, file),
    }
    return document(
        pmf,
        title=title,
        class_names=notes.get("class_names"),
        fit=fit,
        verdict=_describe_verdict(pmf, groups),
        note=" ".join(in_options(str(notes[key])) for key in FIT_TEXTS if notes.get(key)),
        table_notes=notes.get("tables"),
        report=report,
    )


def _count(records: Records) -> list[list[float]]:
    """Shares of the levels of each variable; none where no record has a value."""
    return [
        records.marginal([name]).tolist() if (records.codes[:, n] >= 0).any() else []
        for n, name in enumerate(records.names)
    ]


def _describe_data(pmf: LowRankPMF, notes: Notes, records: Records | None) -> str:
    shown = [] if records is None else [f"{plural(len(records), 'record')}: lines on the bars."]
    own = SurveyDesign.from_json(notes.get("survey_design")) if records is None else records.design
    size = Layout(pmf.domain.shape).parameters(pmf.rank)
    cells = format_count(prod(pmf.domain.shape))
    texts = [f"It has {plural(size, 'parameter')} for {cells} combinations of levels.", *shown]
    return " ".join([*texts, own.text] if own is not None else texts)


def _describe_empty(notes: Notes, records: Records | None) -> dict[str, Any] | None:
    """Return shares of empty cells, the largest first, and a sentence about all."""
    shares, text = dict(notes.get("missing") or {}), ""
    if records is not None:
        empty = records.codes < 0
        shares = dict(zip(records.names, empty.mean(axis=0).tolist(), strict=True))
        kinds = plural(len(np.unique(empty, axis=0)), "pattern")
        text = f" {(~empty).all(axis=1).mean():.1%} of the records are complete; {kinds} in all."
    if not shares:
        return None
    text = f"{np.mean(list(shares.values())):.1%} of the cells are empty.{text}"
    return {"text": text, "shares": sorted(shares.items(), key=lambda item: -item[1])}


def _describe_verdict(pmf: LowRankPMF, groups: bool) -> dict[str, Any] | None:
    """Whether tables determine the model: those it was fitted to, or all of three variables."""
    verdict = model_verdict(pmf) if groups or pmf.tables is not None else None
    if verdict is None:
        return None
    details = [in_options(text) for text in verdict.details]
    plain = {"question": verdict.question, "verdict": in_options(verdict.verdict)}
    return {**plain, "details": details}


def _list_commands(pmf: LowRankPMF, file: str) -> str:
    varied = [v for v in pmf.domain if len(v) > 1] or list(pmf.domain)
    first, last = varied[0], varied[-1]
    level = first.levels[0]
    given = f"{Name(first.name)} = {Label(str(level), isinstance(level, int | float))}"
    named, question = shlex.quote(file), shlex.quote(f"P({Name(last.name)} | {given})")
    return f"rejoint ask {named} {question}\nrejoint sample {named} -n 100\nrejoint explore {named}"


@declare(
    "MODEL --data --tables --json +survey +tables",
    option("--title TITLE", "Title of the page; the file name by default."),
    option("-o --output FILE", "The page.", default="report.html"),
)
def command(o: Options) -> None:
    """Write a report: data, empty cells, rank and why, identifiability, fit, classes, dependence.

    One HTML file that fetches nothing: the explorer's page for reading and printing. It has no
    records in it: the model, shares, and the tables that the model was fitted to, if there are any.

    Examples
    --------
      rejoint report patients.rejoint -o report.html
      rejoint report patients.rejoint --data patients.csv --title "Patients" -o report.html
    """
    if o.output != "-" and PurePath(o.output).suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"'{o.output}' should end in .html; print the page for a PDF.")
    check_output(o.output, o.json, signature=b"")
    pmf, _, notes = load_predictor(o.model)
    records, fit = compare_with(o, pmf, notes)
    path = PurePath("Model" if o.model == "-" else o.model)
    plain = print_view(pmf, notes, records, fit, o.title or path.stem, PurePath(o.model).name)
    with open_output(o.output) as file:
        file.write(page(plain).encode())
    if o.json:
        echo_json({"report": o.output})
    elif o.output != "-":
        echo(f"Written: {o.output}.", err=True)
