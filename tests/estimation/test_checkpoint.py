"""Interrupted fits, by Ctrl-C or a kill, resume to the result of those that were not."""

import json
import os
import signal
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from small_records import interrupted, ordinal, random_records

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Bayes, Policy, Variational, estimate
from rejoint.estimation.data import InMemory
from rejoint.solver import checkpoint

SHAPE = (3, 3, 3, 3)
RECORDS = random_records(0, SHAPE, 300, rank=3, missing=0.1)
SHORT = Bayes(chains=2, burn_in=5, draws=6, thin=2)

FITS = {
    "ml": {"rank": 3, "solver": "ml", "n_init": 4},
    "map": {"rank": 3, "solver": "map", "n_init": 3},
    # The short chains that show blocks are repeated: they are no part of a checkpoint.
    "bayes": {"rank": 2, "solver": SHORT, "blocks": False},
    "auto": {"solver": "map", "n_init": 2},
    "smooth": {"rank": 2, "solver": "map", "smooth": True, "n_init": 2},
    "variational": {"rank": 2, "solver": Variational(), "n_init": 3},
}


def scanned():
    return rj.scan(RECORDS, size=50, memory=0)


def data_of(name):
    if name == "scan":
        return scanned(), {"rank": 3, "solver": "map", "n_init": 2}
    if name == "bayes scan":
        return scanned(), FITS["bayes"]
    if name == "bayes rank scan":
        return scanned(), {"solver": SHORT}
    if "smooth" in name:
        records = rj.Records(ordinal(RECORDS.domain), RECORDS.codes)
        scan = rj.scan(records, size=50, memory=0)
        return scan if "scan" in name else records, FITS["smooth"]
    return RECORDS, FITS[name]


def assert_same(one, other):
    """Bit for bit, but for the seconds."""
    np.testing.assert_array_equal(one.pmf.weights, other.pmf.weights)
    for mine, theirs in zip(one.pmf.factors, other.pmf.factors, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (one.stop, one.choice, one.log_likelihood) == (
        other.stop,
        other.choice,
        other.log_likelihood,
    )
    for mine, theirs in zip(one.history, other.history, strict=True):
        assert (mine.step, mine.objective) == (theirs.step, theirs.objective)
    if one.posterior is not None:
        for mine, theirs in zip(one.posterior.draws, other.posterior.draws, strict=True):
            np.testing.assert_array_equal(mine.weights, theirs.weights)


@pytest.fixture
def often(monkeypatch):
    """The checkpoint is written whenever that takes no longer than the rest."""
    monkeypatch.setattr(checkpoint, "WRITE_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "WRITE_PAUSE_RATIO", 1.0)
    monkeypatch.setattr(os, "fsync", lambda number: None)  # slow where others use the disk


class Press:
    """Presses Ctrl-C in the k-th call of a function."""

    def __init__(self, monkeypatch, owner, name):
        self.patch, self.owner, self.name = monkeypatch, owner, name
        self.real = getattr(owner, name)

    def at(self, k):
        calls = []

        def pressed(*args, **kwargs):
            calls.append(1)
            if len(calls) == k:
                raise KeyboardInterrupt
            return self.real(*args, **kwargs)

        self.patch.setattr(self.owner, self.name, pressed)
        return calls

    def release(self):
        self.patch.setattr(self.owner, self.name, self.real)


@pytest.mark.parametrize(
    ("name", "frequent"),
    [
        *((name, True) for name in (*FITS, "scan", "smooth scan", "bayes scan", "bayes rank scan")),
        ("ml", False),
    ],
)
def test_resumed_is_uninterrupted(tmp_path, monkeypatch, request, name, frequent):
    if frequent:
        request.getfixturevalue("often")
    data, options = data_of(name)
    expected = estimate(data, **options, random_state=0)
    path = tmp_path / "fit.checkpoint"
    kernel = "class_draws" if "bayes" in name else "class_pass"
    press = Press(monkeypatch, kernels, kernel)
    for k in (3, 10, 20):  # again and again
        press.at(k)
        with suppress(KeyboardInterrupt):
            estimate(data, **options, random_state=0, checkpoint=path)
        press.release()
    assert_same(estimate(data, **options, random_state=0, checkpoint=path), expected)
    calls = press.at(10**9)
    assert_same(estimate(data, **options, random_state=0, checkpoint=path), expected)
    fresh = press.at(10**9)
    estimate(data, **options, random_state=0)
    # What is there is not computed anew, but for the merging of classes while a rank is chosen.
    assert len(calls) < len(fresh) * (0.75 if name == "auto" else 0.5)


CHILD = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from rejoint import kernels
from rejoint.solver import checkpoint
import test_checkpoint as t
checkpoint.WRITE_EVERY_SECONDS = checkpoint.WRITE_PAUSE_RATIO = 0.0
real, calls = kernels.{kernel}, []
def killed(*args, **kwargs):
    calls.append(1)
    if len(calls) == {k}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
kernels.{kernel} = killed
data, options = t.data_of({name!r})
t.estimate(data, **options, random_state=0, checkpoint={path!r})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.parametrize(
    ("name", "kernel", "k"),
    [
        ("ml", "class_pass", 100),
        ("bayes", "class_draws", 25),
        ("scan", "class_pass", 150),
        ("bayes scan", "class_draws", 100),
    ],
)
def test_kill_minus_nine(tmp_path, name, kernel, k):
    path = str(tmp_path / "fit.checkpoint")
    tests = str(Path(__file__).parent)
    child = CHILD.format(tests=tests, kernel=kernel, k=k, name=name, path=path)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", child], env=environment, timeout=300)
    assert done.returncode == -signal.SIGKILL
    data, options = data_of(name)
    expected = estimate(data, **options, random_state=0)
    assert_same(estimate(data, **options, random_state=0, checkpoint=path), expected)


def test_without_a_seed_that_of_the_first_attempt_is_used(tmp_path):
    path = tmp_path / "fit.checkpoint"
    first = estimate(RECORDS, 3, "ml", n_init=2, checkpoint=path)
    assert_same(estimate(RECORDS, 3, "ml", n_init=2, checkpoint=path), first)


def test_ranks(tmp_path, monkeypatch, often):
    expected = rj.rank.select(RECORDS, random_state=0)
    path = tmp_path / "fit.checkpoint"
    press = Press(monkeypatch, kernels, "class_pass")
    press.at(100)
    found = interrupted(rj.rank.select, RECORDS, random_state=0, checkpoint=path)
    assert found.interrupted
    press.release()
    found = rj.rank.select(RECORDS, random_state=0, checkpoint=path)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.words == expected.words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rank": 2}, "another fit: its rank is 3, not 2"),
        ({"solver": "map"}, "another fit: its solver is 'ml', not 'map'"),
        ({"random_state": 1}, "another fit: its random_state is"),
        ({"data": random_records(1, SHAPE, 300)}, "another fit: its data is"),
        ({"policy": Policy(growth_steps=3)}, "another fit: its policy is"),
    ],
)
def test_another_fit_is_refused(tmp_path, change, words):
    given = {"data": RECORDS, "rank": 3, "solver": "ml", "n_init": 2, "random_state": 0}
    path = tmp_path / "fit.checkpoint"
    estimate(**given, checkpoint=path)
    with pytest.raises(ValueError, match=words):
        estimate(**given | change, checkpoint=path)


