"""What the report says: data, rank, identifiability, fit, classes, dependence."""

from collections.abc import Iterator, Mapping
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.cli.display import classes, clean
from rejoint.cli.page import Section, paragraph, table
from rejoint.cli.pictures import bar, curve, heat_map, paired_bars
from rejoint.cli.wording import in_options
from rejoint.domain.labels import plural
from rejoint.pmf import LowRankPMF
from rejoint.pmf.information import mutual_information
from rejoint.records import Records

__all__ = ["sections"]

Notes = Mapping[str, Any]

#: What is drawn at the most: a page shall stay readable.
LEVELS, CLASSES, VARIABLES, TABLES = 12, 16, 24, 20


def sections(
    pmf: LowRankPMF, notes: Notes, records: Records | None, fit: dict[str, Any] | None, file: str
) -> list[Section]:
    """All sections that there is something to say in.

    Examples
    --------
    >>> import rejoint as rj
    >>> [s.title for s in sections(rj.datasets.asia(), {}, None, None, "asia.rejoint")]
    ['Data', 'Number of classes', 'Identifiability', 'Classes', 'Dependence', 'Ask it']
    """
    found = [
        Section("Data", "data", _data(pmf, notes, records)),
        Section("Empty cells", "empty", _empty(pmf, notes, records)),
        Section("Number of classes", "rank", _rank(pmf, notes)),
        Section("Identifiability", "identifiability", _identifiability(pmf, notes)),
        Section("Fit to tables", "fit", _fit(fit)),
        Section("Classes", "classes", _classes(pmf, notes)),
        Section("Dependence", "dependence", _dependence(pmf)),
        Section("Ask it", "ask", _ask(pmf, file)),
    ]
    return [section for section in found if section.body]


def _data(pmf: LowRankPMF, notes: Notes, records: Records | None) -> str:
    said = []
    if records is not None:
        said.append(f"{plural(len(records), 'record')} are shown beside the model.")
    elif notes.get("records"):
        said.append(f"The model rests on {notes['records']:,.0f} records.")
    if notes.get("tables"):
        said.append(f"It was fitted to {plural(len(notes['tables']), 'table')} of them.")
    said.append(
        f"{plural(len(pmf.domain), 'variable')}, {_power(pmf)} possible combinations, "
        f"{plural(pmf.rank * (sum(pmf.domain.shape) - len(pmf.domain) + 1) - 1, 'parameter')}."
    )
    key = '<p class="note"><span class="key"></span>model'
    key += ' <span class="key m"></span>records</p>' if records is not None else "</p>"
    rows = [
        [escape(clean(v.name, 40)), v.kind, str(len(v)), _levels(pmf, n, records)]
        for n, v in enumerate(pmf.domain)
    ]
    return paragraph(" ".join(said)) + key + table(["variable", "kind", "levels", ""], rows, [2])


def _power(pmf: LowRankPMF) -> str:
    cells = 1
    for levels in pmf.domain.shape:
        cells *= levels
    return f"{cells:,}" if cells < 1e7 else f"10^{len(str(cells)) - 1}"


def _levels(pmf: LowRankPMF, n: int, records: Records | None) -> str:
    """The levels of a variable, each with its bar."""
    variable, shares = pmf.domain[n], pmf.marginal([pmf.domain.names[n]])
    seen: Any = [None] * len(variable)
    if records is not None and (records.codes[:, n] >= 0).any():
        seen = records.marginal([variable.name])
    lines = [
        f"<tr><td>{escape(clean(variable.levels[i], 32))}</td><td>{bar(shares[i], 120, seen[i])}"
        f"</td><td class='n'>{shares[i]:.1%}</td></tr>"
        for i in _shown_levels(pmf, n)
    ]
    more = len(variable) - LEVELS
    tail = f"<tr><td>and {more:,} more</td></tr>" if more > 0 else ""
    return f"<table>{''.join(lines)}{tail}</table>"


def _shown_levels(pmf: LowRankPMF, n: int) -> list[int]:
    """The levels that there is room for: the most probable, or the first where order matters."""
    size = len(pmf.domain[n])
    if size <= LEVELS or pmf.domain[n].kind != "nominal":
        return list(range(min(size, LEVELS)))
    shares = pmf.marginal([pmf.domain.names[n]])
    return [int(i) for i in np.argsort(-shares, kind="stable")[:LEVELS]]


