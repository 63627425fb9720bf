"""Records on a cluster: the same results as on one machine, also where workers die."""

import os
import signal
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import rejoint as rj
from rejoint.estimation import Bayes, Em, estimate
from rejoint.estimation.data import Parted
from rejoint.estimation.part_summary import add_up, summarize_part
from rejoint.model import Model
from rejoint.records import formats as row_groups
from rejoint.solver import Limits

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytest.importorskip("pandas")

# Dask and what it uses warn of what they will change themselves, not of what is done here.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LONG = 300.0  # seconds: a busy machine must not fail the tests


@contextmanager
def two_workers():
    """Two workers, processes of their own, which a nanny starts anew where they die."""
    from distributed import Client, LocalCluster

    with (
        dask.config.set(
            {
                "distributed.comm.timeouts.connect": LONG,
                "distributed.comm.timeouts.tcp": LONG,
                "distributed.scheduler.worker-ttl": None,
            }
        ),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port: others may run the same tests
            memory_limit=None,
        ) as cluster,
        Client(cluster, timeout=LONG) as client,
    ):
        client.wait_for_workers(2, timeout=LONG)
        yield client


@pytest.fixture(scope="module")
def frame():
    """Text, numbers, holes and weights."""
    truth = rj.LowRankPMF(
        [0.5, 0.3, 0.2],
        list(np.random.default_rng(0).dirichlet(np.ones(3), (5, 3)).transpose(0, 2, 1)),
    )
    sample = rj.datasets.remove_cells(truth.sample(2000, random_state=0), 0.2, random_state=0)
    found = sample.to_frame("pandas")
    found["x0"] = found["x0"].map({0: "low", 1: "mid", 2: "high"})
    found["times"] = np.random.default_rng(1).integers(0, 4, len(found)).astype(float)
    return found


@pytest.fixture(scope="module")
def records(frame):
    return rj.Records.of(frame, sample_weight="times")


def quiet(line):
    pass


def problem_of(scan):
    summary = add_up(scan.map(partial(summarize_part, seed=0, size=10**6, budget=0)))
    return Parted(scan.domain, scan.threads, scan, summary)


def model_of(records, rank):
    rng = np.random.default_rng(0)
    columns = [rng.dirichlet(np.ones(size), rank).T for size in records.domain.shape]
    return Model.of(np.full(rank, 1 / rank), columns)


def numbers_of(frame):
    numbers = frame["x0"].map({"low": 0, "mid": 1, "high": 2})
    return frame.drop(columns="times").assign(x0=numbers)


def collections(frame, tmp_path):
    import dask.array
    import dask.bag
    import dask.dataframe

    for k in range(10):  # more than are added up at once
        part = frame.iloc[200 * k : 200 * (k + 1)]
        part.to_parquet(tmp_path / f"{k}.parquet")
    rows = [{k: v for k, v in row.items() if v == v} for row in frame.to_dict("records")]
    yield "frame", dask.dataframe.from_pandas(frame, npartitions=10)
    yield "bag", dask.bag.from_sequence(rows, npartitions=3)
    yield "folder", tmp_path
    numbers = numbers_of(frame).to_numpy(dtype=float)
    yield "array", dask.array.from_array(numbers, chunks=(700, 2))


def check_all_collections(client, frame, records, tmp_path):
    model = model_of(records, 4)
    for kind, data in collections(frame, tmp_path):
        local = records
        options = {"sample_weight": "times"}
        if kind == "array":
            local, options = rj.Records.of(numbers_of(frame)), {}
        scan = rj.distributed.scan(data, client=client, **options)
        assert scan.domain == local.domain, kind
        assert scan.rows == len(local)
        mine, other = rj.Marginals.count(scan, order=3), rj.Marginals.count(local, order=3)
        np.testing.assert_array_equal(mine.flat, other.flat)  # bit for bit
        found, expected = (p.expect(model) for p in (problem_of(scan), problem_of(rj.scan(local))))
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
        np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-10)
        fetched = list(scan)
        np.testing.assert_array_equal(np.concatenate([p.codes for p in fetched]), local.codes)


def check_row_groups(client, frame, records, path):
    """One file, on both workers, in pieces; the last group is shorter, small ones are joined."""
    frame.to_parquet(path, row_group_size=130)  # 16 groups of seven columns
    scan = rj.distributed.scan(path, sample_weight="times", memory=0, client=client)
    assert len(scan.parts) == 8  # 1,000 cells are more than one group has
    holders = {worker for found in client.who_has(scan.parts).values() for worker in found}
    assert len(holders) == 2
    assert scan.domain == records.domain
    mine, other = rj.Marginals.count(scan, order=3), rj.Marginals.count(records, order=3)
    np.testing.assert_array_equal(mine.flat, other.flat)  # bit for bit
    np.testing.assert_array_equal(np.concatenate([p.codes for p in scan]), records.codes)
    model = model_of(records, 4)
    found, expected = (p.expect(model) for p in (problem_of(scan), problem_of(rj.scan(records))))
    np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-10)
    options = {"rank": 3, "solver": "ml", "n_init": 2, "random_state": 0}
    one, two = (
        estimate(scan, **options),
        estimate(rj.scan(lambda: iter(list(scan)), memory=0), **options),
    )
    assert one.log_likelihood == pytest.approx(two.log_likelihood, rel=1e-10)


