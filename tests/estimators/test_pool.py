"""Rubin's rules: by hand, by simulation, and their words."""

import numpy as np
import pandas as pd
import pytest

import rejoint as rj


def test_by_hand():
    found = rj.pool([2.0, 4.0, 3.0], [1.0, 1.0, 4.0])
    within, between = 2.0, 1.0
    total = within + 4 / 3 * between
    share = 4 / 3 * between / total
    assert found.estimate == 3.0
    assert found.std_error == pytest.approx(np.sqrt(total))
    assert found.df == pytest.approx(2 / share**2)
    assert found.missing_information == pytest.approx(share + 2 / (found.df + 3) * (1 - share))
    # t with 12.5 degrees of freedom: 0.95 of it is below 1.7765, between 1.782 (12) and 1.771 (13).
    assert found.high - 3 == pytest.approx(1.7765 * np.sqrt(total), rel=2e-3)


def test_few_degrees_of_freedom_remain_few():
    # Barnard and Rubin: with a complete-data df of 10 the pooled one is below 10.
    assert rj.pool([1.0, 1.01], [1.0, 1.0]).df > 1000
    assert rj.pool([1.0, 1.01], [1.0, 1.0], df=10).df < 10


def test_names_and_arrays():
    rows = [{"a": 1.0, "b": 2.0}, {"b": 2.2, "a": 1.2}]
    pooled = rj.pool(rows, [{"a": 0.1, "b": 0.2}] * 2)
    assert pooled["b"].estimate == pytest.approx(2.1)
    series = rj.pool([pd.Series(row) for row in rows], [pd.Series({"a": 0.1, "b": 0.2})] * 2)
    assert series.names == ("a", "b")
    np.testing.assert_allclose(series.std_error, pooled.std_error)
    arrays = rj.pool([[1.0, 2.0], [1.2, 2.2]], [[0.1, 0.2]] * 2)
    np.testing.assert_allclose(arrays.estimate, pooled.estimate)
    assert "a: 1.1" in repr(pooled)
    with pytest.raises(KeyError, match="no estimate 'c'"):
        pooled["c"]


def test_nothing_missing_is_nothing_lost():
    pooled = rj.pool([1.0, 1.0], [0.04, 0.04])
    assert pooled.std_error == pytest.approx(0.2)
    assert pooled.missing_information == pytest.approx(0.0, abs=1e-9)
    assert pooled.high == pytest.approx(1 + 1.645 * 0.2, abs=1e-3)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (([1.0], [1.0]), "two tables or more"),
        (([1.0, 2.0], [1.0]), "one variance for each estimate"),
        (([1.0, 2.0], [1.0, -1.0]), "not negative"),
        (([1.0, np.nan], [1.0, 1.0]), "must be finite"),
        (([{"a": 1}, {"b": 1}], [{"a": 1}] * 2), "same names"),
    ],
)
def test_words(args, words):
    with pytest.raises(ValueError, match=words):
        rj.pool(*args)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        rj.pool([1.0, 2.0], [1.0, 1.0], level=90)
