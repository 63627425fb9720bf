"""Accelerated EM: as good as plain EM, in fewer passes over the records."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from small_records import random_records, random_start

from rejoint.estimation import Em
from rejoint.estimation.data import InMemory

SHAPE = (2,) * 8


@dataclass(frozen=True, eq=False)
class CountedPasses(InMemory):
    """Data that count the passes over them."""

    calls: list = field(default_factory=list)

    def expect(self, model):
        self.calls.append(1)
        return super().expect(model)


def counted(records):
    data = InMemory.of(records)
    return CountedPasses(data.domain, data.codes, data.weight, 1)


def follow(solver, records, start, passes, target=-np.inf):
    """Step until the objective is down at the target, or passes are used up; how many were used."""
    data = counted(records)
    state = solver.init(data, start)
    # A residual of zero moves no more.
    while len(data.calls) < passes and state.objective > target and state.residual > 1e-13:
        state = solver.step(data, state)
    return state, len(data.calls)


@pytest.fixture(scope="module")
def races():
    """Passes of plain and of accelerated EM to the same likelihood, and whether it was reached."""
    found = []
    for seed in range(7):
        records = random_records(seed, SHAPE, 1000, rank=3, missing=0.2, concentration=1.0)
        start = random_start(seed + 100, SHAPE, 3)
        # Within 0.01 of the log-likelihood that plain EM reaches at length.
        target = follow(Em(memory=0), records, start, 2000)[0].objective + 0.01
        _, plain = follow(Em(memory=0), records, start, 2000, target)
        state, quick = follow(Em(), records, start, 2000, target)
        found.append((plain, quick, state.objective <= target))
    return np.array(found)


def test_the_same_maximum_is_reached(races):
    # From the same start they may climb different hills, now and then.
    assert races[:, 2].sum() >= 6


def test_fewer_passes_most_of_the_time(races):
    # Most of these take plain EM under 100 passes, the first 20 of which are short in any case;
    # benchmarks/acceleration.py has harder ones.
    assert np.median(races[:, 0] / races[:, 1]) >= 1.8


def test_far_fewer_passes_where_plain_steps_are_slow(races):
    slow = races[:, 0] > 500
    assert slow.sum() >= 2
    assert (races[slow, 0] / races[slow, 1]).min() >= 3


def test_passes_are_counted():
    records = random_records(0, SHAPE, 200, rank=3)
    data = counted(records)
    solver = Em()
    state = solver.init(data, random_start(0, SHAPE, 3))
    for _ in range(30):
        state = solver.step(data, state)
        assert state.passes == len(data.calls)


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_end_is_a_fixed_point_of_plain_em(seed, missing):
    records = random_records(seed, (3, 3, 3), 200, missing=missing)
    start = random_start(seed, (3, 3, 3), 2)
    end, _ = follow(Em(), records, start, 600)
    plain = Em(memory=0)
    data = counted(records)
    after = plain.step(data, plain.init(data, end.model))
    # The likelihood is exact to its rounding, the model to the root of that.
    assert abs(after.objective - end.objective) < 1e-9 * end.objective
    np.testing.assert_allclose(after.model.factors, end.model.factors, atol=1e-4)
