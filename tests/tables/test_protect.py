"""Tables that are handed out: small counts cannot be computed from totals or other tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import rejoint as rj
from rejoint.marginals import Marginals
from rejoint.marginals.protect import protect


def ranges(counts, shown, small, limit):
    """What an attacker who knows all totals of a table can say about each hidden cell."""
    hidden = np.isnan(shown)
    number = np.cumsum(hidden.ravel()).reshape(hidden.shape) - 1
    equations, sums = [], []
    for axis in range(counts.ndim):
        for line, true, at in zip(
            np.moveaxis(hidden, axis, -1).reshape(-1, counts.shape[axis]),
            np.moveaxis(counts, axis, -1).reshape(-1, counts.shape[axis]),
            np.moveaxis(number, axis, -1).reshape(-1, counts.shape[axis]),
            strict=True,
        ):
            if line.any():
                row = np.zeros(hidden.sum())
                row[at[line]] = 1.0
                equations.append(row)
                sums.append(true[line].sum())
    few = small[hidden]
    bounds = [(1, limit - 1) if s else (0, None) for s in few]
    found = []
    for k in np.flatnonzero(few):
        c = np.zeros(hidden.sum())
        c[k] = 1.0
        ends = [
            sign * linprog(sign * c, A_eq=equations, b_eq=sums, bounds=bounds).fun
            for sign in (1, -1)
        ]
        found.append(ends)
    return found


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_totals_do_not_give_small_counts_away(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(3, 6, size=2))
    counts = rng.poisson(rng.gamma(0.6, 20, size=shape)).astype(float)
    counts[0, 0] = 3.0
    tables = Marginals.from_tables({("a", "b"): counts}, kind="counts")
    made = protect(tables, min_count=5)
    small = (counts > 0) & (counts < 5)
    shown = counts.copy()
    shown.ravel()[made.tables.unknown.places] = np.nan
    assert np.isnan(shown[small]).all()
    free = ~np.isnan(shown) & (counts > 0)
    alone = [r for r in ranges(counts, shown, small, 5) if r[1] - r[0] < 1e-6]
    # Where hardly anything is left to hide, nothing more can be done.
    assert not alone or not free.any()


def test_a_larger_table_does_not_give_a_smaller_one_away():
    rng = np.random.default_rng(0)
    cube = rng.integers(6, 40, size=(3, 3, 3)).astype(float)
    pair = cube.sum(axis=2)
    domain = rj.Domain.of({"a": 3, "b": 3, "c": 3})
    flat = np.concatenate([pair.ravel(), cube.ravel()])
    tables = Marginals(domain, ((0, 1), (0, 1, 2)), flat)
    limit = int(pair.min()) + 1  # one cell of the pair is small, none of its parts is by itself
    made = protect(tables, min_count=limit)
    gone = made.tables.unknown_of(0)
    assert gone is not None
    inside = made.tables.unknown_of(1)
    mask = np.zeros(27, dtype=bool)
    mask[inside.places] = True
    for place in gone.places:
        assert mask.reshape(9, 3)[place].sum() >= 2


def test_rounding_is_right_on_average_and_read_back(tmp_path):
    counts = np.full((40, 50), 7.0)
    tables = Marginals.from_tables({("a", "b"): counts})
    made = protect(tables, round_to=5, random_state=0)
    assert set(np.unique(made.tables.flat)) == {5.0, 10.0}
    assert made.tables.flat.mean() == pytest.approx(7.0, abs=0.2)
    made.tables.write(tmp_path / "out")
    assert Marginals.read(tmp_path / "out").rounding.tolist() == [5.0]


def test_shares_cannot_be_protected():
    with pytest.raises(ValueError, match="Only counts can be protected"):
        protect(Marginals.from_tables({("a",): [0.4, 0.6]}), min_count=5)
