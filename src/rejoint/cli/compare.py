"""``rejoint compare``: how far apart two models are, and where."""

from itertools import combinations
from typing import Any

import click
import numpy as np

from rejoint import metrics
from rejoint.cli.group import EXIT_FAR, echo
from rejoint.cli.options import Options, declare, load, option
from rejoint.cli.output import echo_json, show_table
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_number, plural

_PAIRS = 500  # of variables that are compared

_TITLES = {
    "total_variation": "total variation",
    "kl": "Kullback-Leibler divergence, nats",
    "kl_reversed": "the same, in the other direction",
    "relative_error": "relative error of the joint",
    "factor_error": "relative error of the factors",
}


@declare(
    "MODEL OTHER --seed --json",
    option("--within SHARE", "Exit with code 4 if their total variation is larger."),
)
def command(o: Options) -> None:
    """Compare two models, on the variables they share: distances of the joints and of tables.

    Total variation is the largest difference in the probability of any event. Joints of more than
    a million cells are compared by drawing records, with a standard error.

    Examples
    --------
      rejoint compare patients.rejoint lung.rejoint
      rejoint compare patients.rejoint lung.rejoint --within 0.9 --json
    """
    first, second = _shared(load(o.model), load(o.other))
    distances: dict[str, Any] = {
        "total_variation": metrics.total_variation(first, second, random_state=o.seed),
        "kl": metrics.kl(first, second, random_state=o.seed),
        "kl_reversed": metrics.kl(second, first, random_state=o.seed),
        "relative_error": metrics.tensor_error(first, second),
    }
    if first.rank == second.rank:
        distances["factor_error"] = metrics.factor_error(first, second)
    drawn = {name: getattr(value, "standard_error", 0.0) for name, value in distances.items()}
    worst = _worst(first, second)
    if o.json:
        ranks = {"rank": first.rank, "other_rank": second.rank}
        errors = {f"{name}_standard_error": error for name, error in drawn.items() if error}
        echo_json({**ranks, **distances, **errors, "pairs": worst})
    else:
        echo(f"Rank {first.rank} and rank {second.rank}")
        rows = [
            (_TITLES[name], format_number(value), f"{drawn[name]:.1g}" if drawn[name] else "")
            for name, value in distances.items()
        ]
        show_table(("", "distance", "standard error"), rows)
        echo()
        pairs = [(", ".join(entry["names"]), f"{entry['distance']:.4f}") for entry in worst]
        show_table(("variables", "total variation"), pairs, title="Tables that differ most:")
    if o.within is not None and distances["total_variation"] > o.within:
        echo(f"Total variation is above {o.within:g} (--within).", err=True)
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
    pairs: list[Any] = list(combinations(first.domain.names, min(2, len(first.domain))))
    if len(pairs) > _PAIRS:
        chosen = np.random.default_rng(0).choice(len(pairs), _PAIRS, replace=False)
        pairs = [pairs[i] for i in sorted(chosen)]
    distances = [np.abs(first.marginal(p) - second.marginal(p)).sum() / 2 for p in pairs]
    entries: list[dict[str, Any]] = [
        {"names": list(pair), "distance": float(distance)}
        for pair, distance in zip(pairs, distances, strict=True)
    ]
    return sorted(entries, key=lambda entry: -entry["distance"])[:most]