def _empty(pmf: LowRankPMF, notes: Notes, records: Records | None) -> str:
    if records is not None:
        gone = dict(zip(records.names, (records.codes < 0).mean(axis=0), strict=True))
    else:
        gone = {name: float(share) for name, share in (notes.get("missing") or {}).items()}
    if not gone:
        return ""
    if not any(gone.values()):
        return paragraph("No cell is empty.")
    said = f"{np.mean(list(gone.values())):.1%} of the cells are empty."
    if records is not None:
        whole = float((records.codes >= 0).all(axis=1).mean())
        kinds = len(np.unique(records.codes < 0, axis=0))
        said += f" {whole:.1%} of the records are complete; {plural(kinds, 'pattern')} of holes."
    worst = sorted(gone.items(), key=lambda item: -item[1])[:VARIABLES]
    rows = [[escape(clean(name, 40)), bar(share), f"{share:.1%}"] for name, share in worst]
    right = (
        "A fit to records is right if cells are missing at random: whether one is empty may "
        "depend on what is seen, not on what it would hold."
    )
    return paragraph(said) + table(["variable", "", "empty"], rows, [2]) + paragraph(right, "note")


def _rank(pmf: LowRankPMF, notes: Notes) -> str:
    said = paragraph(f"The model has {classes(pmf.rank)}.")
    for key in ("choice", "stop"):
        if notes.get(key):
            said += paragraph(in_options(str(notes[key])))
    found = notes.get("rank_curve")
    if isinstance(found, dict) and len(found.get("ranks", ())) > 1:
        said += f'<div class="scroll">{curve(found)}</div>' + paragraph(
            "The higher the better. The full dot is the choice; rings cannot be told apart from "
            "it; lines are standard errors of the difference.",
            "note",
        )
    return said


def _identifiability(pmf: LowRankPMF, notes: Notes) -> str:
    """Whether tables pin the model down: those it was fitted to, or all of three variables."""
    from rejoint import identifiability

    if len(pmf.domain) < 3 or pmf.rank * sum(pmf.domain.shape) > 3_000:
        return ""
    asked: dict[str, Any] = {"order": 3}
    where = "all tables of three variables"
    if notes.get("tables"):
        asked = {"subsets": [tuple(entry["names"]) for entry in notes["tables"]]}
        where = "the tables that it was fitted to"
    said = identifiability.report(pmf.domain, rank=pmf.rank, **asked)
    found = identifiability.certify(pmf, **asked)
    body = paragraph(f"Could another model of the same rank have {where}?")
    body += f"<p><strong>{escape(in_options(found.verdict))}</strong></p>"
    return body + paragraph(f"In general: {in_options(said.verdict)}")


def _fit(fit: dict[str, Any] | None) -> str:
    if not fit or not fit["tables"]:
        return ""
    shown = fit["tables"][:TABLES]
    rows = [(", ".join(t["names"]), float(t["distance"]), t["chance"]) for t in shown]
    known = [t for t in fit["tables"] if t["chance"] is not None]
    said = f"The tables that are furthest off, of {fit['checked']:,} compared, worst first."
    if known:
        over = sum(t["distance"] > 2.0 * t["chance"] for t in known)
        listed = plural(len(known), "table")
        said += f" Of the worst {listed}, {over} are off by more than twice what chance would do."
    key = (
        '<p class="note"><span class="key"></span>share of the mass in the wrong cells '
        '<span class="key m"></span>what chance alone would make it</p>'
    )
    return paragraph(said) + key + f'<div class="scroll">{paired_bars(rows)}</div>'


