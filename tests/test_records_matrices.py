"""Arrays of numbers: the codes that reading column by column gives."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj

DTYPES = [np.int64, np.int8, np.int32, np.uint8, np.uint64, np.float64, np.float32]


def by_columns(matrix, **how):
    """As a dict of columns, which are read one by one."""
    names = (f"x{n}" for n in range(matrix.shape[1]))
    return rj.Records.of(dict(zip(names, matrix.T, strict=True)), **how)


@st.composite
def arrays(draw):
    """Numbers, holes where there can be some, and cells that are no level now and then."""
    columns, rows = draw(st.integers(1, 4)), draw(st.integers(1, 200))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = 0 if dtype.kind == "u" else draw(st.integers(-2, 3))
    matrix = rng.integers(low, low + draw(st.sampled_from([2, 5, 60])), (rows, columns))
    matrix = matrix.astype(dtype)
    if dtype.kind == "f":
        matrix[rng.random(matrix.shape) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
        matrix[0] = low  # a column without any number is an error
        if draw(st.booleans()):
            matrix[-1, 0] += draw(st.sampled_from([0.5, 100.0, np.inf, -np.inf]))
    elif draw(st.booleans()):
        matrix[-1, 0] = 100
    return np.asfortranarray(matrix) if draw(st.booleans()) else matrix


@given(matrix=arrays(), first=st.integers(-1, 2), size=st.integers(1, 9))
def test_records_are_those_of_the_columns(matrix, first, size):
    domain = rj.Domain.of({f"x{n}": range(first, first + size) for n in range(matrix.shape[1])})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)  # on numbers that are no level
        for how in ({"domain": domain}, {}, {"bins": False}):
            whole, parts = rj.Records.of(matrix, **how), by_columns(matrix, **how)
            assert whole.domain == parts.domain
            assert whole.codes.dtype == parts.codes.dtype
            np.testing.assert_array_equal(whole.codes, parts.codes)


def test_huge_numbers_are_no_levels():
    domain = rj.Domain.of({"a": [0, 1]})
    for cell in (2**40, 2**63, 2**64 - 1):
        with pytest.warns(rj.Remark, match="labels that are not levels"):
            records = rj.Records.of(np.array([[cell]], dtype=np.uint64), domain=domain)
        assert records.codes.tolist() == [[-1]]


def test_what_is_not_known_is_told_as_of_columns():
    domain = rj.Domain.of({"a": [0, 1]})
    with pytest.warns(rj.Remark, match="'a': 1 cell with labels that are not levels"):
        assert rj.Records.of(np.array([[0], [7]]), domain=domain).codes.tolist() == [[0], [-1]]
    with pytest.raises(ValueError, match="row 1: level 7 is not among 0, 1"):
        rj.Records.of(np.array([[0], [7]]), domain=domain, handle_unknown="error")
    with pytest.raises(ValueError, match="handle_unknown"):
        rj.Records.of(np.array([[0], [1]]), domain=domain, handle_unknown="ignore")


def test_an_imputer_reads_arrays_as_frames():
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    imputer = rj.JointImputer(rank=2, solver="map", random_state=0).fit(X)
    by_column = imputer.transform(pd.DataFrame(X))
    np.testing.assert_array_equal(imputer.transform(X), by_column.to_numpy())
