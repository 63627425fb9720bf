"""What the report says: data, rank, identifiability, fit, classes, dependence."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import combinations
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint import identifiability
from rejoint.cli.group import in_options
from rejoint.cli.output import clean_label, format_classes
from rejoint.domain.labels import plural
from rejoint.language.query import Label, Name
from rejoint.pmf.entropy import mutual_information
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records

STYLE = """
:root{color-scheme:light dark;--ink:#1f2933;--soft:#5f6b76;--faint:#8a95a0;--paper:#fff;
--line:#e3e7eb;--fill:#3b6ea5;--track:#edf0f3;--mark:#c8611a;--on:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e3e8ed;--soft:#a3afba;--faint:#7d8994;
--paper:#15191e;--line:#2b333b;--fill:#6fa3d8;--track:#262d35;--mark:#ee9a5c;--on:#10151a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
main{max-width:46rem;margin:0 auto;padding:3rem 1.25rem 5rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem;font-weight:650;letter-spacing:-.01em;
overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:3rem 0 .6rem;font-weight:620;padding-top:1.1rem;
border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.6rem 0 .4rem;font-weight:620}
p{margin:.6rem 0}.lead{font-size:1.08rem;color:var(--soft);margin:0}
nav{margin:1.4rem 0 0;font-size:.92rem}nav a{margin-right:1rem;white-space:nowrap}
a{color:var(--fill);text-decoration:none}a:hover{text-decoration:underline}
.scroll{overflow-x:auto;margin:.9rem 0}
table{border-collapse:collapse;font-size:.92rem;width:100%}
th{text-align:left;font-weight:600;color:var(--soft);border-bottom:1px solid var(--line)}
th,td{padding:.28rem .9rem .28rem 0;vertical-align:top}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums}tr+tr td{border-top:1px solid var(--line)}
td{overflow-wrap:break-word}td svg{display:block}
td table{table-layout:fixed;width:24rem}td table td{padding:.05rem .6rem .05rem 0;
border:0!important;overflow-wrap:anywhere}td table td:nth-child(2){width:8.2rem;padding-top:.35rem}
td table td:nth-child(3){width:4rem}
svg{max-width:none;overflow:visible}svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,
sans-serif;fill:var(--ink)}svg .number{fill:var(--soft);font-size:11px}
svg .light{fill:var(--on)}svg .faint{fill:var(--faint)}
.fill,.cell{fill:var(--fill)}.track{fill:var(--track)}.tick,.chosen,.line-fill.c{fill:var(--mark)}
.dot{fill:var(--fill)}.tied{fill:var(--paper);stroke:var(--mark);stroke-width:2}
.line{fill:none;stroke:var(--faint);stroke-width:1.5}.line-fill{fill:var(--faint)}
.note{color:var(--soft);font-size:.92rem}
.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 0;vertical-align:-.05em;
background:var(--fill)}.key.m{width:3px;background:var(--mark);height:1em}
ul{padding-left:1.1rem;margin:.5rem 0}li{margin:.25rem 0}
code,pre{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--track);padding:.7rem .9rem;border-radius:6px;overflow-x:auto}
footer{margin-top:4rem;color:var(--faint);font-size:.85rem}
@media print{nav{display:none}h2{break-after:avoid}svg,tr{break-inside:avoid}}
"""


class Section(NamedTuple):
    """A title, the name of its place, and what stands below, as HTML."""

    title: str
    place: str
    body: str


def page(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """The whole page; title and lead are text, the sections HTML.

    Examples
    --------
    >>> text = page("A & B", "two variables", [Section("Fit", "fit", "<p>good</p>")], "")
    >>> "A &amp; B" in text, "<script" in text
    (True, False)
    """
    links = " ".join(f'<a href="#{s.place}">{escape(s.title)}</a>' for s in sections)
    parts = "".join(
        f'<section id="{s.place}"><h2>{escape(s.title)}</h2>{s.body}</section>' for s in sections
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n<nav>{links}</nav>\n'
        f"{parts}\n<footer>{escape(footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A text as a paragraph."""
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{escape(text)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of HTML cells; the columns of ``numbers`` stand on the right.

    Examples
    --------
    >>> "<td class='n'>1</td>" in table(["a"], [["1"]], [0])
    True
    """

    def cell(tag: str, place: int, text: str) -> str:
        kind = " class='n'" if place in numbers else ""
        return f"<{tag}{kind}>{text}</{tag}>"

    top = "".join(cell("th", k, escape(name)) for k, name in enumerate(head))
    body = "".join(
        f"<tr>{''.join(cell('td', k, text) for k, text in enumerate(row))}</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


_ROW = 18  # height of a line of text


def _svg(width: float, height: float, label: str, inside: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escape(label)}">{"".join(inside)}</svg>'
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str, more: str = "") -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{height:.2f}" '
        f'class="{kind}"{more}/>'
    )


def bar(share: float, width: int = 120, seen: float | None = None) -> str:
    """A bar for a share, with a tick where the data have it.

    Examples
    --------
    >>> bar(0.5, 100).count("<rect")
    2
    """
    parts = [_box(0, 2, width, 10, "track"), _box(0, 2, share * width, 10, "fill")]
    if seen is not None and isfinite(seen):
        parts.append(_box(seen * width - 1, 0, 2, 14, "tick"))
    return _svg(width, 14, f"{share:.1%}", parts)


def paired_bars(rows: Sequence[tuple[str, float, float | None]], width: int = 640) -> str:
    """One line a row: a bar for the first number, a tick for the second."""
    top = max([value for _, a, b in rows for value in (a, b or 0.0)], default=0.0) or 1.0
    names = min(max((len(name) for name, _, _ in rows), default=0) * 7 + 12, 300)
    room = width - names - 60
    parts = []
    for k, (name, value, other) in enumerate(rows):
        y = k * (_ROW + 4)
        parts.append(_text(0, y + 14, _cut(name, 42)))
        parts.append(_box(names, y + 4, value / top * room, 12, "fill"))
        if other is not None:
            parts.append(_box(names + other / top * room - 1, y + 1, 2, 18, "tick"))
        end = names + max(value, other or 0.0) / top * room + 8
        parts.append(_text(end, y + 14, f"{value:.3f}", "number"))
    return _svg(width, len(rows) * (_ROW + 4) + 2, "Distances of tables", parts)


def curve(found: Mapping[str, Any], width: int = 640, height: int = 240) -> str:
    """Score against rank, with the error of the difference from the best.

    Examples
    --------
    >>> shown = {"rank": 2, "ranks": [1, 2], "scores": [-2.0, -1.0], "errors": [0.1, 0.0]}
    >>> curve({**shown, "tied": [2]}).count("<circle")
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
    parts = [f'<polyline points="{line}" class="line"/>']
    for value in (low + (high - low) * part for part in (0.1, 0.5, 0.9)):
        parts.append(_text(left - 14, y(value) + 4, f"{value:.4g}", "number", "end"))
    for rank, score, error in zip(ranks, scores, errors, strict=True):
        kind = "chosen" if rank == found["rank"] else "tied" if rank in found["tied"] else "dot"
        height_of = y(score - error) - y(score + error)
        parts.append(_box(x(rank) - 0.75, y(score + error), 1.5, height_of, "line-fill"))
        parts.append(f'<circle cx="{x(rank):.1f}" cy="{y(score):.1f}" r="5" class="{kind}"/>')
        parts.append(_text(x(rank), bottom + 20, str(rank), "number", "middle"))
    parts.append(_text(right, height - 2, "classes", "faint", "end"))
    return _svg(width, height, "Score of each number of classes", parts)


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[float]],
    *,
    label: str,
    breaks: Sequence[int] = (),
    size: int = 34,
) -> str:
    """Cells between 0 and 1 as shades, with their numbers; a gap before each row of ``breaks``.

    Examples
    --------
    >>> heat_map(["a"], ["x", "y"], [[0.2, 0.8]], label="shares").count("<rect")
    2
    """
    names = min(max((len(name) for name in rows), default=0) * 7 + 12, 280)
    parts = []
    down = 22.0
    for k, name in enumerate(columns):
        parts.append(_text(names + (k + 0.5) * size, 14, name, "number", "middle"))
    for r, name in enumerate(rows):
        down += 6 if r in breaks else 0
        parts.append(_text(names - 8, down + 14, _cut(name, 40), "", "end"))
        for k, value in enumerate(cells[r]):
            shade = f' style="fill-opacity:{value:.3f}"'
            parts.append(_box(names + k * size, down, size - 2, _ROW, "cell", shade))
            kind = "number light" if value > 0.55 else "number"
            text = f"{100 * value:.0f}" if value >= 0.005 else ""
            parts.append(_text(names + k * size + size / 2 - 1, down + 13, text, kind, "middle"))
        down += _ROW + 2
    return _svg(names + len(columns) * size + 4, down + 2, label, parts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


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
        [escape(clean_label(v.name, 40)), v.kind, str(len(v)), _levels(pmf, n, records)]
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
        f"<tr><td>{escape(clean_label(variable.levels[i], 32))}</td><td>{bar(shares[i], 120, seen[i])}"
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
    rows = [[escape(clean_label(name, 40)), bar(share), f"{share:.1%}"] for name, share in worst]
    right = (
        "A fit to records is right if cells are missing at random: whether one is empty may "
        "depend on what is seen, not on what it would hold."
    )
    return paragraph(said) + table(["variable", "", "empty"], rows, [2]) + paragraph(right, "note")


def _rank(pmf: LowRankPMF, notes: Notes) -> str:
    said = paragraph(f"The model has {format_classes(pmf.rank)}.")
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
        [title, escape(clean_label(names[f], 30)) if names else "", bar(float(pmf.weights[f])),
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
            level = clean_label(pmf.domain[n].levels[i], 20)
            labels.append(f"{clean_label(pmf.domain.names[n], 20)} = {level}")
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
        text = f"{clean_label(variable.name, 24)} = {clean_label(variable.levels[i], 24)}"
        found.append((float(apart[i]), f"{text} ({pmf.factors[n][i, f]:.0%})"))
    best = sorted(found, reverse=True)[:3]
    return escape("; ".join(text for gap, text in best if gap > 0.02)) or "like the whole"


def _dependence(pmf: LowRankPMF) -> str:
    """How much one variable says about another, as a share of what there is to say."""
    if len(pmf.domain) < 2 or len(pmf.domain) > VARIABLES or pmf.rank > 2_000:
        return ""
    names = [clean_label(name, 30) for name in pmf.domain.names]
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
    return shlex.quote(text)
