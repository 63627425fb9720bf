"""Losses: a third one from a user's own file, and what solvers need of one."""

from dataclasses import dataclass

import numpy as np
import pytest
from small_models import random_pmf

import rejoint as rj
from rejoint.factorization import Admm, Kl, Newton
from rejoint.factorization.loss import KL, SQUARES


@dataclass(frozen=True)
class Hellinger:
    """Twice the squared Hellinger distance, ``2 (sqrt(x) - sqrt(m))^2``, all parts but EM's."""

    name: str = "hellinger"

    def value(self, table, model, weight):
        return 2.0 * float(np.sum(weight * (np.sqrt(table) - np.sqrt(model)) ** 2))

    def slope(self, table, model):
        return 2.0 - 2.0 * np.sqrt(table / np.maximum(model, 1e-100))

    def curvature(self, table, model):
        return 1.0 / np.maximum(model, 1e-100)

    def error(self, objective, scale):
        return float("nan")  # no bound is known

    def check(self, problem):
        if problem.moments:
            raise ValueError("hellinger compares tables, not moments.")


@pytest.fixture(name="truth")
def _truth():
    return random_pmf(0, (3, 4, 3, 2), 2, least=0.2)


@pytest.fixture(name="noisy")
def _noisy(truth):
    return rj.Marginals.count(truth.sample(2000, random_state=0), order=3)


def distance(tables, pmf, loss):
    """The loss as it is written."""
    pairs = ((tables.shares(i), pmf.marginal(s)) for i, s in enumerate(tables.subsets))
    return sum(loss.value(table, model, np.ones_like(table)) for table, model in pairs)


def test_a_loss_of_one_s_own_is_minimized(noisy):
    fits = {
        loss.name: rj.factorize(noisy, 2, loss=loss, random_state=0)
        for loss in (SQUARES, KL, Hellinger())
    }
    for loss in (SQUARES, KL, Hellinger()):
        found = {name: distance(noisy, fit.pmf, loss) for name, fit in fits.items()}
        assert min(found, key=found.get) == loss.name
        best = min(run.objective for run in fits[loss.name].starts)
        assert best == pytest.approx(found[loss.name], rel=1e-9)
    assert "relative error of" in fits["hellinger"].stop


def test_it_recovers_exact_tables(truth):
    tables = rj.Marginals.from_pmf(truth, order=3)
    fit = rj.factorize(tables, 2, Newton(), loss=Hellinger(), start="random", random_state=0)
    assert rj.metrics.tensor_error(truth, fit.pmf) < 1e-6


@pytest.mark.parametrize("loss", [SQUARES, KL, Hellinger()], ids=lambda loss: loss.name)
def test_slopes_are_those_of_the_value(loss):
    rng = np.random.default_rng(0)
    table, model = rng.dirichlet(np.full(6, 9.0)), rng.dirichlet(np.full(6, 9.0))
    slope = loss.slope(table, model.copy())
    # Slopes are known up to a constant, which columns that sum to one do not feel.
    for way in np.eye(6)[:5] - np.eye(6)[5]:
        ends = [loss.value(table, model + sign * 1e-6 * way, 1.0) for sign in (1, -1)]
        assert slope @ way == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_names_of_losses_are_losses(noisy):
    by_name = rj.factorize(noisy, 2, loss="kl", n_init=2, random_state=0)
    by_solver = rj.factorize(noisy, 2, "kl", n_init=2, random_state=0)
    np.testing.assert_array_equal(by_name.pmf.weights, by_solver.pmf.weights)


@pytest.mark.parametrize(
    ("solver", "loss", "words"),
    [
        (Admm(), "kl", r"solver='admm' needs loss\.unit_curvature"),
        (Kl(), "squares", r"solver='kl' needs loss\.ratios"),
        (Kl(), Hellinger(), r"solver='kl' needs loss\.ratios"),
        ("auto", "absolute", "loss='absolute' is not supported; use one of 'squares', 'kl', or"),
        ("auto", Hellinger, "is not supported; use one of 'squares', 'kl', or a loss object"),
    ],
)
def test_what_is_refused(noisy, solver, loss, words):
    with pytest.raises(ValueError, match=words):
        rj.factorize(noisy, 2, solver, loss=loss, start="random", random_state=0)


def test_a_loss_refuses_tables_that_it_cannot_compare():
    domain = rj.Domain.of({"a": 2, "b": 2})
    tables = rj.Marginals.from_tables({"a": [0.5, 0.5]}, domain=domain, moments={"b": 0.4})
    with pytest.raises(ValueError, match="hellinger compares tables, not moments"):
        rj.factorize(tables, 2, loss=Hellinger(), random_state=0)
