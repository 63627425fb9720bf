"""Completions with too many classes: the tables are met, other tables are near the completion's."""

import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from rejoint import Domain, Marginals
from rejoint.explorer.document import compact_answer, describe_limit
from rejoint.factorization import complete_approximately as module
from rejoint.factorization.clique_tables import CliqueTables
from rejoint.factorization.complete_approximately import (
    choose_tables,
    compact_completion,
    complete_approximately,
    judged_tables,
    measure_distance,
)
from rejoint.factorization.factorize import complete_tables
from rejoint.factorization.max_entropy import Ipf, independent_model, make_completion_problem
from rejoint.factorization.table_goals import exact_goals, soft_goals
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import FlatTables
from rejoint.queries.junction_tree import JunctionTree
from rejoint.queries.tables import tables_of_model
from rejoint.solver.run import run
from rejoint.solver.session import Session

LEVELS = (3, 3, 3, 3, 3, 3)
SETS = {
    "chain": [(n, n + 1) for n in range(5)],
    "cycle": [*((n, n + 1) for n in range(5)), (0, 5)],
    "pairs": list(combinations(range(6), 2)),
}


def margin(joint, subset):
    return joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset))


def make_tables(subsets, *, zeros=False, seed=0, **options):
    rng = np.random.default_rng(seed)
    effects = sum(
        rng.standard_normal([3 if n in s else 1 for n in range(6)])
        for s in combinations(range(6), 2)
    )
    joint = np.exp(0.7 * effects)
    if zeros:
        joint[0, 1] = joint[:, :, 2, 2] = 0.0
    joint /= joint.sum()
    flat = np.concatenate([margin(joint, s).ravel() for s in subsets])
    domain = Domain.of(dict.fromkeys("abcdef", 3))
    shares = np.zeros(len(subsets), dtype=bool)
    return Marginals(domain, tuple(subsets), flat, counted=shares, **options)


def complete_exactly(goals):
    problem = make_completion_problem(LEVELS, goals)
    return run(Ipf(), problem, independent_model(LEVELS, goals)).model


def approximate(marginals, goals, seed=0):
    said = []
    session = Session(np.random.default_rng(seed))

    def conclude(done, text):
        said.append(text)
        return done

    return complete_approximately(marginals, goals, session, conclude), said[-1]


@pytest.fixture
def few_classes(monkeypatch):
    """Fewer classes than the exact mixtures of these tests have."""
    small = replace(POLICY, near_classes=20, loose_members=2)
    monkeypatch.setattr(module, "POLICY", small)
    return small


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("zeros", [False, True])
def test_tables_are_met_on_a_junction_tree(monkeypatch, few_classes, name, zeros):
    marginals = make_tables(SETS[name], zeros=zeros)
    goals = exact_goals(marginals)
    if name == "pairs":
        monkeypatch.setattr(module, "POLICY", replace(few_classes, near_classes=120))
    done, text = approximate(marginals, goals)
    assert done.objective <= 1e-6
    cells = FlatTables(done.model.layout, tuple(goal.subset for goal in goals))
    assert cells.distances(cells.of_model(done.model), marginals.flat).max() <= 1e-6
    assert "approximates" in text
    exact = complete_exactly(goals)
    assert done.model.rank < exact.rank
    independent = independent_model(LEVELS, goals)
    judged = list(combinations(range(6), 4))
    far = measure_distance(independent, tables_of_model(exact), judged)
    assert measure_distance(done.model, tables_of_model(exact), judged) < 0.25 * far


def test_the_sentence_measures_the_distance_to_the_completion(few_classes):
    marginals = make_tables(SETS["chain"])
    done, text = approximate(marginals, exact_goals(marginals))
    exact = tables_of_model(complete_exactly(exact_goals(marginals)))
    distance = measure_distance(done.model, exact, list(combinations(range(6), 4)))
    said = float(text.split("not given, ")[1].split(" of the mass")[0])
    assert said == pytest.approx(distance, rel=0.5)
    assert "has 27 classes" in text


@pytest.mark.parametrize("zeros", [False, True])
def test_tables_are_met_without_a_junction_tree(monkeypatch, few_classes, zeros):
    monkeypatch.setattr(module, "POLICY", replace(few_classes, most_clique_cells=100))
    marginals = make_tables(SETS["pairs"], zeros=zeros)
    goals = exact_goals(marginals)
    done, text = approximate(marginals, goals)
    assert done.objective <= 1e-6
    assert "was not measured" in text
    exact = tables_of_model(complete_exactly(goals))
    judged = list(combinations(range(6), 4))
    far = measure_distance(independent_model(LEVELS, goals), exact, judged)
    assert measure_distance(done.model, exact, judged) < 0.35 * far


