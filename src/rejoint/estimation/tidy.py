"""Classes that came to nothing: dropped or merged, and said."""

import numpy as np

from rejoint.estimation.problem import Array

#: A class lighter than this is dead; columns closer than SAME belong to one class.
DEAD, SAME = 1e-9, 1e-6


def tidy(weights: Array, factors: Array) -> tuple[Array, Array, str]:
    """Drop dead classes, merge equal ones, sort by weight; say so if any went."""
    alive = weights > DEAD
    order = [int(f) for f in np.argsort(-weights, kind="stable") if alive[f]]
    kept: list[int] = []
    mass = weights.copy()
    for f in order:
        twin = next((g for g in kept if np.abs(factors[:, f] - factors[:, g]).max() < SAME), None)
        if twin is None:
            kept.append(f)
        else:
            mass[twin] += mass[f]
    dead, merged = int((~alive).sum()), len(order) - len(kept)
    said = [f"{dead} of {len(weights)} classes had no weight left"] if dead else []
    said += [f"{merged} were equal to others"] if merged else []
    words = f" {' and '.join(said).capitalize()}: dropped." if said else ""
    return mass[kept] / mass[kept].sum(), factors[:, kept], words
