"""Fit the joint of all items to ratings, by traits or by free hidden classes."""

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse

from rejoint import kernels
from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.domain.variable import Variable
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import Request, fit_data
from rejoint.estimators.recommender.rating_model import UserEvidence
from rejoint.estimators.recommender.ratings import RatingLevels, Ratings
from rejoint.estimators.recommender.traits import TraitFit, Traits, fit_traits
from rejoint.estimators.sklearn_input import is_for_records
from rejoint.messages import remark
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import BaseRecords
from rejoint.records.sparse import DefaultCodedRecords, SparseRecords
from rejoint.solver.result import FitResult
from rejoint.solver.search import interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import Record, Run, Stop
from rejoint.text import plural


def make_evidence(ratings: Ratings, items: int, scale: RatingLevels) -> UserEvidence:
    """Encode ratings as evidence: a one for each; ratings that are no level are left out."""
    size = len(scale.values)
    levels = scale.encode(ratings.rating)
    bad = levels < 0
    if bad.any():
        remark(
            f"{plural(int(bad.sum()), 'cell')} taken as unseen: {ratings.rating[bad][0]:g} is not "
            f"among the ratings of the fit, {scale.words}."
        )
    if scale.implicit:  # a stored zero says what absence says
        bad = levels == 0
    user, column = ratings.user[~bad], (ratings.item * size + levels)[~bad]
    shape = (len(ratings.users), items * size)
    ones = sparse.csr_array((np.ones(len(user)), (user, column)), shape=shape)
    if not scale.implicit:
        return UserEvidence(ones)
    background = np.tile([1.0, 0.0], items)
    undone = sparse.csr_array((-np.ones(len(user)), (user, column - 1)), shape=shape)
    return UserEvidence(sparse.csr_array(ones + undone), background)


def fit_ratings(
    evidence: UserEvidence,
    items: list[Any],
    values: FloatArray,
    solver: Any,
    rank: int | Literal["auto"],
    rng: np.random.Generator,
) -> FitResult:
    """Fit by the solver that was asked for."""
    domain = make_domain(items, values)
    if solver == "traits":
        solver = Traits()
    if isinstance(solver, Traits):
        return as_result(fit_traits(evidence, len(values), solver, rng), domain, solver)
    if not is_for_records(solver):
        raise ValueError(
            f"solver={solver!r} is not known; give 'traits', 'ml', 'map', 'bayes', or an object "
            "such as rejoint.estimators.Traits(traits=3)."
        )
    session = Session(rng)
    fit = partial(fit_data, InMemory.of(as_records(evidence, domain)), Request(rank, solver))
    return interruptible(session, partial(fit, session), "raise")


def make_domain(items: list[Any], values: FloatArray) -> Domain:
    """Make a variable of each item, named by the text of its id."""
    names = [str(item) for item in items]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Two items are called {twice!r} as text: give them names that differ.")
    levels = tuple(float(v) if v % 1 else int(v) for v in values)
    return Domain(tuple(Variable(name, levels, "ordinal") for name in names))


def as_result(fit: TraitFit, domain: Domain, solver: Traits) -> FitResult:
    """Return a fit of traits as a result."""
    rank, nothing = fit.log_columns.shape[1], float("nan")
    model = Model(Layout(domain.shape), np.full(rank, 1.0 / rank), np.exp(fit.log_columns))
    history = tuple(
        Record(0, "traits", step, -value, nothing, nothing)
        for step, value in enumerate(fit.history)
    )
    value = fit.history[-1]
    models = max(rank // solver.within(sum(domain.shape))[0], 1)
    stop = (
        f"Log-likelihood {value:,.2f} after {plural(len(history), 'sweep')}: users in a "
        f"space of {plural(solver.traits, 'trait')}; {plural(models, 'model')} of "
        f"{plural(rank // models, 'point')} averaged."
    )
    sweeps = Run(model, -value, nothing, nothing, Stop.STEPS, history)
    pmf = LowRankPMF(model.weights, model.parts, domain)
    result = FitResult.of(pmf, [sweeps], "", log_likelihood=value, classes_are_groups=False)
    return replace(result, stop=stop, starts=())


def as_records(evidence: UserEvidence, domain: Domain) -> BaseRecords:
    """Return evidence as records: observed cells, or those that differ from the background."""
    cells = sparse.csr_array(evidence.cells)
    cells.sum_duplicates()  # in order
    if evidence.background is None:
        # Levels of all items are numbered through in either form.
        return SparseRecords(domain, kernels.SparseCodes(cells.indptr, cells.indices, domain.shape))
    done = sparse.csr_array(cells > 0)  # and not what is undone by it
    done.sort_indices()
    return DefaultCodedRecords(
        domain, kernels.DefaultCodes(kernels.SparseCodes(done.indptr, done.indices, domain.shape))
    )
