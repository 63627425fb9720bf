"""Equations as MathML, which browsers show without a script, online and offline."""

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def visit_inline(self: Any, node: Any) -> None:
    self.body.append(convert(node.astext()))
    raise SkipNode


def visit_block(self: Any, node: Any) -> None:
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
