"""``rejoint compare``: how far apart two models are, and where."""

from itertools import combinations
from typing import Any

import click
import numpy as np

from rejoint import metrics
from rejoint.cli import options
from rejoint.cli.group import EXIT_FAR, echo
from rejoint.cli.options import load
from rejoint.cli.output import echo_json, show_table
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_number, plural

EXAMPLES = """\b
Examples:
  rejoint compare patients.rejoint lung.rejoint
  rejoint compare patients.rejoint lung.rejoint --within 0.9 --json"""

_PAIRS = 500  # of variables that are compared


@click.command("compare", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.argument("other", metavar="OTHER")
@options.within("Exit with code 4 if their total variation is larger.")
@options.seed
@options.as_json
def command(model: str, other: str, within: float | None, seed: int, as_json: bool) -> None:
    """Compare two models, on the variables they share: distances of the joints and of tables.

    Total variation is the largest difference in the probability of any event. Joints of more than
    a million cells are compared by drawing records, with a standard error.
    """
    first, second = _shared(load(model), load(other))
    found: dict[str, Any] = {
        "total_variation": metrics.total_variation(first, second, random_state=seed),
        "kl": metrics.kl(first, second, random_state=seed),
        "kl_reversed": metrics.kl(second, first, random_state=seed),
        "relative_error": metrics.tensor_error(first, second),
    }
    if first.rank == second.rank:
        found["factor_error"] = metrics.factor_error(first, second)
    drawn = {name: getattr(value, "standard_error", 0.0) for name, value in found.items()}
    errors = {f"{name}_standard_error": error for name, error in drawn.items() if error}
    worst = _worst(first, second)
    if as_json:
        ranks = {"rank": first.rank, "other_rank": second.rank}
        echo_json({**ranks, **found, **errors, "pairs": worst})
    else:
        echo(f"Rank {first.rank} and rank {second.rank}")
        _show(found, drawn, worst)
    if within is not None and found["total_variation"] > within:
        echo(f"Total variation is above {within:g} (--within).", err=True)
        raise click.exceptions.Exit(EXIT_FAR)


def _shared(first: LowRankPMF, second: LowRankPMF) -> tuple[LowRankPMF, LowRankPMF]:
    """Both models, of the variables that they share, with the same levels in the same order."""
    shared = [name for name in first.domain.names if name in second.domain]
    if not shared:
        raise ValueError("The models have no variable in common: there is nothing to compare.")
    left = len(first.domain) + len(second.domain) - 2 * len(shared)
    if left:
        echo(f"Left out: {plural(left, 'variable')} of one model only.", err=True)
    first = first.project(shared)
    return first, second.project(shared).align(first.domain)


def _worst(first: LowRankPMF, second: LowRankPMF, most: int = 10) -> list[dict[str, Any]]:
    """Pairs of variables whose tables differ most."""
    pairs: list[Any] = list(combinations(first.domain.names, 2))
    pairs = pairs or [(name,) for name in first.domain.names]
    if len(pairs) > _PAIRS:
        chosen = np.random.default_rng(0).choice(len(pairs), _PAIRS, replace=False)
        pairs = [pairs[i] for i in sorted(chosen)]
    found: list[dict[str, Any]] = [
        {
            "names": list(pair),
            "distance": float(np.abs(first.marginal(pair) - second.marginal(pair)).sum() / 2),
        }
        for pair in pairs
    ]
    return sorted(found, key=lambda entry: -entry["distance"])[:most]


def _show(found: dict[str, Any], errors: dict[str, float], worst: list[dict[str, Any]]) -> None:
    words = {
        "total_variation": "total variation",
        "kl": "Kullback-Leibler divergence, nats",
        "kl_reversed": "the same, in the other direction",
        "relative_error": "relative error of the joint",
        "factor_error": "relative error of the factors",
    }
    rows = [
        (words[name], format_number(value), f"{errors[name]:.1g}" if errors[name] else "")
        for name, value in found.items()
    ]
    show_table(("", "distance", "standard error"), rows)
    echo()
    pairs = [(", ".join(entry["names"]), f"{entry['distance']:.4f}") for entry in worst]
    show_table(("variables", "total variation"), pairs, title="Tables that differ most:")
