"""Pictures of the report as SVG, written by hand: they take the page's colours, light and dark."""

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

__all__ = ["bar", "curve", "heat_map", "paired_bars"]

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