def test_tables_of_a_sample_pull_on_a_junction_tree(few_classes):
    marginals = make_tables(SETS["cycle"])
    counts = np.random.default_rng(0).poisson(500 * marginals.flat) + 0.0
    noisy = Marginals(marginals.domain, marginals.index_subsets, counts, noisy=True)
    goals = soft_goals(noisy)
    done, _ = approximate(noisy, goals)
    exact = tables_of_model(complete_exactly(goals))
    # Sweeps of tables of a sample end at a hundredth of what chance makes.
    assert measure_distance(done.model, exact, SETS["cycle"]) < 2e-3


def test_the_default_fit_approximates_what_is_too_large(monkeypatch, few_classes):
    monkeypatch.setattr(
        sys.modules[complete_tables.__module__], "make_completion_problem", lambda *_: None
    )
    done = complete_tables(make_tables(SETS["cycle"]), Session(np.random.default_rng(0)))
    assert max(done.misfits.values()) <= 1e-6
    assert "approximates" in done.choice
    assert not done.classes_are_groups


def test_ctrl_c_returns_the_best_so_far(monkeypatch, few_classes):
    marginals = make_tables(SETS["cycle"])
    goals = exact_goals(marginals)
    for stage in ("completion", "kl", "correction"):
        session = Session(np.random.default_rng(0))

        def interrupt(line, stage=stage):
            if stage in line and "step 0" not in line:
                raise KeyboardInterrupt

        session.report = interrupt
        with pytest.raises(KeyboardInterrupt):
            complete_approximately(marginals, goals, session, lambda done, text: (done, text))
        done, text = session.best()
        assert done.stop == "interrupted"
        assert np.isclose(done.model.weights.sum(), 1.0)
        # Before there are classes independence is all that there is.
        assert (done.objective <= 1e-6) == (stage != "completion")
        assert "approximates" in text


def test_chosen_tables_hold_the_given_ones_and_are_bounded():
    subsets = [(n, n + 1) for n in range(19)]
    levels = (4,) * 20
    rng = np.random.default_rng(0)
    judged = judged_tables(levels, subsets, rng)
    chosen = list(choose_tables(levels, subsets, rng, without=judged))
    assert set(subsets) <= set(chosen)
    assert len(set(chosen)) == len(chosen)
    assert not set(judged) & set(chosen)
    assert {len(s) for s in chosen} == {2, 3, 4}
    assert sum(4 ** len(s) for s in chosen if len(s) > 2) <= POLICY.near_cells
    assert sum(len(s) == 2 for s in chosen) == 190


def test_few_classes_keep_the_given_tables():
    rng = np.random.default_rng(0)
    marginals = make_tables(SETS["pairs"])
    whole = complete_exactly(exact_goals(marginals))
    few = compact_completion(whole, SETS["pairs"], 100)
    assert few.rank <= 100 < whole.rank
    cells = FlatTables(whole.layout, tuple(SETS["pairs"]))
    assert cells.distances(cells.of_model(few), cells.of_model(whole)).max() <= 1e-7
    quadruples = list(combinations(range(6), 4))
    assert measure_distance(few, tables_of_model(whole), quadruples) < 0.03
    assert compact_completion(few, SETS["pairs"], 100, Session(rng)) is few


def test_few_classes_of_a_page_keep_the_given_tables(monkeypatch):
    monkeypatch.setattr(sys.modules["rejoint.explorer.document"], "PAGE_CLASSES", 100)
    marginals = make_tables(SETS["pairs"])
    wide = complete_tables(marginals, Session(np.random.default_rng(0))).pmf
    few = compact_answer(wide)
    assert few.rank <= 100 < wide.rank
    for names in marginals.subsets:
        assert np.abs(few.marginal(names) - wide.marginal(names)).sum() / 2 <= 1e-7
    assert "given tables stay the same" in describe_limit(wide)


def test_clique_tables_and_cover_agree():
    marginals = make_tables(SETS["cycle"])
    goals = exact_goals(marginals)
    exact = tables_of_model(complete_exactly(goals))
    start = independent_model(LEVELS, goals)
    tree = JunctionTree.of(LEVELS, SETS["cycle"])
    tables = CliqueTables(LEVELS, tree, [part[:, 0] for part in start.parts])
    module.fit_cliques(tables, goals, Session(np.random.default_rng(0)))
    for subset in combinations(range(6), 3):
        np.testing.assert_allclose(tables.table(subset), exact(subset), atol=1e-6)
