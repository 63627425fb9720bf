"""However a command ends, by kill, Ctrl-C or a full disk: a whole file or none."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import rejoint as rj
from rejoint.solver import Stop

resource = pytest.importorskip("resource", reason="limits of files are those of Unix")

# Imports once, then forks: each child fits, and is killed a little later than the one before.
KILLER = """
import os, signal, sys, time
import rejoint.estimation, rejoint.explorer.document
from rejoint.cli import main
words = ["fit", "patients.csv", "-o", "killed.rejoint", "--rank", "40", "--solver", "ml",
         "--starts", "1"]

def child(stop_after):
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        main(words)
    if stop_after is not None:
        time.sleep(stop_after)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return time.perf_counter() - begun

child(None)
whole = child(None)  # the first was slower: it had pages to touch
import rejoint as rj
assert rj.load("killed.rejoint").rank > 1
for k in range(15):
    os.path.exists("killed.rejoint") and os.remove("killed.rejoint")
    child(whole * k / 14)
    if os.path.exists("killed.rejoint"):
        rj.load("killed.rejoint")
        print("whole")
    else:
        print("none")
"""


def test_killing_fit_leaves_a_whole_file_or_none(world):
    done = subprocess.run(
        [sys.executable, "-u", "-c", KILLER], capture_output=True, text=True, cwd=world
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    assert len(found) == 15
    assert found[0] == "none"  # killed at once


def test_killing_leaves_the_file_that_was_there(world, monkeypatch):
    before = (world / "patients.rejoint").read_bytes()
    code = (
        "import os, signal\nfrom rejoint.cli import main\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "main(['fit', 'patients.csv', '-o', 'patients.rejoint', '--rank', '1'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=world)
    assert done.returncode == -signal.SIGKILL
    assert (world / "patients.rejoint").read_bytes() == before


def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "patients.csv", "-o", "big.rejoint", "--rank", "20", "--solver", "ml"],
        ["sample", "patients.rejoint", "-n", "500", "-o", "big.csv"],
        ["report", "patients.rejoint", "-o", "big.html"],
    ],
)
def test_a_disk_without_room_is_an_error_and_leaves_nothing(words, spawn, world):
    before = set(world.iterdir())
    # Bytecode that does not fit would break later imports.
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = spawn(*words, preexec_fn=limited, env=quiet)
    assert done.returncode == 1
    assert b"Error: " in done.stderr
    assert b"File too large" in done.stderr
    assert b"Traceback" not in done.stderr
    assert set(world.iterdir()) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_device_is_an_error(world):
    with open("/dev/full", "wb") as full:
        words = [sys.executable, "-m", "rejoint.cli", "sample", "patients.rejoint", "-n", "9"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, cwd=world)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_device_is_written_to_and_not_replaced(run, world):
    result = run("sample", "patients.rejoint", "-n", 3, "-o", os.devnull)
    assert result.exit_code == 0
    assert not Path(os.devnull).is_file()


def test_a_reader_that_has_gone_ends_it_quietly(world):
    words = [sys.executable, "-m", "rejoint.cli", "sample", "patients.rejoint", "-n", "200000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=world)
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    assert b"Traceback" not in said


def interrupt(result, *args, **more):
    raise rj.FitInterrupted(result)


def test_ctrl_c_keeps_the_best_so_far(run, world, monkeypatch):
    data = rj.read(world / "patients.csv")
    done = rj.estimate(data, rank=2, solver="ml", n_init=1, random_state=0)
    ended = replace(done, starts=(replace(done.starts[0], stop=Stop.INTERRUPTED),))
    monkeypatch.setattr("rejoint.cli.fit.estimate", partial(interrupt, ended))
    result = run("fit", "patients.csv", "-o", "ended.rejoint")
    assert result.exit_code == 3
    assert "Ended by Ctrl-C: the best model so far is in ended.rejoint." in result.stderr
    assert rj.load(world / "ended.rejoint") == done.pmf
    assert rj.io.read_saved(world / "ended.rejoint").notes["interrupted"] is True


@pytest.mark.parametrize(
    ("command", "function", "words"),
    [
        ("fit", "estimate", ["patients.csv", "-o", "best.rejoint"]),
        ("fit", "estimate", ["patients.csv", "-o", "best.rejoint", "--stream"]),
        ("fit_tables", "factorize", ["triples", "-o", "best.rejoint", "--within", "0"]),
        ("rank", "select", ["patients.csv"]),
    ],
)
def test_an_interrupted_fit_that_carries_its_result(
    run, world, monkeypatch, command, function, words
):
    data = rj.read(world / "patients.csv")
    if function == "select":
        result = rj.rank.select(data, [1, 2], criterion="bic", random_state=0)
    else:
        result = rj.estimate(data, rank=2, solver="ml", n_init=1, random_state=0)
    monkeypatch.setattr(f"rejoint.cli.{command}.{function}", partial(interrupt, result))
    done = run(command.replace("_", "-"), *words)
    assert done.exit_code == 3
    if function == "select":
        assert "chosen" in done.stdout
    else:
        assert "Ended by Ctrl-C: the best model so far is in best.rejoint." in done.stderr
        assert rj.load(world / "best.rejoint") == result.pmf


def test_ctrl_c_before_there_is_anything(run, world, monkeypatch):
    def at_once(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("rejoint.cli.fit.estimate", at_once)
    result = run("fit", "patients.csv", "-o", "nothing.rejoint")
    assert result.exit_code == 130
    assert "nothing is written" in result.stderr
    assert not (world / "nothing.rejoint").exists()


def test_a_real_ctrl_c(world):
    words = [sys.executable, "-m", "rejoint.cli", "fit", "patients.csv", "-o", "c.rejoint"]
    words += ["--rank", "30", "--solver", "bayes", "--starts", "500"]
    # A shell without job control has its background jobs ignore Ctrl-C, and so would this one.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(words, stderr=subprocess.PIPE, cwd=world, preexec_fn=listen)
    for line in process.stderr:
        if line.startswith(b"dysp"):  # the last column has been shown
            break
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    said = process.stderr.read().decode()
    code = process.wait(timeout=60)
    process.stderr.close()
    assert "Traceback" not in said
    # Which depends on how far it came in that second. Python itself dies of the signal, which a
    # shell calls 130 as well, where it came while modules were imported.
    ends = [(3, True), (130, False), (-signal.SIGINT, False)]
    assert (code, (world / "c.rejoint").exists()) in ends, said
    if code == 3:
        assert rj.load(world / "c.rejoint").rank >= 1
