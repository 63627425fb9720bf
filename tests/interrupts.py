"""Press Ctrl-C at random moments of fits, in Python and on the command line.

    python tests/interrupts.py --number 200

Each fit runs in a process of its own, which is told to stop after a random part of its usual time.
What may come of it is documented in ``docs/reference/promises.rst``: anything else is a find.
"""

import argparse
import os
import pickle
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.model_selection import cross_val_score

import rejoint as rj
import rejoint.cli.fit
import rejoint.cli.fit_tables
import rejoint.cli.fit_target
import rejoint.rank
from rejoint.cli import main as command_line

RECORDS = rj.datasets.asia().sample(60, random_state=0)
FRAME = RECORDS.to_frame("pandas").astype(str)
TABLES = rj.Marginals.count(RECORDS, order=2)
RATINGS = np.where(
    np.random.default_rng(0).random((60, 8)) < 0.5,
    np.random.default_rng(1).integers(1, 6, (60, 8)),
    np.nan,
)


def fit_loop():
    """Four fits, none of which may end early without the others ending, too."""
    return [rj.JointPMF(rank=3, random_state=seed).fit(RECORDS) for seed in range(4)]


def cross_validate():
    """Three scores of whole fits, or none."""
    return cross_val_score(rj.JointPMF(rank=3, random_state=0), FRAME, cv=3)


def fit_classifier():
    """Learn one column from the others."""
    return rj.JointClassifier(random_state=0).fit(FRAME.drop(columns="lung"), FRAME["lung"])


FITS = {
    "estimate": lambda: rj.estimate(RECORDS, random_state=0),
    "estimate, on_interrupt='return'": lambda: rj.estimate(
        RECORDS, random_state=0, on_interrupt="return"
    ),
    "factorize": lambda: rj.factorize(TABLES, random_state=0),
    "factorize of a rank": lambda: rj.factorize(TABLES, 3, random_state=0),
    "rank.select": lambda: rj.rank.select(RECORDS, random_state=0),
    "JointPMF": lambda: rj.JointPMF(random_state=0).fit(RECORDS),
    "JointImputer": lambda: rj.JointImputer(random_state=0).fit(RECORDS),
    "JointClassifier": fit_classifier,
    "JointRecommender": lambda: rj.JointRecommender(random_state=0).fit(RATINGS),
    "loop of fits": fit_loop,
    "cross_val_score": cross_validate,
}
COMMANDS = {
    "rejoint fit": ["fit", "data.csv", "-o", "out.rejoint"],
    "rejoint fit --rank": ["fit", "data.csv", "-o", "out.rejoint", "--rank", "3"],
    "rejoint fit-tables": ["fit-tables", "tables", "-o", "out.rejoint"],
    "rejoint fit-target": ["fit-target", "data.csv", "--target", "lung", "-o", "out.rejoint"],
}


def main():
    """Press, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, found, finds = random.Random(given.seed), Counter(), 0
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        FRAME.to_csv("data.csv", index=False)
        TABLES.write("tables")
        jobs = [*FITS, *COMMANDS]
        usual = {job: min(attempt(job, None)[1] for _ in range(2)) for job in jobs}
        for k in range(given.number):
            job = jobs[k % len(jobs)]
            outcome, _ = attempt(job, rng.uniform(0.0, 1.1) * usual[job])
            found[job, outcome] += 1
            if not is_documented(job, outcome):
                finds += 1
                say(f"FIND: {job}: {outcome}")
    for (job, outcome), number in sorted(found.items()):
        say(f"{number:4d}  {job}: {outcome}")
    say(f"{given.number} interrupts, {finds} finds.")
    sys.exit(bool(finds))


def say(line):
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def is_documented(job, outcome):
    """Whether this may come of Ctrl-C."""
    if outcome in ("done before", "nothing: KeyboardInterrupt", "nothing: exit 130, no file"):
        return True
    if job in COMMANDS:
        return outcome == "best so far: exit 3, whole file"
    if job == "estimate, on_interrupt='return'":
        return outcome == "best so far: returned"
    return outcome == "best so far: FitInterrupted"


def attempt(job, after):
    """Run a job in a child, press Ctrl-C after some seconds; return outcome and seconds."""
    Path("out.rejoint").unlink(missing_ok=True)
    reading, writing = os.pipe()
    sys.stdout.flush()
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        run_child(job, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        pipe.read(1)  # the child is ready
        if after is not None:
            time.sleep(after)
            os.kill(pid, signal.SIGINT)
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - begun
    outcome = pickle.loads(told) if told else f"died: status {status}"
    return outcome, seconds


def run_child(job, writing):
    """Run a job, say what came of it, and exit."""
    pressed = []

    def press(*_):
        pressed.append(1)
        raise KeyboardInterrupt

    try:
        try:
            signal.signal(signal.SIGINT, press)
            os.write(writing, b"!")
            outcome = follow_fit(FITS[job]) if job in FITS else follow_command(COMMANDS[job])
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:  # outside of the fit
            outcome, pressed = "done before", []
        if outcome == "done before" and pressed:
            outcome = "Ctrl-C was swallowed"
    except BaseException as error:
        outcome = f"the check failed: {type(error).__name__}: {error}"
    finally:
        os.write(writing, pickle.dumps(outcome))
        os._exit(0)


def follow_fit(fit):
    """What came of a fit in Python."""
    try:
        result = fit()
    except rj.FitInterrupted as interrupted:
        check_result(interrupted.result)
        return "best so far: FitInterrupted"
    except KeyboardInterrupt:
        return "nothing: KeyboardInterrupt"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if getattr(result, "interrupted", False):
        check_result(result)
        return "best so far: returned"
    return "done before"


def check_result(result):
    """Raise unless a result so far is a model that answers, and says what it is."""
    assert result.interrupted
    assert abs(result.pmf.prob({}) - 1.0) < 1e-9
    assert "nterrupted" in (result.words if isinstance(result, rj.rank.Selection) else result.stop)


def follow_command(words):
    """What came of a command."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    errors = os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 2)
    try:
        command_line(words)
        code = 0
    except SystemExit as end:
        code = end.code
    said, there = Path("stderr").read_text(), Path("out.rejoint").exists()
    if "Traceback" in said:
        return f"traceback: {said.splitlines()[-1]}"
    if code == 3:
        rj.load("out.rejoint")
        return "best so far: exit 3, whole file"
    if code == 130:
        return f"nothing: exit 130, {'a file' if there else 'no file'}"
    if code == 0 and there:
        rj.load("out.rejoint")
        return "done before"
    return f"exit {code}: {said.splitlines()[-1] if said else ''}"


if __name__ == "__main__":
    main()
