"""More starts never end lower, and what is said of the starts is true."""

import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_records import random_records

import rejoint as rj
from rejoint.estimation import Em, Policy, estimate
from rejoint.estimation.data import InMemory
from rejoint.estimation.priors import first_prior
from rejoint.estimation.starts import describe_ends
from rejoint.model import Model
from rejoint.solver.search import promising
from rejoint.solver.solver import Record, Run, Stop

pytestmark = pytest.mark.filterwarnings("ignore::rejoint.messages.Remark")

MODEL = Model.of([0.5, 0.5], [np.eye(2)] * 2)


def runs_of(objectives, stops=None):
    stops = stops or [Stop.PROGRESS] * len(objectives)
    return [
        Run(MODEL, x, 0.0, np.nan, stop, (Record(k, "em", 0, x, 0.0, 0.0),))
        for k, (x, stop) in enumerate(zip(objectives, stops, strict=True))
    ]


# --- more starts never end lower ---------------------------------------------------------------


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=30),
    st.integers(0, 2),
)
def test_what_is_followed_further_does_not_depend_on_later_starts(objectives, most):
    runs = runs_of(objectives)
    kept = promising(runs, range(len(runs)), most)
    assert kept[0] == 0
    best = min(objectives)
    assert any(runs[k].objective == pytest.approx(best, rel=1e-8, abs=1e-8) for k in kept)
    for n in range(1, len(runs)):
        assert promising(runs[:n], range(n), most) == [k for k in kept if k < n]
    twice = promising(runs, kept, most)
    first = [k for k in kept if k < len(runs) // 2]
    assert promising(runs, first, most) == [k for k in twice if k in first]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["ml", "prior"])
def test_more_starts_never_end_lower(seed, kind):
    records = random_records(seed, (4, 3, 5, 3, 4), 250, rank=5, missing=0.1)
    data = InMemory.of(records)
    solver = Em() if kind == "ml" else Em(prior=first_prior(data, Policy()))
    ends, starts = [], []
    for n in (1, 3, 5, 8, 20):
        result = estimate(records, 5, solver, n_init=n, random_state=seed)
        ends.append(min(run.objective for run in result.starts))
        starts.append([run.records[0].objective for run in result.starts])
    assert all(later <= before + 1e-6 for before, later in pairwise(ends))
    assert starts[2] == starts[4][:5]


def test_the_best_of_all_that_were_followed_to_the_end_is_returned():
    records = random_records(1, (4, 3, 5, 3, 4), 250, rank=5)
    result = estimate(records, 5, "ml", n_init=20, random_state=0)
    least = min(run.objective for run in result.starts)
    assert result.log_likelihood == pytest.approx(-least, rel=1e-9)
    behind = [run for run in result.starts if run.stop is Stop.BEHIND]
    assert len(behind) > 5
    assert all(len(run.records) <= 31 for run in behind)


# --- what is said of them ---------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.floats(100, 110), min_size=1, max_size=12),
    st.data(),
)
def test_the_numbers_of_the_sentence_are_those_of_the_runs(objectives, draw):
    best = int(np.argmin(objectives))
    stops = [
        Stop.PROGRESS if k == best or draw.draw(st.booleans()) else Stop.BEHIND
        for k in range(len(objectives))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = describe_ends(runs_of(objectives, stops))
    ended = [x for x, stop in zip(objectives, stops, strict=True) if stop is not Stop.BEHIND]
    near = [x for x in ended if x <= min(ended) + 0.1]
    if len(ended) < 2:
        assert text == ""
    else:
        numbers = re.match(r"Of (\d+) starts, (\d+) were .*; (\d+) of them", text)
        assert [int(n) for n in numbers.groups()] == [len(objectives), len(ended), len(near)]
        far = [x for x in ended if x > min(ended) + 0.1]
        assert bool(far) == ("The next best one is lower" in text)
        if far:
            said = float(re.search(r"lower by ([\d.e+]+) in", text)[1])
            assert said == pytest.approx(min(far) - min(ended), rel=0.06)


@pytest.mark.parametrize("solver", ["ml", "map"])
@pytest.mark.parametrize("seed", range(4))
def test_the_sentence_is_true_of_the_result(solver, seed):
    records = random_records(seed, (4, 3, 5, 3, 4), 250, rank=5)
    result = estimate(records, 5, solver, n_init=12, random_state=seed)
    said = re.search(r"Of (\d+) starts, (\d+) were followed to the end; (\d+) of them", result.stop)
    starts, ended, reached = map(int, said.groups())
    assert starts == len(result.starts) == 12
    assert ended == sum(run.stop is not Stop.BEHIND for run in result.starts)
    assert 1 <= reached <= ended
    if solver == "ml" and (
        far := re.search(r"next best one is lower by ([\d.e+]+) in", result.stop)
    ):
        # At the end of exploration; what was lifted afterwards is better still.
        others = sorted(run.objective for run in result.starts if run.stop is not Stop.BEHIND)
        assert others[-1] - others[0] > 0.9 * float(far[1]) - 0.2


def test_a_single_start_says_nothing():
    records = random_records(0, (3, 3, 3), 100)
    assert "followed to the end" not in estimate(records, 2, "ml", n_init=1, random_state=0).stop


def test_a_best_optimum_that_one_of_many_found_is_remarked_on():
    runs = runs_of((100.0, 112.0, 113.0, 115.0, 118.0))
    with pytest.warns(rj.Remark, match="More starts may find a better one: n_init=10"):
        text = describe_ends(runs)
    assert "The next best one is lower by 12 in log-likelihood." in text
    with pytest.warns(rj.Remark, match="use solver='map' with n_init=10, and give"):
        describe_ends(runs, chains=True)


@pytest.mark.parametrize(
    "objectives",
    [
        (100.0, 100.0, 112.0, 113.0, 115.0),  # two have found it
        (100.0, 101.0, 113.0, 115.0, 118.0),  # nearly as good
        (100.0, 112.0, 113.0),  # few starts
        (100.0,) * 5,
    ],
)
def test_what_is_not_serious_is_no_remark(objectives):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "More starts" not in describe_ends(runs_of(objectives))


def test_the_stronger_of_two_crossed_divisions_is_found():
    rng = np.random.default_rng(0)
    one, two = rng.integers(2, size=(2, 600))
    table = {f"a{k}": np.where(rng.random(600) < 0.93, one, 1 - one) for k in range(4)}
    table |= {f"b{k}": np.where(rng.random(600) < 0.92, two, 1 - two) for k in range(4)}
    result = estimate(table, 2, "ml", random_state=0)
    classes = result.pmf.classes(table).argmax(axis=1)
    assert max(np.mean(classes == one), np.mean(classes != one)) > 0.9
