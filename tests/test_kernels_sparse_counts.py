"""Tables counted from observed cells: bit for bit those of records with a code for each cell."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import rejoint as rj
from rejoint import kernels
from rejoint.kernels import SparseCodes, count_tables
from rejoint.marginals import count as counting


@st.composite
def problems(draw):
    """Codes with missing values, weights whose sums depend on their order, and some subsets."""
    levels = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    rows = draw(st.integers(0, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.stack([rng.integers(0, n, size=rows) for n in levels], axis=1).astype(np.int16)
    codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.5, 0.9]))] = -1
    weight = rng.random(rows) if draw(st.booleans()) else None
    possible = [s for k in range(1, 5) for s in combinations(range(len(levels)), k)]
    chosen = draw(st.lists(st.sampled_from(possible), min_size=1, unique=True))
    return codes, weight, levels, chosen


@pytest.mark.parametrize("threads", [1, 3])
@given(problem=problems())
def test_the_kernel_counts_as_that_of_codes(problem, threads):
    codes, weight, levels, subsets = problem
    found = kernels.count(SparseCodes.of_codes(codes, levels), weight, levels, subsets, threads)
    np.testing.assert_array_equal(found, kernels.count(codes, weight, levels, subsets))


@given(problem=problems())
def test_the_twin_counts_as_that_of_codes(problem):
    codes, weight, levels, subsets = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_tables, "compiled", None)
        found = kernels.count(SparseCodes.of_codes(codes, levels), weight, levels, subsets)
        expected = kernels.count(codes, weight, levels, subsets)
    np.testing.assert_array_equal(found, expected)


def ratings(rows=3000, items=60, density=0.04, seed=0):
    rng = np.random.default_rng(seed)
    matrix = sparse.random_array(
        (rows, items),
        density=density,
        rng=rng,
        data_sampler=lambda size: rng.integers(1, 4, size=size),
    )
    return rj.SparseRecords.of(matrix, sample_weight=rng.random(rows))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    "asked",
    [
        {"order": 1},
        {"order": 2},
        {"order": [1, 3], "memory_limit": 1e9},
        {"order": 3, "sample": 200, "random_state": 0},
        {"subsets": [("x3", "x1"), "x7", ("x9", "x2", "x4", "x8")]},
    ],
    ids=str,
)
def test_marginals_are_those_of_ordinary_records(asked, weighted):
    cells = ratings()
    if not weighted:
        cells = rj.SparseRecords(cells.domain, cells.codes)
    assert len(cells) * len(cells.domain) > counting.FULL * cells.codes.size  # by cells, that is
    thin, dense = (rj.Marginals.count(data, **asked) for data in (cells, cells.to_records()))
    assert thin.subsets == dense.subsets
    np.testing.assert_array_equal(thin.flat, dense.flat)


@pytest.mark.parametrize("rows", [400, 30_000])
def test_records_of_few_variables_or_many_cells_go_by_codes(rows):
    cells = ratings(rows, items=4, density=0.5)
    thin, dense = (rj.Marginals.count(data, [1, 2, 3]) for data in (cells, cells.to_records()))
    np.testing.assert_array_equal(thin.flat, dense.flat)


def test_chunks_add_up():
    cells = rj.SparseRecords(ratings().domain, ratings().codes)
    whole = rj.Marginals.count(cells, order=2)
    parts = rj.Marginals.count(cells.chunks(700), order=2)
    np.testing.assert_array_equal(parts.flat, whole.flat)


def test_another_domain_and_other_weights():
    cells, weight = ratings(), np.arange(3000.0)
    domain = rj.Domain(tuple(reversed(cells.domain.variables)))
    thin, dense = (
        rj.Marginals.count(data, order=1, domain=domain, sample_weight=weight)
        for data in (cells, cells.to_records())
    )
    assert thin.domain == domain
    np.testing.assert_array_equal(thin.flat, dense.flat)


def test_too_many_tables_are_priced_and_ways_out_named():
    wide = rj.SparseRecords.of_rows([0, 0], ["a", "b"], [1, 2], domain=many_variables())
    with pytest.raises(ValueError, match="All 1,331,334,000 tables of order 3") as said:
        rj.Marginals.count(wide, order=3)
    for way in ("sample=20000", "subsets=", "order=2", "rejoint.estimate"):
        assert way in str(said.value)


def many_variables():
    names = ["a", "b", *(f"v{n}" for n in range(1998))]
    return rj.Domain.of({name: [1, 2, 3, 4, 5] for name in names})


@pytest.mark.parametrize("native", [True, False])
def test_what_the_kernel_refuses(native, monkeypatch):
    if not native:
        monkeypatch.setattr(count_tables, "compiled", None)
    cells = SparseCodes(np.array([0, 2]), np.array([1, 2]), (2, 2))
    with pytest.raises(ValueError, match="weight has shape"):
        kernels.count(cells, np.ones(2), [2, 2], [(0, 1)])
    with pytest.raises(ValueError, match="one is given twice"):
        kernels.count(cells, None, [2, 2], [(0, 1), (1,), (0, 1)])
    with pytest.raises(ValueError, match="other levels"):
        kernels.count(cells, None, [2, 3], [(0, 1)])
