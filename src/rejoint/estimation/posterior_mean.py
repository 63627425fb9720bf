"""Posterior mean: the one model that answers, made of the kept sweeps of a sampler.

It is finished in steps: the classes of all sweeps are merged into few, fitted to the records for
some passes, and moved towards the tables of two variables that the records show. The draws that
bounds rest on are spread by what these tables demand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.gibbs import Draw
from rejoint.estimation.pair_tables import (
    BLOCK,
    Misfit,
    PairTables,
    agree,
    count_pairs,
    mean_distance,
    one_hot,
)
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import FloatArray, Model
from rejoint.pmf.compact import compact

#: Rounds that scale the shares of one variable, and then the columns, of a draw.
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Finished:
    """A model of the levels themselves that answers, and what it was moved by.

    Parameters
    ----------
    model : Model
        What answers.
    merged : Model
        The merged classes, before they were fitted to the records.
    misfit : Misfit, optional
        What the tables of the records ask of it; none where they were not looked at.
    tables : PairTables, optional
        These tables.
    shift : float, optional
        How far the model was moved towards them: total variation of a table, on average. None
        where it was not to be moved.
    """

    model: Model
    merged: Model
    misfit: Misfit | None = None
    tables: PairTables | None = None
    shift: float | None = None


def posterior_mean(
    data: Data,
    draws: Sequence[Draw],
    first: Model,
    passes: int,
    policy: Policy = DEFAULT,
    *,
    ensemble: bool = False,
    members: Sequence[Model] | None = None,
    weight: float | None = None,
) -> Finished:
    """Return one model near the mean of many, in agreement with the records.

    Parameters
    ----------
    data : Data
        The records.
    draws : sequence of Draw
        The kept sweeps.
    first : Model
        Where merging starts, such as the most probable model.
    passes : int
        Passes over the records after merging.
    policy : Policy
        Classes of the mean, how far passes may move it, and whether (``agreement``) and how far
        tables of the records do.
    ensemble : bool
        Whether the members are of chains whose rank was not given: the mean then has more classes,
        and moves further.
    members : sequence of Model, optional
        What answers before it is finished; by default the conditional expectations of the sweeps.
    weight : float, optional
        Weight of the mean as the prior of the passes, in multiples of the records; by default that
        of the policy.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "x", "y"], "b": ["u", "v", "v"]}))
    >>> ones = [Model.of([1.0], [[[a], [1 - a]], [[0.3], [0.7]]]) for a in (0.6, 0.7)]
    >>> draws = [Draw(one, np.ones(2), one) for one in ones]
    >>> posterior_mean(data, draws, ones[0], 0, Policy(pair_levels=0)).model.weights
    array([0.5, 0.5])
    """
    classes = policy.ensemble_classes if ensemble else policy.answer_classes
    if weight is None:
        weight = policy.ensemble_records[0] if ensemble else policy.anchor_records
    members = [draw.mean for draw in draws] if members is None else members
    most = round(classes * max(member.rank for member in members))
    most = max(int(min(most, policy.most_classes)), 1)
    merged = compact(members, first, most)
    model = data.observed(anchor(data, merged, passes, weight))
    # Who gives rank one asks for independence. Where it was chosen, tables may still refute it.
    independent = not ensemble and all(member.rank == 1 for member in members)
    if independent or len(data.domain) == 1 or data.layout.size > policy.pair_levels:
        return Finished(model, merged)
    tables = count_pairs(data.sample().records, model, np.random.default_rng(0), policy)
    seen = [data.observed(draw.model) for draw in draws]
    ordered = [variable.kind != "nominal" for variable in data.domain]
    misfit = Misfit.of(tables, model, seen, ordered)
    if not policy.agreement:
        return Finished(model, merged, misfit, tables)
    moved = agree(misfit, model, most, policy)
    return Finished(moved, merged, misfit, tables, mean_distance(model, moved))


def spread_draws(data: Data, draws: Sequence[Draw], finished: Finished) -> list[Model]:
    """Return the draws, of the levels themselves, as far apart as the records demand.

    Where the model misfits, draws are too near to each other in how variables depend: weights and
    columns are drawn again, given the classes of the records, with a variance that spends the
    degrees of freedom which the misfit asks for. Shares of single variables, which the model meets,
    vary as shares that are counted in as many records do. (Bounds are centered on the answer, so
    that draws need not be moved.)
    """
    misfit, rng = finished.misfit, np.random.default_rng(0)
    if misfit is None or finished.shift is None:
        return [data.observed(draw.model) for draw in draws]
    models = [draw.model for draw in draws]
    if misfit.widening > 1.0 and misfit.spent > 0.0:
        # Only what is drawn given the classes of the records is drawn again.
        fixed = misfit.spent_by([data.observed(draw.mean) for draw in draws]) / misfit.spent
        heat = 1.0 + (misfit.widening - 1.0) / max(1.0 - fixed, 0.1)
        models = [draw_again(data, draw, heat, rng) for draw in draws]
    shares = draw_shares(data, finished.model, len(draws), rng)
    return [meet(data.observed(model), own) for model, own in zip(models, shares, strict=True)]


def draw_again(data: Data, draw: Draw, heat: float, rng: np.random.Generator) -> Model:
    """Draw weights and columns of a sweep again, their variance multiplied by ``heat``."""
    layout, mean = data.layout, draw.mean
    # Records of a class that hold a variable: its share of all that do.
    held = layout.sums(data.level_totals)[:, None] * mean.weights
    strength: FloatArray = layout.expand(held + draw.concentrations[:, None]) / heat
    columns = layout.normalize(rng.standard_gamma(strength * mean.factors) + 1e-300)
    weights = rng.dirichlet(np.maximum(data.total * mean.weights / heat, 1e-3))
    return Model(layout, weights, columns)


def draw_shares(data: Data, model: Model, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw shares of single variables around a model's: those of records drawn again, (count, L).

    The prior of columns is centered on the shares that the records show. Posterior draws treat this
    center as certain: its pseudo-counts act as further records, and in small samples outnumber the
    records themselves. What is drawn here has the noise of the records alone, the same in all
    variables of a record (the Bayesian bootstrap).

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "y"] * 200}))
    >>> even = Model.of([1.0], [[[0.5], [0.5]]])
    >>> draw_shares(data, even, 1000, np.random.default_rng(0))[:, 0].std().round(3)
    np.float64(0.025)
    """
    records, layout = data.sample().records, data.layout
    rows = np.arange(len(records.weight))
    most = max(BLOCK // max(layout.size, count), 1)
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    weight, cells = records.weight[rows], one_hot(layout, records.table(rows))
    # Half a record more for each level: one that no record shows is uncertain, too.
    drawn: FloatArray = rng.standard_gamma(weight, (count, len(rows))) @ cells
    drawn += rng.standard_gamma(0.5, drawn.shape)
    noise = drawn / (weight @ cells + 0.5) - 1.0
    noise *= np.sqrt(min(weight.sum() / data.total, 1.0))  # that of some records is larger
    center = model.factors @ model.weights
    return layout.normalize((center * (1.0 + noise)).T).T


def meet(model: Model, shares: FloatArray) -> Model:
    """Scale the columns of a model to have these shares of single variables, nearly."""
    layout, columns = model.layout, model.factors
    for _ in range(ROUNDS):
        ratio = shares / np.maximum(columns @ model.weights, 1e-300)
        columns = layout.normalize(columns * ratio[:, None] + 1e-300)
    return Model(layout, model.weights, columns)


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
