"""The default fit to tables: given tables are met, and what it says of tables that cannot be."""

import warnings

import numpy as np
import pytest

import rejoint as rj
from rejoint.factorization.table_goals import infer_rounding


def tables(joint, *subsets):
    names = "abcdef"
    return {
        tuple(names[n] for n in s): joint.sum(
            axis=tuple(n for n in range(joint.ndim) if n not in s)
        )
        for s in subsets
    }


@pytest.fixture
def joint():
    return np.random.default_rng(3).dirichlet(np.ones(180)).reshape(4, 5, 3, 3)


def quietly(given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rj.Marginals.from_tables(given, **options)


def test_one_table_comes_back_as_it_was_published():
    given = rj.Marginals.from_tables(
        {("smoke", "lung"): {("y", "y"): 90, ("y", "n"): 110, ("n", "y"): 10, ("n", "n"): 790}}
    )
    pmf = rj.factorize(given).pmf
    assert float(pmf.ask("P(lung = y | smoke = y)")) == pytest.approx(0.45, abs=1e-9)
    assert pmf.rank == 2


@pytest.mark.parametrize(
    "subsets",
    [
        [(0, 1), (0, 2), (0, 3)],
        [(0, 1), (1, 2), (0, 2)],
        [(0, 1), (1, 2), (2, 3)],
        [(0, 1), (1, 2), (2, 3), (0, 3)],
        [(0, 1, 2), (2, 3)],
        [(0, 1), (2, 3)],
        [(0,), (1,), (2, 3)],
    ],
)
def test_every_published_number_comes_back(joint, subsets):
    counts = (1e5 * joint).round()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups of variables that share no table
        result = rj.factorize(quietly(tables(counts, *subsets)))
    assert max(result.misfits.values()) < 1e-6
    for names in result.misfits:
        share = tables(counts, *subsets)[names] / counts.sum()
        np.testing.assert_allclose(result.pmf.marginal(names), share, atol=1e-6)


@pytest.mark.parametrize(("base", "random"), [(3, False), (3, True), (5, False), (5, True)])
def test_rounded_numbers_are_met_within_their_rounding(joint, base, random):
    rng = np.random.default_rng(base)
    exact = tables((2000 * joint).round(), (0, 1), (1, 2), (0, 2), (2, 3))

    def rounded(table):
        low = np.floor(table / base)
        up = rng.random(table.shape) < table / base - low if random else table / base - low >= 0.5
        return base * (low + up)

    given = quietly({names: rounded(table) for names, table in exact.items()}, rounded=base)
    pmf = rj.factorize(given).pmf
    for i, names in enumerate(given.subsets):
        share, numbers = pmf.marginal(names), given.counts_of(i)
        # Some total makes every number differ by no more than the base.
        low = ((numbers - base) / np.maximum(share, 1e-300))[numbers > base].max()
        high = ((numbers + base) / np.maximum(share, 1e-300)).min()
        assert low <= high * (1 + 1e-5)


def test_rounding_is_found_where_it_explains_what_differs(joint):
    exact = tables((2000 * joint).round(), (0, 1), (1, 2), (0, 2), (2, 3))
    given = quietly({names: 5 * np.round(table / 5) for names, table in exact.items()})
    assert set(next(infer_rounding(given)).rounding) == {2.5}
    result = rj.factorize(given)
    assert "rounding" in result.choice
    plain = quietly({("a", "b"): [[37, 11], [12, 52]], ("b", "c"): [[11, 13], [41, 43]]})
    assert not list(infer_rounding(plain))


def test_tables_that_contradict_each_other_are_said_first():
    given = quietly({("a", "b"): [[37, 11], [12, 52]], ("b", "c"): [[11, 13], [41, 43]]})
    result = rj.factorize(given)
    assert result.choice.startswith("The tables contradict each other: (a, b) and (b, c) by 0.2")
    assert 0.05 < max(result.misfits.values()) < 0.2


def test_tables_that_no_joint_meets_are_found():
    off = [[0, 50], [50, 0]]
    given = quietly({("a", "b"): off, ("b", "c"): off, ("a", "c"): off})
    result = rj.factorize(given)
    assert result.choice.startswith("No joint meets all tables at once")
    assert max(result.misfits.values()) == pytest.approx(1 / 3, abs=0.05)


def test_cells_that_were_held_back_do_not_count_as_missed(joint):
    counts = (1e4 * joint).round()
    given = tables(counts, (0, 1), (1, 2), (0, 2), (2, 3))
    held = given["a", "b"].copy()
    held[0, 0] = held[2, 3] = np.nan
    result = rj.factorize(quietly({**given, ("a", "b"): held}, suppressed=(0, np.inf)))
    assert max(result.misfits.values()) < 1e-6


def test_a_moment_is_met_beside_tables():
    given = rj.Marginals.from_tables(
        {("a", "b"): {(0, 0): 3, (0, 1): 2, (1, 0): 1, (1, 1): 4}, ("c",): {0: 5, 1: 5}},
        moments={("a", "c"): 0.1},
    )
    pmf = rj.factorize(given).pmf
    joint = pmf.marginal(["a", "c"])
    assert joint[1, 1] - joint[1].sum() * joint[:, 1].sum() == pytest.approx(0.1, abs=1e-6)


def test_ctrl_c_keeps_the_best_so_far(joint, monkeypatch):
    from rejoint.factorization import max_entropy

    plain, calls = max_entropy.sweep, []

    def sweep(state):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(state)

    monkeypatch.setattr(max_entropy, "sweep", sweep)
    given = quietly(tables(joint, (0, 1), (1, 2), (0, 2), (2, 3)))
    result = rj.factorize(given, on_interrupt="return")
    assert result.interrupted
    assert max(result.misfits.values()) < 0.05


def test_ctrl_c_while_ranks_are_weighed_keeps_the_interactions(joint, monkeypatch):
    from rejoint.factorization.table_choice import RankSearch

    def press(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(RankSearch, "run", press)
    counts = np.random.default_rng(0).multinomial(5000, joint.ravel()).reshape(joint.shape)
    given = quietly(tables(counts, (0, 1, 2), (1, 2, 3), (0, 2, 3)), noisy=True)
    result = rj.factorize(given, on_interrupt="return")
    assert result.interrupted
    assert "interrupted; this is the best model so far" in result.stop
    assert max(result.misfits.values()) < 0.05


@pytest.mark.parametrize("k", [1, 2])
def test_ctrl_c_while_interactions_are_estimated_keeps_those_so_far(joint, monkeypatch, k):
    from rejoint.factorization import log_linear

    plain, calls = log_linear.estimate_prior, []

    def estimate(*args):
        calls.append(1)
        if len(calls) == k:
            raise KeyboardInterrupt
        return plain(*args)

    monkeypatch.setattr(log_linear, "estimate_prior", estimate)
    counts = np.random.default_rng(0).multinomial(5000, joint.ravel()).reshape(joint.shape)
    given = quietly(tables(counts, (0, 1, 2), (1, 2, 3), (0, 2, 3)), noisy=True)
    with pytest.raises(rj.FitInterrupted) as caught:
        rj.factorize(given)
    assert caught.value.result.interrupted
    # Before the first estimate independence is all that there is.
    assert max(caught.value.result.misfits.values()) < (0.05 if k > 1 else 0.3)


def test_a_few_records_are_not_taken_for_rounded_numbers():
    # a is b, b is c, and a is not c: no joint has these tables, rounded or not.
    same, other = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    tables = rj.Marginals.from_tables({("a", "b"): same, ("b", "c"): same, ("a", "c"): other})
    result = rj.factorize(tables, random_state=0, progress=False)
    assert result.choice.startswith("No joint meets all tables at once")
    assert "rounding" not in result.choice


def test_an_older_table_keeps_its_odds_ratios_and_takes_the_newer_shares():
    rng = np.random.default_rng(9)
    joint = rng.dirichlet(np.ones(12)).reshape(2, 2, 3)
    before = joint * np.exp(rng.normal(0.0, 0.7, (2, 1, 1)))
    new = {("a", "c"): 1e4 * joint.sum(axis=1), ("b", "c"): 1e4 * joint.sum(axis=0)}
    old = before.sum(axis=2) / before.sum()
    with pytest.warns(match="disagree"):
        tables = rj.Marginals.from_tables({**new, ("a", "b"): 1e4 * old})
    result = rj.factorize(tables, older=[("b", "a")], random_state=0, progress=False)
    for names, table in new.items():
        assert np.allclose(result.pmf.marginal(names), table / 1e4, atol=1e-7)
    now = result.pmf.marginal(["a", "b"])
    odds = [t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0]) for t in (now, old)]
    assert odds[0] == pytest.approx(odds[1], rel=1e-5)
    assert result.choice.startswith("Of (a, b), which is older")


def test_older_tables_that_are_not_there_are_named():
    tables = rj.Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]], "b": [4, 6]})
    with pytest.raises(ValueError, match="no table of 'a'; there are 'a, b', 'b'"):
        rj.factorize(tables, older=["a"])
    with pytest.raises(ValueError, match="all tables are older ones"):
        rj.factorize(tables, older=["b", ("a", "b")])
