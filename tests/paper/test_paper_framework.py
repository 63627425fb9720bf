"""Cells that are kept, and the parts of a report."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from paper.framework import Done, Expected, Experiment, Figure, Section, Table, Text, runs, spread
from paper.framework.cells import Store, key_of, run_cells
from paper.framework.rendering import markdown, page, restructured


def slowly(seed):
    if seed == 99:
        raise RuntimeError("this one cannot be done")
    time.sleep(0.05)
    return {"square": np.float64(seed**2), "row": np.arange(2)}


def never(seed):
    raise AssertionError("a finished cell was run again")


WANTED = [{"seed": seed} for seed in range(4)]


def test_cells_are_kept_and_not_run_again(tmp_path):
    store = Store(tmp_path / "a" / "cells.json")
    run_cells("demo", store, slowly, WANTED, jobs=2)
    again = Store(store.path)
    run_cells("demo", again, never, WANTED, jobs=2)
    done = again.done(WANTED)
    assert list(done.values("square")) == [0, 1, 4, 9]
    assert done.where(seed=3)[0].values["row"] == [0, 1]
    assert all(cell.seconds >= 0.05 for cell in done)
    assert {"python", "rejoint", "numpy"} <= done.versions.keys()
    assert [p.name for p in store.path.parent.iterdir()] == ["cells.json"]  # nothing unfinished


def test_one_failure_does_not_stop_the_others(tmp_path):
    store = Store(tmp_path / "cells.json")
    with pytest.raises(ExceptionGroup, match="1 of 3 cells failed") as caught:
        run_cells("demo", store, slowly, [{"seed": 99}, *WANTED[:2]], jobs=1)
    assert "in cell seed=99" in caught.value.exceptions[0].__notes__
    assert len(Store(store.path).cells) == 2


def test_ctrl_c_keeps_what_is_done(tmp_path, capsys):
    store = Store(tmp_path / "cells.json")
    many = [{"seed": seed} for seed in range(98)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press():
        while not store.cells:
            time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_cells("demo", store, slowly, many, jobs=1)
    finally:
        signal.signal(signal.SIGINT, before)
    kept = json.loads(store.path.read_text())["cells"]
    assert 0 < len(kept) < 98
    assert "what is done is in" in capsys.readouterr().err


def test_key_says_all_settings():
    assert key_of({"rank": 5, "from": "tables"}) == "rank=5|from=tables"


def test_incomplete_cells_are_counted():
    experiment = Experiment("demo", lambda fast: WANTED, slowly, lambda done, folder: None)
    assert list(experiment.expected(Done([], 0))) == []
    assert not Expected("x", 2.0, 0.0, 1.0, "no reason").met
    assert "NOT x: 2 in [0, 1]" in str(Expected("x", 2.0, 0.0, 1.0, "no reason"))


def test_spread_is_as_the_paper_prints():
    assert spread([0.1, 0.3]) == "0.200 ± 0.141"
    assert spread([]) == "-"
    assert spread([0.5]) == "0.500"


SECTIONS = [
    Section(
        "Head",
        [
            Text("Some `a|b_` code, 2 * 3 <b> and x_ too."),
            Table(["", "a | b"], [["1", "`c`"], ["", "3 & 4"]]),
            Figure("some.svg", "A picture of `it`"),
        ],
    )
]


def test_markdown():
    text = markdown(SECTIONS, "Title")
    assert text.startswith("# Title\n\n## Head\n")
    assert "|  | a \\| b |\n| --- | --- |\n| 1 | `c` |" in text
    assert "(some.svg)" in text


def test_html_is_well_formed_and_escaped():
    text = page(SECTIONS, "Title")
    body = text[text.index("<body>") : text.index("</body>")] + "</body>"
    ET.fromstring(body.replace('">\n<figcaption', '"/>\n<figcaption').replace('`">', '`"/>'))
    assert "<code>a|b_</code>" in text
    assert "&lt;b&gt;" in text
    assert "3 &amp; 4" in text


def test_restructured_text_is_read_without_complaint():
    core = pytest.importorskip("docutils.core")
    text = restructured(SECTIONS, "Title")
    tree = core.publish_doctree(text, settings_overrides={"report_level": 1})
    assert not list(tree.findall(lambda node: node.tagname == "system_message"))
    assert "2 * 3 <b> and x_ too." in tree.astext()


ALONE = """
import os, sys, time
from pathlib import Path
from paper.framework.cells import Store, run_cells

def sleep(seed):
    time.sleep(60 * (seed > 1))
    return {"worker": os.getpid()}

if __name__ == "__main__":
    run_cells("demo", Store(Path(sys.argv[1])), sleep, [{"seed": s} for s in range(8)], jobs=2)
"""


def alive(process):
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc what is alive")
def test_no_worker_outlives_a_killed_run(tmp_path):
    script, path = tmp_path / "alone.py", tmp_path / "cells.json"
    script.write_text(ALONE)
    known = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.Popen([sys.executable, script, path], env=known)
    try:
        assert comes_true(lambda: len(Store(path).cells) == 2)
    finally:
        run.kill()
        run.wait()
    workers = {cell.values["worker"] for cell in Store(path).cells.values()}
    assert comes_true(lambda: not any(map(alive, workers)))


def comes_true(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return met


def test_run_from_nothing_is_told(tmp_path):
    experiment = Experiment("demo", lambda fast: WANTED, slowly, section=None)
    assert runs.words(tmp_path) == ""
    assert runs.lacking([experiment], tmp_path) == (4, 4)
    run_cells("demo", experiment.store(tmp_path, fast=False), slowly, WANTED[:1], jobs=1)
    assert runs.lacking([experiment], tmp_path) == (3, 4)
    runs.keep(tmp_path, cells=1234, seconds=3600.4, jobs=2)
    words = "One run from nothing, 1,234 cells in 2 processes, took 60 minutes by the clock."
    assert runs.words(tmp_path).strip() == words
    assert {p.name for p in tmp_path.iterdir()} == {"demo.json", "run.json"}
