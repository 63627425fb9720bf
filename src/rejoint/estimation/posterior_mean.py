"""Posterior mean: the one model that answers, made of the kept sweeps of a sampler."""

from collections.abc import Sequence

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import Model
from rejoint.pmf.compact import compact


def posterior_mean(
    data: Data,
    members: Sequence[Model],
    first: Model,
    passes: int,
    policy: Policy = DEFAULT,
    *,
    ensemble: bool = False,
) -> Model:
    """Return one model near the mean of many: their classes merged, then fitted to the records.

    Parameters
    ----------
    data : Data
        The records.
    members : sequence of Model
        Conditional expectations of the joint, one for each kept sweep.
    first : Model
        Where merging starts, such as the most probable model.
    passes : int
        Passes over the records after merging.
    policy : Policy
        Classes of the mean, and how far passes may move it.
    ensemble : bool
        Whether the members are of chains whose rank was not given: the mean then has more classes,
        and moves further.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "x", "y"], "b": ["u", "v", "v"]}))
    >>> ones = [Model.of([1.0], [[[a], [1 - a]], [[0.3], [0.7]]]) for a in (0.6, 0.7)]
    >>> posterior_mean(data, ones, ones[0], passes=0).weights
    array([0.5, 0.5])
    """
    classes = policy.ensemble_classes if ensemble else policy.answer_classes
    records = policy.ensemble_records if ensemble else policy.anchor_records
    most = round(classes * float(np.mean([member.rank for member in members])))
    most = max(int(min(most, policy.most_classes)), 1)
    return anchor(data, compact(members, first, most), passes, records)


def anchor(data: Data, model: Model, passes: int, records: float) -> Model:
    """EM passes from a model that stays their prior and counts as ``records`` times the data.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "x", "x", "y"]}))
    >>> anchor(data, Model.of([1.0], [[[0.5], [0.5]]]), passes=1, records=1.0).factors[:, 0]
    array([0.625, 0.375])
    """
    layout, mass = model.layout, records * data.total * model.weights
    moved = model
    for _ in range(passes):
        found = data.expect(moved)
        classes = found.classes + mass
        levels = found.levels + mass * model.factors
        moved = Model(layout, classes / classes.sum(), layout.normalize(levels))
    return moved
