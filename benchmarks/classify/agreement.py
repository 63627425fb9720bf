"""Whether JointClassifier, its file and the command line predict the same on the paper's sets."""

import json
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main as rejoint

#: Rows that are also asked for as questions.
QUESTIONS = 50


def agreement(sets: list[str], rows: int | None) -> None:
    """Print the largest differences from ``predict_proba``, set by set."""
    warnings.simplefilter("ignore")  # evidence that is nearly impossible
    print(f"{'set':10}{'rows':>8}{'predict':>12}{'load':>12}{'ask':>12}{'joint':>12}{'seconds':>9}")
    for name in sets:
        begun = time.perf_counter()
        X, y = rj.datasets.paper_set(name, backend="pandas")
        frame = X.assign(label=y)
        if rows is not None and rows < len(frame):
            frame = frame.sample(rows, random_state=0).reset_index(drop=True)
        found = "".join(f"{value:12.2g}" for value in differences(frame))
        print(f"{name:10}{len(frame):8}{found}{time.perf_counter() - begun:9.0f}", flush=True)


def differences(frame: pd.DataFrame) -> list[float]:
    """Of ``rejoint predict``, ``rj.load``, ``rejoint ask`` and, for comparison, of ``pmf_``."""
    model = rj.JointClassifier(random_state=0).fit(frame, "label")
    shares = model.predict_proba(frame)
    with tempfile.TemporaryDirectory() as name:
        data, file = Path(name, "data.csv"), Path(name, "label.rejoint")
        frame.to_csv(data, index=False)
        run("fit-target", data, "--target", "label", "-o", file)
        told = [
            json.loads(line) for line in run("predict", file, data, "--all", "--json").split("\n")
        ]
        by_command = [[row[f"label={label}"] for label in model.classes_] for row in told]
        by_file = rj.load(file).predict_proba(frame)
        some = np.random.default_rng(0).choice(len(frame), min(QUESTIONS, len(frame)), False)
        records = rj.Records.of(frame.drop(columns="label"), domain=model.ensemble_.features)
        seen = [
            {n: x for n, x in row.items() if x is not None} for row in records.take(some).rows()
        ]
        questions = [
            f"P(label | {', '.join(evidence(*cell) for cell in row.items())})" for row in seen
        ]
        by_question = [a["value"] for a in json.loads(run("ask", file, *questions, "--json"))]
    by_joint = [model.pmf_.marginal("label", given=row) for row in seen]
    return [
        float(np.abs(np.array(a) - b).max())
        for a, b in (
            (by_command, shares),
            (by_file, shares),
            (by_question, by_joint),
            (by_joint, shares[some]),
        )
    ]


def evidence(name: str, level: object) -> str:
    """A condition of the query language."""
    value = json.dumps(level) if isinstance(level, str) else str(level)
    return f"{json.dumps(name)} = {value}"


def run(*words: object) -> str:
    """What a command writes to stdout."""
    done = CliRunner().invoke(rejoint, [str(word) for word in words])
    assert done.exit_code == 0, done.stderr
    return done.stdout.strip()
