"""Too little and too much: data in which nothing varies, numbers beyond those of a float."""

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main

DATA = {
    "one column": {"a": ["x", "y", "x", "y", "z"]},
    "one column that is constant": {"a": ["x"] * 5},
    "one row": {"a": ["x"], "b": ["y"]},
    "constant columns": {"a": ["x"] * 5, "b": ["y"] * 5},
    "one column that varies": {"a": ["x", "y", "x", "y", "z"], "b": ["y"] * 5},
}
EACH = pytest.mark.parametrize("data", DATA.values(), ids=DATA)
BINARY = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 20_000)


def shares(data):
    """The shares of the first column."""
    _, counts = np.unique(data["a"], return_counts=True)
    return counts / counts.sum()


@EACH
def test_default_fits(data):
    result = rj.estimate(data, random_state=0)
    assert result.pmf.rank == rj.rank.select(data, random_state=0).rank == 1
    # The posterior mean is drawn to equal shares by a prior that weighs about a record.
    np.testing.assert_allclose(result.pmf.marginal("a"), shares(data), atol=0.1)


@EACH
def test_default_estimators(data):
    pmf = rj.JointPMF(random_state=0).fit(data).pmf_
    np.testing.assert_allclose(pmf.marginal("a"), shares(data), atol=0.1)
    assert rj.JointImputer(random_state=0).fit_transform(data) is not None


@pytest.mark.filterwarnings("ignore:The tables fall into 2 groups:rejoint.Remark")
@EACH
@pytest.mark.parametrize("order", [1, 2])
def test_default_factorization_of_tables(data, order):
    tables = rj.Marginals.count(data, order=min(order, len(data)))
    pmf = rj.factorize(tables, random_state=0).pmf
    # Tables of a sample are met up to the prior of their effects.
    np.testing.assert_allclose(pmf.marginal("a"), shares(data), atol=1e-3)


@EACH
def test_command_line(data, tmp_path):
    rows = zip(*data.values(), strict=True)
    lines = [",".join(data), *map(",".join, rows)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    model = str(tmp_path / "model.rejoint")
    done = CliRunner().invoke(main, ["fit", str(tmp_path / "data.csv"), "-o", model])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(rj.load(model).marginal("a"), shares(data), atol=0.1)


def test_tables_beyond_memory_are_refused_whatever_their_size():
    with pytest.raises(ValueError, match=r"20,000 variables would have 10\^6020 cells"):
        BINARY.to_dense()
    with pytest.raises(ValueError, match=r"would have 10\^6020 cells"):
        BINARY.marginal(BINARY.domain.names)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # classes of a single table are not unique
def test_table_whose_sum_is_no_number():
    table = [[1e308, 1e308], [1e308, 3e307]]
    for scale in (1.0, 1e-8):  # infinite; finite, but beyond what can be saved
        with pytest.raises(ValueError, match=r"\('a', 'b'\) adds up to more than 1e\+200"):
            rj.Marginals.from_tables({("a", "b"): np.multiply(table, scale)})
    small = rj.Marginals.from_tables({("a", "b"): np.divide(table, 1e120)})
    found = rj.factorize(small, 2, random_state=0).pmf.to_dense()
    np.testing.assert_allclose(found, np.divide(table, 1e308) / 3.3, atol=1e-9)


@pytest.mark.parametrize("weight", [1e308, 1.0])
def test_weights_whose_sum_is_no_number(weight):
    with pytest.raises(ValueError, match=r"sample_weight adds up to more than 1e\+200"):
        rj.Records.of({"a": ["x", "y"]}, sample_weight=[1e308, weight])


@pytest.mark.parametrize("column", [{"x", "y"}, frozenset({1, 2}), {1: "x", 2: "y"}])
def test_values_without_rows_are_no_column(column):
    with pytest.raises(TypeError, match=r"Variable 'a' must be a column .* belong to no row"):
        rj.Records.of({"a": column, "b": [1, 2]})


def test_a_set_of_rows_is_no_table():
    with pytest.raises(TypeError, match="not of set"):
        rj.Records.of({("a", 1), ("b", 2)})


@pytest.mark.parametrize("name", ["rank", "solver"])
@pytest.mark.parametrize("fit", [rj.estimate, rj.factorize])
def test_data_in_the_place_of_an_option(fit, name):
    """As of ``estimate(X, y)``, from the habit of scikit-learn."""
    data = rj.Records.of({"a": [0, 1, 1], "b": [1, 0, 1]})
    data = rj.Marginals.count(data, order=2) if fit is rj.factorize else data
    frame = pytest.importorskip("pandas").DataFrame({"a": [1, 2]})
    with pytest.raises((TypeError, ValueError), match="a DataFrame"):
        fit(data, **{"rank": 1, name: frame})


def test_frames_that_are_no_arrow_stream():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1, "x", None, 2.5]})
    with pytest.raises(ValueError, match=r"scan cannot read the DataFrame .* use Records\.of"):
        rj.scan(frame)


def test_whole_numbers_beyond_floats_have_no_mean():
    with pytest.raises(ValueError, match=r"'a' has levels beyond 1\.8e308"):
        rj.Variable("a", (1, 10**400)).numeric  # noqa: B018


@pytest.mark.parametrize("values", [[np.inf, -np.inf, 0.0, 1.5], [5e-324, 1e308, 1.0, 2.0]])
def test_numbers_without_a_mean_are_imputed_as_levels(values):
    columns = {"a": [*values * 10, None], "b": [*"xyxy" * 10, "x"]}
    imputer = rj.JointImputer(rank=2, solver="map", n_init=1, random_state=0).fit(columns)
    assert imputer.impute(columns)["a"][-1] in values


@pytest.mark.parametrize("column", [pl.Series("a", ["x", None]), pa.chunked_array([["x", None]])])
def test_a_single_column_is_no_table_for_estimators(column):
    with pytest.raises(ValueError, match="Expected 2D array"):
        rj.JointImputer(rank=1, solver="map").fit(column)


@pytest.mark.parametrize("cell", [1j, 10**400])
def test_cells_that_are_no_numbers(cell):
    with pytest.raises(ValueError, match=r"\('a',\): its cells must be numbers"):
        rj.Marginals.from_tables({("a",): [cell, 1]})


def test_arguments_of_another_kind():
    p = rj.datasets.asia()
    with pytest.raises(TypeError, match=r"prob needs an event, a dict such as {'asia': 'yes'}"):
        p.prob(["smoke"])
    with pytest.raises(TypeError, match="A domain is made of a dict from names to levels"):
        rj.Domain.of(None)
    with pytest.raises(TypeError, match="rake needs the known tables as Marginals"):
        rj.rake(p.sample(5, random_state=0), 5)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there are no devices here")
def test_a_model_is_written_to_a_device():
    rj.datasets.asia().save("/dev/null")
