"""Few classes in place of the many of a completion, with the same given tables."""

from collections.abc import Sequence

import numpy as np

from rejoint.factorization.complete_approximately import (
    blur,
    choose_tables,
    finish,
    follow_tables,
    merge_classes,
)
from rejoint.factorization.table_goals import Exact
from rejoint.model import FloatArray, Model
from rejoint.queries.tables import joint_table
from rejoint.solver.session import Session

Subset = tuple[int, ...]


class ModelTables:
    """The tables of a model, one at a time.

    Examples
    --------
    >>> model = Model.of([0.5, 0.5], [np.eye(2), np.eye(2)])
    >>> ModelTables(model).table((0, 1))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    def __init__(self, model: Model) -> None:
        self.model, self._parts = model, model.parts

    def table(self, subset: Sequence[int]) -> FloatArray:
        """The table of some variables."""
        return joint_table(self.model.weights, [self._parts[n] for n in subset])


def compact_completion(
    model: Model, subsets: Sequence[Subset], most: int, session: Session | None = None
) -> Model:
    """Return a model of at most ``most`` classes with the same tables of some subsets.

    Classes that are nearest are merged, then taken by EM towards the given tables and others of the
    model, then corrected so that the given ones are the model's again, to 1e-7 of their mass.

    Parameters
    ----------
    model : Model
        A completion of many classes.
    subsets : sequence of tuple of int
        The variables of the tables that it was made from, increasing.
    most : int
        Classes at the most.
    session : Session, optional
        Randomness and progress.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wide = Model.of(rng.dirichlet(np.ones(60)), [rng.dirichlet([1, 1], 60).T] * 3)
    >>> few = compact_completion(wide, [(0, 1), (1, 2)], 20)
    >>> gap = ModelTables(few).table((0, 1)) - ModelTables(wide).table((0, 1))
    >>> few.rank, bool(np.abs(gap).max() < 1e-7)
    (20, True)
    """
    if model.rank <= most:
        return model
    session = session or Session(np.random.default_rng(0))
    whole = ModelTables(model)
    levels = model.layout.levels
    goals = [Exact(subset, whole.table(subset).ravel()) for subset in subsets]
    own = Model(model.layout, np.ones(1), (model.factors @ model.weights)[:, None])
    few = blur(merge_classes(model, most), own)
    if len(levels) > 1:
        followed = sorted(choose_tables(levels, subsets, session.rng))
        few = follow_tables(few, whole, followed, session)
    return finish(few, goals, session).model.sorted()
