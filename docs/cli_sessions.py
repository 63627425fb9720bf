"""Run the commands that the page on the command line shows; write what a terminal shows of them.

``python docs/cli_sessions.py`` rewrites ``docs/_static/cli-*.txt``; a test holds them to what the
commands print now.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "_static"

SESSIONS = {
    "first": [
        "rejoint fit patients.csv -o patients.rejoint --rank 3",
        'rejoint ask patients.rejoint "P(lung = yes | smoke = yes, xray = yes)"',
        'rejoint ask patients.rejoint "P(bronc | smoke, dysp = yes)"',
        'rejoint ask patients.rejoint "P(lung | smoek = yes)"',
        "rejoint inspect patients.rejoint --variables smoke,bronc,either",
    ],
    "target": [
        "rejoint fit-target patients.csv --target bronc -o bronc.rejoint --rank 8",
        "rejoint predict bronc.rejoint patients.csv -o bronc.csv",
        "head -3 bronc.csv",
        "rejoint predict bronc.rejoint patients.csv --explain -o why.csv",
        "head -2 why.csv",
        'rejoint ask bronc.rejoint "P(bronc | smoke = yes, dysp)"',
    ],
    "tables": [
        "rejoint tables patients.csv -o triples --order 3",
        "ls triples | head -3",
        "head -3 triples/00_asia__smoke__tub-*.csv",
        "rejoint fit-tables triples -o model.rejoint",
        "rejoint compare patients.rejoint model.rejoint",
        "rejoint identify model.rejoint",
    ],
    "data": [
        "head -3 patients.csv",
        "rejoint impute patients.csv -o filled.csv",
        "head -3 filled.csv",
        "rejoint predict patients.rejoint patients.csv --target bronc -o bronc.csv",
        "head -3 bronc.csv",
        "rejoint score patients.rejoint patients.csv",
        'rejoint sample patients.rejoint -n 2 --given "lung = yes" --seed 1 --json',
    ],
}


def make_data(folder: Path) -> None:
    """``patients.csv``: 400 records of the Asia network, a tenth of the cells removed."""
    import rejoint as rj

    whole = rj.datasets.asia().sample(400, random_state=0)
    patients = rj.datasets.remove_cells(whole, 0.1, random_state=0)
    text = patients.to_frame("pandas").to_csv(index=False)
    (folder / "patients.csv").write_text(text)


def record() -> dict[str, str]:
    """What a terminal shows of each session."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "bin" / "rejoint"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rejoint.cli "$@"\n')
        script.chmod(0o755)
        make_data(folder)
        place = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
        return {
            title: "\n".join(_shown(line, folder, os.environ | {"PATH": place}) for line in lines)
            for title, lines in SESSIONS.items()
        }


def _shown(line: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    code = f"[exit code {done.returncode}]\n" if done.returncode else ""
    return f"$ {line}\n{done.stdout}{code}"


if __name__ == "__main__":
    with contextlib.suppress(FileExistsError):
        FOLDER.mkdir()
    for title, text in record().items():
        (FOLDER / f"cli-{title}.txt").write_text(text, encoding="utf-8")
