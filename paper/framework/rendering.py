"""Sections as Markdown, HTML and reStructuredText."""

import html
import re
from collections.abc import Sequence

from paper.framework.parts import Figure, Section, Table, Text

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1e21; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #d5d9de; text-align: left;
         vertical-align: top; }
td:first-child { white-space: nowrap; }
.scroll { overflow-x: auto; }
figure { margin: 1rem 0; } figure img { max-width: 100%; }
figcaption { color: #4a5057; font-size: .9rem; }
code { background: #f1f3f5; padding: 0 .2rem; }
"""


def markdown(sections: Sequence[Section], title: str | None = None) -> str:
    """The sections as GitHub's Markdown."""
    blocks = [f"# {title}"] if title else []
    for section in sections:
        blocks.append(f"## {section.title}")
        for part in section.parts:
            if isinstance(part, Text):
                blocks.append(part.words)
            elif isinstance(part, Figure):
                blocks.append(f"![{part.caption}]({part.path})\n\n*{part.caption}*")
            else:
                blocks.append("\n".join(_bars(part)))
    return "\n\n".join(blocks) + "\n"


def _bars(table: Table) -> list[str]:
    rows = [table.head, ["---"] * len(table.head), *table.rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def page(sections: Sequence[Section], title: str) -> str:
    """The sections as one HTML page that needs nothing else but its pictures."""
    blocks = [f"<h1>{_inline(title)}</h1>"]
    for section in sections:
        blocks.append(f"<h2>{_inline(section.title)}</h2>")
        for part in section.parts:
            if isinstance(part, Text):
                blocks.append(f"<p>{_inline(part.words)}</p>")
            elif isinstance(part, Figure):
                caption = html.escape(part.caption, quote=True)
                blocks.append(
                    f'<figure><img src="{part.path}" alt="{caption}">'
                    f"<figcaption>{_inline(part.caption)}</figcaption></figure>"
                )
            else:
                blocks.append(_grid(part))
    body = "\n".join(blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _grid(table: Table) -> str:
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in table.head)
    rows = ["".join(f"<td>{_inline(cell)}</td>" for cell in row) for row in table.rows]
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'


def _inline(words: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words, quote=False))


def restructured(sections: Sequence[Section], title: str) -> str:
    """The sections as a page of Sphinx."""
    blocks = [f"{title}\n{'=' * len(title)}"]
    for section in sections:
        blocks += [f"{section.title}\n{'-' * len(section.title)}"] if section.title else []
        for part in section.parts:
            if isinstance(part, Text):
                blocks.append(_marked(part.words))
            elif isinstance(part, Figure):
                caption = _marked(part.caption)
                blocks.append(f".. figure:: {part.path}\n   :alt: {part.caption}\n\n   {caption}")
            else:
                blocks.append(_listed(part))
    return "\n\n".join(blocks) + "\n"


def _listed(table: Table) -> str:
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (table.head, *table.rows):
        for place, cell in enumerate(row):
            lines.append(f"   {'* -' if place == 0 else '  -'} {_marked(cell)}".rstrip())
    return "\n".join(lines)


def _marked(words: str) -> str:
    codes_apart = re.split(r"`([^`]+)`", words)
    plain = [re.sub(r"([*|\\]|_(?=\W|$))", r"\\\1", part) for part in codes_apart[::2]]
    codes = [f"``{part}``" for part in codes_apart[1::2]] + [""]
    return "".join(a + b for a, b in zip(plain, codes, strict=True))