def check_fits(client, frame, records):
    import dask.dataframe

    data = dask.dataframe.from_pandas(frame, npartitions=4)
    scan = rj.distributed.scan(data, sample_weight="times", memory=0, client=client)
    here = rj.scan(lambda: iter(list(scan)), memory=0)
    options = {"rank": 3, "solver": "ml", "n_init": 2, "random_state": 0}
    mine, other = estimate(scan, **options), estimate(here, **options)
    # The sums are taken in the same order or nearly so; rounding grows over the steps.
    assert mine.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-10)
    for one, two in zip(mine.pmf.factors, other.pmf.factors, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    kinds = {"x1": "ordinal", "x3": "ordinal"}
    scan = rj.distributed.scan(data, sample_weight="times", kinds=kinds, memory=0, client=client)
    here = rj.scan(lambda: iter(list(scan)), memory=0)
    options |= {"solver": "map", "smooth": True}
    mine, other = estimate(scan, **options), estimate(here, **options)
    assert "smooth" in mine.choice.lower()  # or not, as held-out records say
    assert mine.choice == other.choice
    assert mine.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-10)
    held = rj.distributed.scan(data, sample_weight="times", client=client)
    one, two = estimate(held, 2, "map", random_state=0), estimate(records, 2, "map", random_state=0)
    np.testing.assert_array_equal(one.pmf.weights, two.pmf.weights)


def check_draws(client, data):
    """Each part has chance of its own, wherever it is: the same draws as here, bit for bit."""
    scan = rj.distributed.scan(data, sample_weight="times", memory=0, client=client)
    assert len(scan.parts) > 8  # which are added up by eight
    model = model_of(scan, 3)
    there, here = problem_of(scan), problem_of(rj.scan(lambda: iter(list(scan)), memory=0))
    one, two = (p.draw(model, np.random.default_rng(0)).counts for p in (there, here))
    np.testing.assert_array_equal(one, two)
    solver = Bayes(chains=1, burn_in=2, draws=3, thin=1)
    assert len(estimate(scan, 2, solver, random_state=0).posterior.draws) == 3


def check_a_worker_that_is_killed(client, data, solver, monkeypatch):
    """In the middle of a pass: one sum is here, others are not or were on that worker."""
    scan = rj.distributed.scan(data, sample_weight="times", memory=0, client=client)
    start = estimate(rj.scan(lambda: iter(list(scan))), 3, "map", n_init=1, random_state=0).pmf
    expected = estimate(scan, 3, solver, start=start, random_state=0)
    real, passes = type(scan).map, []

    def killing(self, function, skip=0, report=None, numbered=False):
        found = real(self, function, skip, report, numbered=numbered)
        passes.extend([1] if numbered == isinstance(solver, Bayes) else [])
        yield next(found)
        if len(passes) == 3:
            pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        yield from found

    with monkeypatch.context() as patch:
        patch.setattr(type(scan), "map", killing)
        found = estimate(scan, 3, solver, start=start, random_state=0)
    assert len(passes) > 3
    np.testing.assert_array_equal(found.pmf.weights, expected.pmf.weights)  # bit for bit
    assert found.log_likelihood == expected.log_likelihood
    for one, two in zip(found.pmf.draws, expected.pmf.draws, strict=True):
        np.testing.assert_array_equal(one.weights, two.weights)


def check_starts_and_ranks_on_workers(client, records):
    some = rj.Records(records.domain, records.codes[:500])
    options = {"solver": "map", "n_init": 2, "random_state": 0}
    spread = rj.distributed.executor(client)
    one, two = estimate(some, **options, executor=spread), estimate(some, **options)
    np.testing.assert_array_equal(one.pmf.weights, two.pmf.weights)
    np.testing.assert_array_equal(one.selection.scores, two.selection.scores)


def check_words(client):
    import dask.array

    with pytest.raises(
        TypeError, match="takes a Dask DataFrame, Bag or Array, or paths, not a int"
    ):
        rj.distributed.scan(3, client=client)
    with pytest.raises(ValueError, match="must have 2 axes, not 1"):
        rj.distributed.scan(dask.array.zeros(3), client=client)
    with pytest.raises(TypeError, match="apply to files only"):
        rj.distributed.scan(dask.array.zeros((3, 2)), columns=["a"], client=client)


def test_on_a_cluster(frame, records, tmp_path, monkeypatch):
    """One test, since a cluster takes seconds to start, and tests of a file may be shared out."""
    import dask.dataframe

    monkeypatch.setattr(row_groups, "LEAST_PIECE_CELLS", 1000)
    with two_workers() as client:
        check_all_collections(client, frame, records, tmp_path)
        check_row_groups(client, frame, records, tmp_path / "one.parquet")
        check_fits(client, frame, records)
        check_starts_and_ranks_on_workers(client, records)
        check_words(client)
        many = dask.dataframe.from_pandas(frame, npartitions=20)
        check_draws(client, many)
        if hasattr(signal, "SIGKILL"):
            steps = Em(limits=Limits(max_steps=8, exact=-1.0))
            check_a_worker_that_is_killed(client, many, steps, monkeypatch)
            frame.to_parquet(tmp_path / "two.parquet", row_group_size=80)
            sweeps = Bayes(chains=1, burn_in=1, draws=3, thin=1)
            check_a_worker_that_is_killed(client, tmp_path / "two.parquet", sweeps, monkeypatch)


def test_without_a_cluster(monkeypatch):
    import distributed

    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ValueError, match="There is no cluster: start with client"):
        rj.distributed.scan("a.csv")


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ImportError, match=r"Clusters need Dask: pip install 'rejoint\[distributed\]'"
    ):
        rj.distributed.executor()
