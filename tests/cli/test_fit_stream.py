"""``rejoint fit`` on data that are read part by part, and with a checkpoint."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import rejoint as rj
from rejoint.cli import fit as fit_stream


def test_many_files_are_read_part_by_part(run, world):
    table = (world / "patients.csv").read_text().splitlines()
    (world / "parts").mkdir()
    (world / "parts" / "1.csv").write_text("\n".join(table[:80]) + "\n")
    (world / "parts" / "2.csv").write_text("\n".join([table[0], *table[80:]]) + "\n")
    done = run("fit", "parts", "-o", "parts.rejoint", "--rank", "2", "--smooth", "--json")
    assert done.exit_code == 0, done.stderr
    assert "parts: read in parts" in done.stderr
    run("fit", "patients.csv", "-o", "whole.rejoint", "--rank", "2", "--smooth")
    parts, whole = (rj.io.read_saved(world / f"{name}.rejoint") for name in ("parts", "whole"))
    # So few fit into memory, where it is the same fit.
    np.testing.assert_array_equal(parts.weights, whole.weights)
    assert parts.notes["missing"] == whole.notes["missing"]
    assert parts.notes["records"] == json.loads(done.stdout)["records"] == 150
    assert parts.notes["fit"] == whole.notes["fit"]


def test_large_files(world, monkeypatch):
    monkeypatch.setattr(fit_stream, "BIG", 1000)
    monkeypatch.chdir(world)
    assert fit_stream.is_big("patients.csv")
    assert fit_stream.is_big("*.csv")
    assert not fit_stream.is_big("none.csv")
    monkeypatch.setattr(fit_stream, "BIG", 10**9)
    assert not fit_stream.is_big("patients.csv")


CHILD = """
import os, signal, sys
from rejoint import kernels
from rejoint.cli import main
from rejoint.solver import checkpoint as journal
journal.EVERY = journal.SHARE = 0.0
real, calls = kernels.class_pass, []
def killed(*args, **kwargs):
    calls.append(1)
    if len(calls) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
kernels.class_pass = killed
main(sys.argv[2:])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_kill_and_go_on(run, world, stream):
    words = ["fit", "patients.csv", "--rank", "2", "--solver", "ml", "--starts", "2", stream]
    (world / "mine.rejoint").unlink(missing_ok=True)
    mine = [*words, "-o", "mine.rejoint", "--checkpoint", f"fit{stream}.checkpoint"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "60", *mine], cwd=world, env=environment, timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    assert (world / f"fit{stream}.checkpoint").exists()
    assert not (world / "mine.rejoint").exists()
    assert run(*mine).exit_code == 0
    assert run(*words, "-o", "other.rejoint").exit_code == 0
    one, two = (rj.io.read_saved(world / f"{name}.rejoint") for name in ("mine", "other"))
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.notes == two.notes
    again = run(*mine, "--seed", "1")
    assert again.exit_code == 1
    assert "is the checkpoint of another fit: its random_state is" in again.stderr
