"""A folder with the files that the examples of the commands speak of."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main

PUBLISHED = "smoke \\ lung,yes,no,Total\nyes,{},{},{}\nno,x,{},{}\n"


def ratings():
    chance = random.Random(0)
    rows = ["user,film,stars"]
    for user in range(30):
        for film, kind in [("Heat", 0), ("Ronin", 0), ("Ghost", 1), ("Titanic", 1), ("Up", 1)]:
            if chance.random() < 0.8:
                stars = (5 if kind == user % 2 else 2) + chance.choice([-1, 0, 0])
                rows.append(f"u{user},{film},{stars}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    asia = rj.datasets.asia()
    whole = asia.sample(150, random_state=0)
    patients = rj.datasets.remove_cells(whole, 0.1, random_state=0)
    text = patients.to_frame("pandas").to_csv(index=False)
    (folder / "patients.csv").write_text(text)
    (folder / "ratings.csv").write_text(ratings())
    (folder / "new.csv").write_text("user,film,stars\nu99,Heat,5\nu99,Ghost,1\n")
    (folder / "bought.csv").write_text(
        "customer,product\n"
        + "".join(f"c{k},{product}\n" for k in range(20) for product in (k % 3, 3 + k % 4, 7))
    )
    (folder / "films.csv").write_text(
        "film,genre\nHeat,crime\nRonin,crime\nGhost,romance\nTitanic,romance\nUp,animation\n"
    )
    fitted = rj.estimate(patients, rank=2, solver="ml", n_init=2, random_state=0)
    notes = rj.io.fit_notes(fitted, records=patients, source="patients.csv")
    for name in ("patients", "model", "asia"):
        fitted.pmf.save(folder / f"{name}.rejoint", notes=notes)
    classifier = rj.JointClassifier(rank=4, random_state=0)
    classifier.fit(patients, "lung").save(folder / "lung.rejoint", notes={"source": "patients.csv"})
    for order, name in ((2, "pairs"), (3, "triples")):
        rj.Marginals.count(whole, order=order).write(folder / name)
    for other in ("lung", "bronc"):
        table = rj.Marginals.count(whole, subsets=[("smoke", other)])["smoke", other]
        rows = [f"{s},{o},{table[i, j]:.0f}" for i, s in enumerate(("yes", "no"))
                for j, o in enumerate(("yes", "no"))]  # fmt: skip
        head = f"smoke,{other},count\n"
        (folder / f"smoke-{other}.csv").write_text(head + "\n".join(rows) + "\n")
    (folder / "published").mkdir()
    (folder / "published" / "a.csv").write_text(PUBLISHED.format(8, 60, 68, 79, 82))
    films = rj.JointRecommender(random_state=0).fit(
        [(u, f, float(s)) for u, f, s in (r.split(",") for r in ratings().splitlines()[1:])]
    )
    films.save(folder / "films.rejoint", notes={"ratings": ["user", "film", "stars"]})
    return folder


@pytest.fixture(scope="module")
def world(prepared, tmp_path_factory):
    """A copy that tests of one file may write into; the working folder meanwhile."""
    folder = tmp_path_factory.mktemp("copy") / "world"
    shutil.copytree(prepared, folder)
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture
def run(world):
    """Run a command in this process."""

    def invoke(*words, **more):
        return CliRunner().invoke(main, [str(word) for word in words], **more)

    return invoke


@pytest.fixture
def spawn(world):
    """Run a command in a process of its own."""

    def start(*words, **more):
        command = [sys.executable, "-m", "rejoint.cli", *map(str, words)]
        return subprocess.run(command, capture_output=True, timeout=120, cwd=world, **more)

    return start
