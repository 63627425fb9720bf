"""Acceleration of EM-like maps: Anderson mixing that never lowers the likelihood.

A pass over the records at ``x`` gives the objective at ``x`` and the map's image ``g(x)``. The
next point is an affine combination of the last images; if the pass there finds the objective
higher than before, the plain image is taken in its place, from which EM guarantees descent. So a
step costs one pass, or two when a leap fails.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rejoint.estimation.problem import Array


@dataclass(frozen=True)
class Point:
    """A point, the objective there, the map's image, and the points before it."""

    x: Array
    objective: float
    image: Array
    passes: int
    before: tuple[Array, ...] = ()
    after: tuple[Array, ...] = ()

    @property
    def residual(self) -> float:
        """Length of the map's next move, relative to the point."""
        return float(np.linalg.norm(self.image - self.x) / np.linalg.norm(self.x))


Map = Callable[[Array], tuple[float, Array]]
Repair = Callable[[Array, Array], Array]


def begin(mapping: Map, x: Array) -> Point:
    """The first point."""
    objective, image = mapping(x)
    return Point(x, objective, image, 1)


def advance(mapping: Map, repair: Repair, point: Point, memory: int) -> Point:
    """One accelerated step; ``repair(x, safe)`` brings a leap back into the domain."""
    before = (*point.before, point.x)[-memory - 1 :] if memory else ()
    after = (*point.after, point.image)[-memory - 1 :] if memory else ()
    passes = point.passes
    if len(before) > 1:
        leap = repair(mix(before, after), point.image)
        objective, image = mapping(leap)
        passes += 1
        if objective <= point.objective:
            return Point(leap, objective, image, passes, before, after)
        before, after = before[-1:], after[-1:]
    objective, image = mapping(point.image)
    return Point(point.image, objective, image, passes + 1, before, after)


def mix(before: tuple[Array, ...], after: tuple[Array, ...]) -> Array:
    """Anderson's combination of images: the one whose mixed moves are shortest."""
    xs, images = np.stack(before), np.stack(after)
    moves = (images - xs).reshape(len(xs), -1)
    change = np.diff(moves, axis=0)
    normal = change @ change.T
    normal += (1e-10 * np.trace(normal) + np.finfo(float).tiny) * np.eye(len(normal))
    share = np.linalg.solve(normal, change @ moves[-1])
    leap: Array = images[-1] - np.tensordot(share, np.diff(images, axis=0), axes=1)
    return leap
