"""Local: the verdict of the Jacobian test, and its words."""

from dataclasses import dataclass

import numpy as np

from rejoint.domain.labels import plural, show
from rejoint.identifiability.layout import Layout

__all__ = ["Local"]


@dataclass(frozen=True)
class Local:
    """Whether tables fix a model locally.

    Parameters
    ----------
    layout : Layout
        Variables and tables.
    rank : int
        Number of classes.
    parameters : bool or None
        Whether weights and factors are locally unique; None if undecided.
    joint : bool or None
        Whether the joint is; it may be where the parameters are not.
    free, open : int or None
        Directions in which the parameters, and the joint, can move while the tables stay.
    smallest : float
        Smallest singular value of the Jacobian, its columns scaled to length one, over the
        largest; below 1e-7 it cannot be told from zero.
    variables : dict of str to float
        Share of each variable in the weakest directions, largest first.
    classes : tuple of float
        Share of each class in them.
    given : bool
        Whether this is about a given model, not about almost all.

    Examples
    --------
    >>> import rejoint as rj
    >>> local = rj.identifiability.jacobian([2] * 4, rank=3, order=3)
    >>> local.parameters, local.joint, local.jacobian_rank, local.size
    (False, True, 13, 14)
    """

    layout: Layout
    rank: int
    parameters: bool | None
    joint: bool | None
    free: int | None
    open: int | None
    smallest: float
    variables: dict[str, float]
    classes: tuple[float, ...]
    given: bool = False

    @property
    def size(self) -> int:
        """Number of parameters: weights less one, factors less one row each."""
        return self.layout.columns(self.rank) - 1

    @property
    def jacobian_rank(self) -> int | None:
        """Rank of the Jacobian; None if unknown."""
        return None if self.free is None else self.size - self.free

    @property
    def verdict(self) -> str:
        """What this means, in words.

        Examples
        --------
        >>> import rejoint as rj
        >>> print(rj.identifiability.jacobian([3] * 10, rank=3, order=2).verdict)
        Rank 3, all 45 tables of order 2: the classes are not locally unique (3 free directions), \
and neither is the joint (3 open directions).
        """
        where = "this model" if self.given else f"rank {self.rank}"
        head = f"{where[0].upper()}{where[1:]}, {self.layout.words}: "
        if self.parameters:
            return (
                f"{head}classes and joint are locally unique (smallest singular value "
                f"{self.smallest:.1e} of the largest). Local is not global: another model may "
                "still have the same tables."
            )
        return head + classes_words(self) + joint_words(self)

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.weakest}"

    @property
    def weakest(self) -> str:
        """The variables and classes that the tables hold least, in words."""
        names = [f"{name} ({share:.0%})" for name, share in list(self.variables.items())[:3]]
        order = np.argsort(self.classes)[::-1][:3]
        classes = [f"{f} ({self.classes[f]:.0%})" for f in order]
        return f"Weakest: variables {', '.join(names)}; classes {', '.join(classes)}."


def classes_words(local: Local) -> str:
    """What is known of the classes, where they are not locally unique."""
    if local.layout.uncovered:
        return f"no table contains {show(local.layout.uncovered)}, so that "
    if local.parameters is None:
        return (
            f"undecided for the classes (smallest singular value {local.smallest:.1e} of the "
            "largest, too near to zero)"
        )
    free = f" ({plural(local.free, 'free direction')})" if local.free else ""
    return f"the classes are not locally unique{free}"


def joint_words(local: Local) -> str:
    """What is known of the joint."""
    if local.joint is None:
        return ", and undecided for the joint."
    if local.joint:
        known = "is given by a table" if local.layout.whole else "is locally unique"
        return f", but the joint {known}."
    count = f" ({plural(local.open, 'open direction')})" if local.open else ""
    if local.layout.uncovered:
        return f"neither classes nor joint are fixed{count}."
    return f", and neither is the joint{count}."
