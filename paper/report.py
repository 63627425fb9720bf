"""One report of all experiments: Markdown, HTML, and pages of the documentation."""

import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from paper import conclusions
from paper.beside import RULE
from paper.framework import Done, Experiment, Glance, Section, Table, Text, Unavailable
from paper.framework.rendering import markdown, page, restructured
from paper.framework.runs import length, words

#: In the order of the paper.
NAMES = (
    "section2",
    "proposition1",
    "figure6",
    "table1",
    "table2",
    "table3",
    "fewer_tables",
    "recovery",
    "table4",
    "figure7",
    "figure8",
    "table5",
    "table6",
    "table7",
    "beyond",
)
TITLE = "The paper, reproduced"


def experiments() -> list[Experiment]:
    """Every script's experiment."""
    return [import_module(f"paper.{name}").EXPERIMENT for name in NAMES]


def build(results: Path, folder: Path) -> None:
    """Write the report from the cells that are there."""
    found = {}
    for experiment in experiments():
        try:
            done = experiment.done(results)
        except Unavailable:
            continue
        if done.cells:
            found[experiment.name] = experiment, done
    if not found:
        print("No cell is done yet: there is nothing to report. Run make paper.", file=sys.stderr)
        return
    folder.mkdir(parents=True, exist_ok=True)
    shown = {n: with_times(e, done, e.section(done, folder)) for n, (e, done) in found.items()}
    every = {name: done for name, (_, done) in found.items()}
    lines = [line for experiment, done in found.values() for line in experiment.glances(done)]
    last = {"conclusions": conclusions.section(every)}
    last |= {"beyond": shown.pop("beyond")} if "beyond" in shown else {}
    first = [summary(every, lines), introduction(every, words(results)), *shown.values()]
    (folder / "report.md").write_text(markdown([*first, *last.values()], TITLE), "utf-8")
    (folder / "report.html").write_text(page([*first, *last.values()], TITLE), "utf-8")
    further = "\n.. toctree::\n   :maxdepth: 1\n\n   conclusions\n   beyond\n"
    (folder / "index.rst").write_text(restructured(first, TITLE) + further, "utf-8")
    for name, section in last.items():
        text = restructured([Section("", section.parts)], section.title)
        (folder / f"{name}.rst").write_text(text, "utf-8")


def with_times(experiment: Experiment, done: Done, section: Section) -> Section:
    """The section with a line on how it was made."""
    lacks = f"; {done.wanted - len(done)} cells are not done yet" if len(done) < done.wanted else ""
    text = (
        f"Made by `python -m paper.{experiment.name}`: {len(done)} cells, "
        f"{length(done.seconds)} of one processor{lacks}."
    )
    return Section(section.title, [*section.parts, Text(text)])


def summary(found: dict[str, Done], lines: Sequence[Glance]) -> Section:
    """The first page: what came out as printed, what lower or higher, and why."""
    numbers = conclusions.tally(found)
    verdicts = [[name, str(len(n)), ", ".join(n)] for name, n in numbers.items()]
    head = ["printed numbers", "as printed", "lower (better)", "higher", "why"]
    rows = [[g.what, *map(str, (g.as_printed, g.lower, g.higher)), g.why] for g in lines]
    parts = [
        Text(
            f"The paper draws {len(conclusions.CONCLUSIONS)} conclusions. What the runs here say "
            f"of "
            "them, each by a rule on numbers (see the page of conclusions for every one):"
        ),
        Table(["verdict", "conclusions", "their numbers"], verdicts),
        Text("Every printed number beside what came out here:"),
        Table(head, rows),
        Text(f"{RULE} Splits of one data set overlap, so that the rule is strict."),
    ]
    return Section("In one minute", parts)


def introduction(found: dict[str, Done], run: str) -> Section:
    """What this is, what made it, and how long it took."""
    every = Done([cell for done in found.values() for cell in done], 0)
    rows = [[name, version] for name, version in every.versions.items()]
    rows.append(["machine", f"{platform.machine()}, {os.cpu_count()} processors"])
    return Section("How this was made", parts_of(rows, length(every.seconds), run))


def parts_of(rows: Sequence[Sequence[str]], total: str, run: str) -> list[Text | Table]:
    """Words and versions."""
    return [
        Text(
            'Every table and figure of N. Kargas, N. D. Sidiropoulos, X. Fu, "Tensors, Learning, '
            "and 'Kolmogorov Extension' for Finite-alphabet Random Vectors\", IEEE Transactions on "
            "Signal Processing 66 (18), 2018: printed and reproduced values side by side, and the "
            "reason where they differ. `make paper` runs all of it and writes this report; what "
            "is finished is kept, an interrupted run goes on where it was. `make paper-fast` runs "
            "a small part of each and checks it; `python -m paper.table5 --again "
            "method=JointClassifier` runs the cells of one row again. Seeds are said in each "
            "section: with the same "
            "versions the numbers come out the same."
        ),
        Text(f"All cells together took {total} of one processor.{run}"),
        Table(["made with", ""], rows),
    ]
