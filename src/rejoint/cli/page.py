"""The report as a page: one file, no scripts, nothing fetched, light and dark."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["Section", "page", "paragraph", "table"]

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
