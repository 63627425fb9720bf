"""Elementary symmetric polynomials of records: against their definition."""

from itertools import combinations

import numpy as np
import pytest
from paper import polynomials
from paper.polynomials import Polynomials, SparseColumns, symmetric_total

from rejoint.kernels import SparseCodes


def small_records(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    levels = [2, 3, 1, 4, 2]
    codes = np.stack([rng.integers(0, n, size=rows) for n in levels], axis=1).astype(np.int16)
    codes[rng.random(codes.shape) < 0.4] = -1
    codes[0] = -1
    return SparseCodes.of_codes(codes, levels), rng.random(rows), rng.random((sum(levels), 7))


def by_definition(cells, weight, table, order, left_out=None):
    """Sum over records and sets of cells; by level of a variable that is left out, if one is."""
    first = np.concatenate([[0], np.cumsum(cells.levels)])
    size = 1 if left_out is None else cells.levels[left_out]
    found = np.zeros((size, table.shape[1]))
    for i in range(len(cells)):
        mine = cells.cells[cells.starts[i] : cells.starts[i + 1]]
        level = 0
        if left_out is not None:
            own = (mine >= first[left_out]) & (mine < first[left_out + 1])
            if not own.any():
                continue
            level, mine = int(mine[own][0] - first[left_out]), mine[~own]
        for chosen in combinations(mine, order):
            found[level] += weight[i] * np.prod(table[list(chosen)], axis=0)
    return found


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
def test_against_the_definition(order):
    cells, weight, table = small_records()
    found = Polynomials(cells, SparseColumns.of(cells), weight, table, order)
    # Some hundred products of numbers below one, taken out again once: rounding.
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(found.total, by_definition(cells, weight, table, order)[0], **close)
    np.testing.assert_array_equal(symmetric_total(cells, weight, table, order), found.total)
    rng = np.random.default_rng(1)
    for n, size in enumerate(cells.levels):
        np.testing.assert_allclose(
            found.without(n), by_definition(cells, weight, table, order - 1, n), **close
        )
        table[found.rows(n)] = rng.random((size, 7))
        found.replace(n, table[found.rows(n)])
    again = Polynomials(cells, SparseColumns.of(cells), weight, table, order)
    np.testing.assert_allclose(found.state, again.state, **close)


def test_blocks_do_not_change_the_result(monkeypatch):
    cells, weight, table = small_records(9000)
    columns = SparseColumns.of(cells)
    one = Polynomials(cells, columns, weight, table, 3)
    monkeypatch.setattr(polynomials, "BLOCK_ENTRIES", 5000)
    several = Polynomials(cells, columns, weight, table, 3)
    np.testing.assert_allclose(several.state, one.state, rtol=1e-14)
    np.testing.assert_allclose(several.without(3), one.without(3), rtol=1e-11)  # 4,000 terms a sum


def test_what_is_refused():
    cells, weight, table = small_records()
    columns = SparseColumns.of(cells)
    with pytest.raises(ValueError, match="the codes need 12 rows"):
        Polynomials(cells, columns, weight, table[1:], 2)
    with pytest.raises(ValueError, match="order must be at least 1"):
        Polynomials(cells, columns, weight, table, 0)
    with pytest.raises(ValueError, match="there are 60 records"):
        Polynomials(cells, columns, weight[1:], table, 2)
    with pytest.raises(ValueError, match="those of other codes"):
        Polynomials(cells[:-1], columns, weight[:-1], table, 2)
    with pytest.raises(ValueError, match="a row for each level and record"):
        symmetric_total(cells, weight[1:], table, 2)