def test_other_files_are_errors(tmp_path):
    path = tmp_path / "fit.checkpoint"
    path.write_text("hello")
    with pytest.raises(ValueError, match="is not a checkpoint that can be read"):
        estimate(RECORDS, 3, "ml", checkpoint=path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", json.dumps({"format": "rejoint checkpoint", "version": 99}))
    with pytest.raises(ValueError, match="it has another format"):
        estimate(RECORDS, 3, "ml", checkpoint=path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        estimate(RECORDS, 3, "ml", checkpoint=tmp_path / "none" / "fit.checkpoint")


def test_a_full_disk_does_not_end_the_fit(tmp_path, monkeypatch, often):
    expected = estimate(RECORDS, 3, "ml", n_init=2, random_state=0)
    path = tmp_path / "fit.checkpoint"
    real, calls = checkpoint.atomic_file, []

    def full(path, **options):
        calls.append(1)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        return real(path, **options)

    monkeypatch.setattr(checkpoint, "atomic_file", full)
    with pytest.warns(rj.Remark, match="can no longer be written .*the fit goes on without"):
        result = estimate(RECORDS, 3, "ml", n_init=2, random_state=0, checkpoint=path)
    assert_same(result, expected)
    assert len(calls) == 3  # and is not tried again
    assert_same(estimate(RECORDS, 3, "ml", n_init=2, random_state=0), expected)


def test_no_pickle(tmp_path):
    """An array of objects would be code to run: it is refused."""
    path = tmp_path / "fit.checkpoint"
    estimate(RECORDS, 2, "ml", n_init=1, random_state=0, checkpoint=path)
    with zipfile.ZipFile(path) as archive:
        head = archive.read("meta.json")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", head)
        with archive.open("0.npy", "w") as member:
            np.save(member, np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(
        ValueError, match=r"not a checkpoint that can be read \(array '0' is '\|O', not numeric"
    ):
        estimate(RECORDS, 2, "ml", n_init=1, random_state=0, checkpoint=path)


def test_threads_do_not_matter():
    """The key of a run does not depend on how it is computed."""
    one, two = (InMemory.of(RECORDS, threads=k) for k in (1, 2))
    assert one.fingerprint == two.fingerprint


class Slotted:
    __slots__ = ("name", "size")

    def __init__(self, size):
        self.name, self.size = "slotted", size


class OneSlot:
    __slots__ = "size"

    def __init__(self, size):
        self.size = size


@pytest.mark.parametrize("kind", [Slotted, OneSlot])
def test_objects_with_slots_are_told_apart_by_what_they_hold(kind):
    first, same, other = kind(1), kind(1), kind(2)
    assert checkpoint.digest(first) == checkpoint.digest(same)
    assert checkpoint.digest(first) != checkpoint.digest(other)