def _classes(pmf: LowRankPMF, notes: Notes) -> str:
    order = np.argsort(-pmf.weights, kind="stable")[:CLASSES]
    names = notes.get("class_names")
    titles = [str(f + 1) for f in range(len(order))]
    rows = [
        [title, escape(clean(names[f], 30)) if names else "", bar(float(pmf.weights[f])),
         f"{pmf.weights[f]:.1%}", _typical(pmf, int(f))]
        for title, f in zip(titles, order, strict=True)
    ]  # fmt: skip
    head = ["class", "name" if names else "", "", "weight", "typical"]
    body = table(head, rows, [0, 3])
    shown = list(range(len(pmf.domain)))[:VARIABLES]
    labels: list[str] = []
    cells: list[list[float]] = []
    breaks: list[int] = []
    for n in shown:
        breaks.append(len(labels))
        for i in _shown_levels(pmf, n):
            level = clean(pmf.domain[n].levels[i], 20)
            labels.append(f"{clean(pmf.domain.names[n], 20)} = {level}")
            cells.append([float(pmf.factors[n][i, f]) for f in order])
    body += paragraph("Percent of each class that has a level:", "note")
    label = "Class profiles"
    body += (
        f'<div class="scroll">{heat_map(labels, titles, cells, label=label, breaks=breaks)}</div>'
    )
    left = pmf.rank - len(order)
    return body + (paragraph(f"{left:,} smaller classes are not shown.", "note") if left else "")


def _typical(pmf: LowRankPMF, f: int) -> str:
    """The levels by which a class differs most from the whole."""
    found = []
    for n, variable in enumerate(pmf.domain):
        apart = pmf.factors[n][:, f] - pmf.factors[n] @ pmf.weights
        i = int(np.argmax(apart))
        text = f"{clean(variable.name, 24)} = {clean(variable.levels[i], 24)}"
        found.append((float(apart[i]), f"{text} ({pmf.factors[n][i, f]:.0%})"))
    best = sorted(found, reverse=True)[:3]
    return escape("; ".join(text for gap, text in best if gap > 0.02)) or "like the whole"


def _dependence(pmf: LowRankPMF) -> str:
    """How much one variable says about another, as a share of what there is to say."""
    if len(pmf.domain) < 2 or len(pmf.domain) > VARIABLES or pmf.rank > 2_000:
        return ""
    names = [clean(name, 30) for name in pmf.domain.names]
    shares = _shared(pmf)
    numbers = [str(k + 1) for k in range(len(names))]
    rows = [f"{name}  {k}" for name, k in zip(names, numbers, strict=True)]
    picture = heat_map(rows, numbers, shares.tolist(), label="Dependence of pairs", size=30)
    said = paragraph(
        "Mutual information of each pair, in percent of the smaller of their entropies: 0 where "
        "they are independent, 100 where one determines the other."
    )
    return said + f'<div class="scroll">{picture}</div>' + "".join(_strongest(names, shares))


def _shared(pmf: LowRankPMF) -> NDArray[np.float64]:
    size = len(pmf.domain)
    shares = np.zeros((size, size))
    entropy = []
    for n in range(size):
        p = pmf.marginal([pmf.domain.names[n]])
        entropy.append(float(-(p[p > 0] * np.log(p[p > 0])).sum()))
    for i, j in combinations(range(size), 2):
        least = min(entropy[i], entropy[j])
        told = mutual_information(pmf.weights, pmf.factors, (i,), (j,)).value
        shares[i, j] = shares[j, i] = np.clip(told / least if least > 0 else 0.0, 0.0, 1.0)
    return shares


def _strongest(names: list[str], shares: NDArray[np.float64]) -> Iterator[str]:
    pairs = sorted(combinations(range(len(names)), 2), key=lambda p: -shares[p])[:3]
    told = [f"{names[i]} and {names[j]} ({shares[i, j]:.0%})" for i, j in pairs if shares[i, j] > 0]
    if told:
        yield paragraph(f"Strongest: {', '.join(told)}.", "note")


def _ask(pmf: LowRankPMF, file: str) -> str:
    from rejoint.language.query import Label, Name

    varied = [v for v in pmf.domain if len(v) > 1] or list(pmf.domain)
    first, last = varied[0], varied[-1]
    level = first.levels[0]
    given = f"{Name(first.name)} = {Label(str(level), isinstance(level, int | float))}"
    lines = [
        f"rejoint ask {_quoted(file)} {_quoted(f'P({Name(last.name)} | {given})')}",
        f"rejoint sample {_quoted(file)} -n 100",
        f"rejoint explore {_quoted(file)}",
    ]
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
