"""Cost is told before it is spent: beyond the machine's memory it is refused, minutes are said."""

from importlib import import_module

import numpy as np
import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint import cost
from rejoint.cli import main
from rejoint.cost import Cost

RECORDS = rj.Records.of(np.random.default_rng(0).integers(0, 3, (60, 4)))
TABLES = rj.Marginals.count(RECORDS, order=2)


class Begun(Exception):
    """The long part has begun."""


@pytest.fixture
def begins(monkeypatch):
    """Fits and counts stop where their long part would begin."""

    def begin(*args, **options):
        raise Begun

    for module, name in (
        ("rejoint.estimation.estimate", "smooth_data"),
        ("rejoint.factorization.factorize", "fit_tables"),
        ("rejoint.factorization.complete_approximately", "fit_smooth"),
        ("rejoint.marginals.marginals", "count_all"),
    ):
        monkeypatch.setattr(import_module(module), name, begin)


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: rj.estimate(RECORDS, 10**9), r"1,000,000,000 classes .* 3.1 TB .* a smaller rank"),
        (lambda: rj.factorize(TABLES, 10**9), r"rank 1,000,000,000 .* 5.8 TB .* a smaller rank"),
        (
            lambda: rj.JointClassifier(10**30).fit(RECORDS.codes, [0, 1] * 30),
            r" TB .* a smaller rank",
        ),
        (lambda: rj.JointImputer(10**30).fit(RECORDS), r" TB .* a smaller rank"),
    ],
    ids=["estimate", "factorize", "classifier", "imputer"],
)
@pytest.mark.usefixtures("begins")
def test_beyond_memory_is_refused_before_it_begins(fit, words):
    with pytest.raises(MemoryError, match=words):
        fit()


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: rj.Marginals.count(RECORDS, 2), "Counting 60 records into 6 tables takes 10 min"),
    ],
    ids=["count"],
)
@pytest.mark.usefixtures("begins")
def test_minutes_are_said_before_they_begin(monkeypatch, fit, words):
    monkeypatch.setattr(cost, "machine_memory", lambda: 1e15)
    monkeypatch.setattr("rejoint.kernels.available_threads", lambda: 1)
    monkeypatch.setattr("rejoint.marginals.count.TABLE_SECONDS", 100.0)
    with pytest.warns(rj.Remark, match=words), pytest.raises(Begun):
        fit()


def test_command_line(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).integers(0, 3, (60, 4)).astype(str)
    (tmp_path / "data.csv").write_text("a,b,c,d\n" + "\n".join(map(",".join, rows)) + "\n")
    data, model = str(tmp_path / "data.csv"), str(tmp_path / "model.rejoint")
    done = CliRunner().invoke(main, ["fit", data, "-o", model, "--rank", "1000000000"])
    assert done.exit_code == 1
    assert "A fit of 1,000,000,000 classes to 12 levels would take about 3.1 TB" in done.output
    monkeypatch.setattr("rejoint.cli.tables.WRITTEN", (100.0, 200.0))
    done = CliRunner().invoke(main, ["tables", data, "-o", str(tmp_path / "pairs"), "--order", "2"])
    assert done.exit_code == 0
    assert "Writing 6 tables takes 10 minutes to 20 minutes of computing" in done.output


def test_cost_within_limits_is_silent():
    Cost(1e6, cost.LONG, 1e9).check("This", "that")


def test_a_container_is_believed(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "none").write_text("max\n")
    files = tuple(str(tmp_path / name) for name in ("memory.max", "none", "absent"))
    monkeypatch.setattr(cost, "_LIMIT_FILES", files)
    assert cost.machine_memory() == 1e6
