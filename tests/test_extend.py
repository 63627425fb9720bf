"""What the pages "add a solver", "a loss", "a file format", "another engine" promise."""

import gzip
import importlib.util
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main
from rejoint.estimation import Em
from rejoint.factorization import Limits
from rejoint.records import add_format

FOLDER = Path(__file__).parents[1] / "docs" / "extend"


def load(name: str) -> ModuleType:
    """A file of docs/extend as a module."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


my_solver, my_loss, my_format, my_engine = map(
    load, ("my_solver", "my_loss", "my_format", "my_engine")
)


@pytest.fixture(scope="module")
def truth() -> rj.LowRankPMF:
    factor = [[0.8, 0.1], [0.1, 0.2], [0.1, 0.7]]
    return rj.LowRankPMF([0.4, 0.6], [factor] * 5)


@pytest.fixture(scope="module")
def records(truth: rj.LowRankPMF) -> rj.Records:
    return rj.datasets.remove_cells(truth.sample(1000, random_state=0), 0.1, random_state=0)


@pytest.fixture(scope="module")
def tables(truth: rj.LowRankPMF) -> rj.Marginals:
    return rj.Marginals.count(truth.sample(1000, random_state=0), order=3)


def beyond_memory(records: rj.Records) -> rj.Scan:
    """The same records in parts of 100, none of which is held."""
    return rj.scan(records, size=100, memory=0)


# -- A solver ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lambda records: records, beyond_memory])
def test_a_solver_of_records_reaches_the_maximum_of_em(records, form):
    # The number of nats that Em itself stops at.
    plain = rj.estimate(form(records), 2, my_solver.PlainEm(), random_state=0)
    quick = rj.estimate(form(records), 2, Em(limits=Limits(progress=1e-12)), random_state=0)
    assert plain.log_likelihood == pytest.approx(quick.log_likelihood, rel=0, abs=1e-4)
    assert {line.solver for line in plain.history} == {"plain-em"}
    assert "PlainEm was requested" in plain.choice


def test_the_objective_of_a_solver_never_rises(records):
    found = rj.estimate(records, 3, my_solver.PlainEm(), n_init=1, random_state=0).history
    steps = [pair for pair in pairwise(found) if pair[1].step == pair[0].step + 1]
    assert len(steps) > 50
    # Rounding of a sum over a thousand records of some nats each.
    assert max(after.objective - before.objective for before, after in steps) < 1e-9


def test_a_solver_is_used_by_the_choice_of_a_rank(records):
    found = rj.rank.select(records, range(1, 4), solver=my_solver.PlainEm(), random_state=0)
    assert found.rank == 2


@pytest.mark.parametrize("solver", [my_solver.PlainEm(), my_solver.ExponentiatedGradient()])
def test_an_estimator_takes_a_solver_for_records_or_for_tables(records, solver):
    found = rj.JointPMF(rank=2, solver=solver, n_init=2, random_state=0).fit(records)
    assert found.pmf_.rank == 2


def test_a_solver_of_tables_lowers_any_loss(truth):
    exact = rj.Marginals.from_pmf(truth, order=3)
    for loss in ("squares", "kl", my_loss.Hellinger()):
        solver = my_solver.ExponentiatedGradient()
        found = rj.factorize(exact, 2, solver, loss=loss, start="random", random_state=0)
        assert found.history[-1].solver == "exponentiated-gradient"
        # A first-order method: a step from there gains less than 1e-8 of the objective.
        assert rj.metrics.total_variation(truth, found.pmf) < 1e-2


def test_a_solver_is_refused_where_the_problem_lacks_what_it_needs(records, tables):
    with pytest.raises(ValueError, match="'plain-em' needs expect, which TableProblem"):
        rj.factorize(tables, 2, my_solver.PlainEm(), random_state=0)
    with pytest.raises(ValueError, match="'exponentiated-gradient' needs gradient, which InMemory"):
        rj.estimate(records, 2, my_solver.ExponentiatedGradient(), random_state=0)


# -- A loss -----------------------------------------------------------------------------------


def test_slope_and_curvature_are_derivatives_of_the_value():
    loss, rng, step = my_loss.Hellinger(), np.random.default_rng(0), 1e-6
    table, model = rng.dirichlet(np.full(6, 5.0), size=2)
    both = step * np.eye(6), -step * np.eye(6)
    up, down = ([loss.value(table, row, 1.0) for row in model + move] for move in both)
    # Central differences: rounding 1e-16 / step, and the third derivative times step^2.
    slopes = np.subtract(up, down) / (2 * step)
    np.testing.assert_allclose(loss.slope(table, model.copy()), slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(table, table), 1.0 / table)
    after, before = (np.diag([loss.slope(table, row) for row in table + move]) for move in both)
    np.testing.assert_allclose((after - before) / (2 * step), 1.0 / table, rtol=1e-6)
    assert loss.value(table, table, 1.0) == 0.0


def test_the_error_of_a_loss_bounds_that_of_the_tables():
    loss, rng = my_loss.Hellinger(), np.random.default_rng(1)
    for table, model in rng.dirichlet(np.full(8, 0.3), size=(200, 2)):
        bound = loss.error(loss.value(table, model, 1.0), table @ table)
        assert np.linalg.norm(table - model) <= bound * np.linalg.norm(table)


def test_a_loss_is_minimized(tables):
    loss = my_loss.Hellinger()
    found = rj.factorize(tables, 2, loss=loss, random_state=0)
    assert found.history[-1].solver == "newton"

    def value(pmf: rj.LowRankPMF) -> float:
        pairs = zip(tables.subsets, range(len(tables.subsets)), strict=True)
        return sum(loss.value(tables.shares(i), np.asarray(pmf.marginal(s)), 1.0) for s, i in pairs)

    best = value(found.pmf)
    assert best == pytest.approx(found.history[-1].objective, rel=1e-9)
    assert best < value(rj.factorize(tables, 2, random_state=0).pmf)
    assert best < value(rj.factorize(tables, 2, loss="kl", random_state=0).pmf)
    rng = np.random.default_rng(0)
    for _ in range(10):  # and no model nearby is better
        factors = [f * np.exp(0.01 * rng.normal(size=f.shape)) for f in found.pmf.factors]
        near = rj.LowRankPMF(found.pmf.weights, [f / f.sum(axis=0) for f in factors], tables.domain)
        assert value(near) > best


def test_a_loss_refuses_tables_that_it_cannot_compare():
    problem = SimpleNamespace(tables=(np.array([0.5, 0.6, -0.1]),))
    with pytest.raises(ValueError, match="some cells are negative"):
        my_loss.Hellinger().check(problem)


# -- A file format ----------------------------------------------------------------------------

ARFF = """% of a study
@relation people
@attribute 'smokes now' {yes, no}
@attribute age numeric
@attribute town string

