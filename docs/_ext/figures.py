"""Figures of ``benchmarks/figures.json`` in the text: included, not copied.

The role ``figure`` takes ``models/intervals held`` and prints the stored figure, or
``0.90 <models/intervals held>`` and is an error where that is not what is stored.
``.. figures:: fits raw`` is a table of the groups named, with the commit and the date of the run.
"""

from typing import Any

from docutils import nodes, statemachine
from sphinx.util.docutils import SphinxDirective
from tools import stored_figures


def role(name: str, raw: str, text: str, line: int, inliner: Any, *rest: Any) -> Any:
    try:
        return [nodes.inline(raw, stored_figures.shown(text), classes=["figure-value"])], []
    except ValueError as error:
        message = inliner.reporter.error(str(error), line=line)
        return [inliner.problematic(raw, raw, message)], [message]


class FigureTable(SphinxDirective):
    """A table of some groups of figures."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(stored_figures.STORE))
        lines = []
        for group in self.arguments[0].split():
            run = stored_figures.stored()[group]
            title = f"{group}, commit {run['commit']}, {run['date']}"
            lines += [f".. list-table:: {title}", "    :header-rows: 1", ""]
            lines += ["    * - figure", "      - value"]
            for name, value in run["figures"].items():
                lines += [f"    * - {name}", f"      - {value:.4g}"]
            lines.append("")
        node = nodes.Element()
        self.state.nested_parse(statemachine.StringList(lines, "figures.json"), 0, node)
        return node.children


def setup(app: Any) -> dict[str, bool]:
    app.add_role("figure", role)
    app.add_directive("figures", FigureTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
