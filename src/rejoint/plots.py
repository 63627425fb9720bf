"""Plots of models and fits; every function takes an ``ax`` and returns it.

matplotlib comes with the extra ``plots`` and is imported when a plot is drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.text import clean_label, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rejoint.rank.selection import Selection

Query = tuple[Mapping[str, Any], Mapping[str, Any]]

_SCORES = {
    "heldout": "held-out log-likelihood per record",
    "bic": "-BIC / 2 per record",
    "aic": "-AIC / 2 per record",
    "abic": "-aBIC / 2 per record",
    "bic of tables": "-BIC / 2 of the tables per record",
    "evidence": "bound of the log-evidence per record",
}
_COLORS = ("#1b3a57", "#e0803a", "#7fa99b", "#b8b8b8")


def posteriors(
    models: Mapping[str, LowRankPMF], queries: Iterable[Query], *, ax: "Axes | None" = None
) -> "Axes":
    """Plot bars that compare the answers of several models to the same questions.

    Parameters
    ----------
    models : mapping of str to LowRankPMF
        Models by their names in the legend.
    queries : iterable of (event, given)
        Two mappings of variables to levels, as :meth:`LowRankPMF.prob` takes them.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> ax = rj.plots.posteriors({"true": p}, [({"lung": "yes"}, {"smoke": "yes"})])
    >>> ax.get_xlabel()
    'probability'
    """
    asked = list(queries)
    ax = _axes(ax, height=0.8 + len(asked) * (0.15 + 0.22 * len(models)))
    thickness = 0.8 / max(len(models), 1)
    for row, (name, pmf) in enumerate(models.items()):
        answers = [pmf.prob(event, given=given) for event, given in asked]
        places = np.arange(len(asked)) + (row - (len(models) - 1) / 2) * thickness
        color = _COLORS[row % len(_COLORS)]
        bars = ax.barh(places, answers, height=0.9 * thickness, label=_label(name), color=color)
        ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=8)
    ax.set_yticks(range(len(asked)), [_label(describe(event, given)) for event, given in asked])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.12)
    ax.set_xlabel("probability")
    ax.legend(frameon=False, loc="lower right")
    return _plain(ax)


def describe(event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> str:
    """Return a question in the usual notation.

    Parameters
    ----------
    event, given : mapping
        Variables and their levels.

    Returns
    -------
    str

    Examples
    --------
    >>> describe({"lung": "yes"}, {"smoke": "yes", "dysp": ["yes", "no"]})
    'P(lung = yes | smoke = yes, dysp in yes, no)'
    """

    def part(name: str, level: Any) -> str:
        if isinstance(level, np.ndarray):
            return f"{name} ~ soft"
        if isinstance(level, list | tuple | set):
            return f"{name} in {', '.join(map(str, level))}"
        return f"{name} = {level}"

    sides = [", ".join(part(*item) for item in side.items()) for side in (event, given or {})]
    return f"P({' | '.join(side for side in sides if side)})"


def factors(
    pmf: LowRankPMF, variables: Sequence[str] | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Plot a heat map of the probability of each level within each hidden class.

    Columns are classes, largest first, with their number and weight above; class 1 is at position
    0 of ``pmf.weights``. Rows are levels, grouped by variable.

    Parameters
    ----------
    pmf : LowRankPMF
        The model.
    variables : sequence of str, optional
        The variables to show; all by default.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import rejoint as rj
    >>> ax = rj.plots.factors(rj.datasets.asia(), ["lung", "xray"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['lung = yes', 'lung = no', 'xray = yes', 'xray = no']
    """
    chosen = pmf.domain.indices(pmf.domain.names if variables is None else variables)
    order = np.argsort(-pmf.weights, kind="stable")
    profile = np.concatenate([pmf.factors[n] for n in chosen])[:, order]
    shown = [pmf.domain[n] for n in chosen]
    ax = _axes(ax, height=1.0 + 0.22 * len(profile))
    labels = [_label(f"{v.name} = {level}") for v in shown for level in v.levels]
    image = ax.imshow(profile, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    ax.set_yticks(range(len(profile)), labels)
    ax.set_xticks(range(pmf.rank), [f"{f + 1}\n{_short(pmf.weights[f])}" for f in order])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("class and its weight")
    for edge in np.cumsum([len(v) for v in shown])[:-1]:
        ax.axhline(edge - 0.5, color="white", linewidth=2)
    ax.figure.colorbar(image, ax=ax, label="probability within the class")
    ax.tick_params(length=0)
    return ax


def blocks(pmf: LowRankPMF, *, ax: "Axes | None" = None) -> "Axes":
    """Plot how much the variables of each block tell about each other beyond the classes.

    Bars are bits: the total correlation of the variables within a class, on average over classes.

    Parameters
    ----------
    pmf : LowRankPMF
        The model; see :attr:`LowRankPMF.blocks`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np, rejoint as rj
    >>> a = np.random.default_rng(0).integers(0, 4, 2000)
    >>> records = rj.Records.of({"a": a, "copy": a % 2})
    >>> result = rj.estimate(records, 1, blocks=[["a", "copy"]], random_state=0)
    >>> [label.get_text() for label in rj.plots.blocks(result.pmf).get_yticklabels()]
    ['a, copy']
    """
    mixture = pmf.mixture
    bits = [block.information(mixture.weights) / np.log(2) for block in mixture._blocks]
    order = np.argsort(bits)
    ax = _axes(ax, height=1.0 + 0.3 * len(bits))
    ax.barh(range(len(bits)), np.array(bits)[order])
    ax.set_yticks(range(len(bits)), [_label(", ".join(pmf.blocks[k])) for k in order])
    ax.set_xlabel("bits beyond the classes")
    return ax


def history(result: FitResult, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the objective after every step, one line per start; the best start is dark.

    Parameters
    ----------
    result : FitResult
        Result of a fit.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.from_pmf(rj.datasets.asia(), order=3)
    >>> ax = rj.plots.history(rj.factorize(tables, rank=2, n_init=1, random_state=0))
    >>> ax.get_xlabel(), ax.get_yscale()
    ('step', 'log')
    """
    ax = _axes(ax, height=3.6)
    starts: dict[int, list[float]] = {}
    for record in result.history:
        starts.setdefault(record.start, []).append(record.objective)
    best = min(starts, key=lambda start: starts[start][-1])
    for start in sorted(starts, key=lambda start: start == best):
        dark = start == best
        # An exact fit has objective zero, which a log axis cannot show.
        ax.plot(
            np.maximum(starts[start], 1e-32),
            color=_COLORS[0] if dark else _COLORS[3],
            linewidth=2.0 if dark else 1.0,
            label=f"best of {plural(len(starts), 'start')}" if dark else None,
        )
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("objective")
    ax.legend(frameon=False)
    return _plain(ax)


def rank_curve(selection: "Selection", *, ax: "Axes | None" = None) -> "Axes":
    """Plot score against rank; the chosen rank and its ties are highlighted.

    Bars are standard errors of the difference from the rank chosen; for BIC and evidence, the
    difference that is considered negligible. The axis shows the neighborhood of the rank chosen;
    the scores of much smaller ranks lie below it.

    Parameters
    ----------
    selection : Selection
        Result of :func:`rejoint.rank.select`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(500, random_state=0)
    >>> ax = rj.plots.rank_curve(rj.rank.select(data, [1, 2, 3], criterion="bic", random_state=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rank', '-BIC / 2 per record')
    """
    ax = _axes(ax, height=3.6)
    ranks, scores = np.array(selection.ranks), np.array(selection.scores)
    errors = np.array(selection.errors)
    tied = np.isin(ranks, selection.tied)
    ax.plot(ranks, scores, color=_COLORS[3], zorder=1)
    for group, color, label in (
        (~tied, _COLORS[0], None),
        (tied, _COLORS[1], "cannot be distinguished" if tied.sum() > 1 else None),
    ):
        if group.any():
            bars = (ranks[group], scores[group], errors[group])
            ax.errorbar(*bars, fmt="o", color=color, capsize=3, label=label)
    ax.axvline(selection.rank, color=_COLORS[1], linewidth=1, linestyle=":", zorder=0)
    best = int(np.flatnonzero(ranks == selection.rank)[0])
    near = slice(max(best - 1, 0), None)
    low, high = (scores - errors)[near].min(), scores[best] + errors[near].max()
    if np.isfinite(high - low) and high > low:
        ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
    ax.set_xticks(ranks)
    ax.set_xlabel("rank")
    ax.set_ylabel(_SCORES.get(selection.criterion, "score"))
    if tied.sum() > 1:
        ax.legend(frameon=False)
    return _plain(ax)


def _short(share: float) -> str:
    return f"{share:.2f}" if share >= 0.005 else "<.01"


def _label(text: str) -> str:
    """Return text as a picture can show it: no control characters, no formulas between dollars."""
    return clean_label(text, 200).replace("$", r"\$")


def _axes(ax: "Axes | None", height: float) -> "Axes":
    """Return ``ax`` itself, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which is not installed: pip install 'rejoint[plots]'."
        ) from error
    return pyplot.subplots(figsize=(6.4, height), layout="constrained")[1]


def _plain(ax: "Axes") -> "Axes":
    """Remove the frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