@DATA
yes,40,'Bad Ems, north'
?,50,Ulm
no,?,Ulm
"""


@pytest.fixture
def arff(tmp_path: Path) -> Path:
    path = tmp_path / "people.arff"
    path.write_text(ARFF + "yes,40,Ulm\nno,50,Ulm\n" * 50)
    return path


@pytest.fixture
def expected() -> rj.Records:
    columns = {
        "smokes now": ["yes", None, "no", *["yes", "no"] * 50],
        "age": [40.0, 50.0, None, *[40.0, 50.0] * 50],
        "town": ["Bad Ems, north", *["Ulm"] * 102],
    }
    return rj.Records.of(columns)


def test_a_format_reads_the_same_records_at_every_door(arff, expected):
    whole = rj.read(arff)
    assert whole.domain == expected.domain
    np.testing.assert_array_equal(whole.codes, expected.codes)
    for parts in (rj.read_chunks(arff, size=10), rj.scan(arff, size=10), rj.scan(arff.parent)):
        found = list(parts)
        assert {part.domain for part in found} == {expected.domain}
        np.testing.assert_array_equal(np.vstack([part.codes for part in found]), expected.codes)
    packed = arff.with_suffix(".arff.gz")
    packed.write_bytes(gzip.compress(arff.read_bytes()))
    np.testing.assert_array_equal(rj.read(packed).codes, expected.codes)
    by_name = arff.rename(arff.with_suffix(".data"))
    assert len(rj.read(by_name, format="arff", columns=["age"])) == len(expected)


def test_the_command_line_takes_a_format(arff, tmp_path):
    data, model = arff.rename(arff.with_suffix(".data")), tmp_path / "people.rejoint"
    arguments = ["fit", str(data), "-o", str(model), "--rank", "2"]
    found = CliRunner().invoke(main, [*arguments, "--format", "arff"])
    assert found.exit_code == 0, found.output
    assert rj.load(model).domain.names == ("smokes now", "age", "town")
    refused = CliRunner().invoke(main, [*arguments, "--format", "xyz"])
    assert refused.exit_code == 2
    assert "'xyz' is not one of 'csv', 'tsv', 'parquet', 'arrow', 'jsonl', 'arff'" in refused.output


def test_faults_of_a_file_name_the_line(tmp_path):
    path = tmp_path / "short.arff"
    path.write_text(ARFF + "yes,40\n")
    with pytest.raises(ValueError, match=r"short\.arff, line 11: 2 cells, and there are 3"):
        rj.read(path)


def test_a_file_without_rows_has_columns_still(tmp_path):
    path = tmp_path / "empty.arff"
    path.write_text(ARFF[: ARFF.index("yes,40")])
    (block,) = my_format.read_arff(rj.records.files.Source(path), None)
    assert block == {"smokes now": [], "age": [], "town": []}


def test_add_format_refuses_what_would_be_read_wrongly(arff):
    with pytest.raises(ValueError, match="'csv' already exists"):
        add_format("csv", my_format.read_arff)
    for wrong in (".arff", ["arff"]):
        with pytest.raises(ValueError, match=r"suffixes must be a list of texts such as '\.xyz'"):
            add_format("other", my_format.read_arff, suffixes=wrong)
    with pytest.raises(ValueError, match="'other' is not supported"):
        rj.read(arff, format="other")


def test_no_block_of_a_reader_is_lost(arff, monkeypatch):
    in_tens = lambda source, size: my_format.read_arff(source, size or 10)  # noqa: E731
    monkeypatch.setitem(rj.records.formats.READERS, "arff", in_tens)
    with pytest.raises(ValueError, match="must give all rows in one block, not in 11"):
        rj.read(arff)


# -- Another engine ---------------------------------------------------------------------------


def same_fit(one: rj.FitResult, other: rj.FitResult) -> None:
    assert one.pmf.rank == other.pmf.rank
    arrays = [(found.pmf.weights, *found.pmf.factors) for found in (one, other)]
    for a, b in zip(*arrays, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("solver", ["ml", "bayes"])
def test_an_engine_gives_the_same_fit(records, solver):
    scan, options = beyond_memory(records), {"n_init": 2, "random_state": 0}
    expected = rj.estimate(scan, 2, solver, **options)
    with ThreadPoolExecutor(2) as pool:
        found = rj.estimate(my_engine.pooled(scan, pool), 2, solver, **options)
    same_fit(found, expected)
    assert found.stop == expected.stop
    assert "of 1,000 records" in found.stop  # of a fit beyond memory


def test_an_engine_of_processes_counts_the_same_tables(records):
    scan = beyond_memory(records)
    expected = rj.Marginals.count(scan, order=2)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = rj.Marginals.count(my_engine.pooled(scan, pool), order=2)
    for names in expected.subsets:
        np.testing.assert_array_equal(found[names], expected[names])


def test_a_map_keeps_order_numbers_and_what_is_skipped(records):
    scan, lines = replace(beyond_memory(records), rows=len(records)), list[str]()
    with ThreadPoolExecutor(2) as pool:
        engine = my_engine.pooled(scan, pool, ahead=3)
        assert list(engine.map(len)) == list(scan.map(len)) == [100] * 10
        numbers = engine.map(lambda part, number: number, 4, lines.append, numbered=True)
        assert list(numbers) == [4, 5, 6, 7, 8, 9]
        assert lines[0].startswith("50% of 1,000 records")
        first = engine.map(len)
        next(first)
        first.close()  # parts that wait are not worked on


def test_a_map_raises_what_went_wrong_elsewhere(records):
    def fail(part: rj.Records) -> None:
        raise OSError("the disk is gone")

    with ThreadPoolExecutor(2) as pool, pytest.raises(OSError, match="the disk is gone"):
        list(my_engine.pooled(beyond_memory(records), pool).map(fail))


def test_an_executor_gives_the_same_fit(records):
    sent = []

    class Counted(my_engine.MyExecutor):
        def submit(self, fn, /, *args, **kwargs):
            sent.append(fn)
            return super().submit(fn, *args, **kwargs)

    options = {"n_init": 3, "random_state": 0}
    same_fit(
        rj.estimate(records, 2, "ml", executor=Counted(), **options),
        rj.estimate(records, 2, "ml", **options),
    )
    before = len(sent)
    assert before > 3  # all starts, then those that are followed further
    chosen = rj.rank.select(records, [1, 2], executor=Counted(), random_state=0)
    assert len(sent) > before
    assert chosen.rank == rj.rank.select(records, [1, 2], random_state=0).rank


def test_an_executor_passes_errors_on():
    with pytest.raises(ZeroDivisionError):
        my_engine.MyExecutor().submit(lambda: 1 // 0).result()
