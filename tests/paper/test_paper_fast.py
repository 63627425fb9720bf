"""The paper's tables and figures: a small part of each, against what is expected of it."""

from pathlib import Path

import numpy as np
import pytest
from paper import printed, report
from paper.framework import Cell, Done, Unavailable

EXPERIMENTS = {experiment.name: experiment for experiment in report.experiments()}


def run_fast(experiment):
    """As `run`, in this process, which has imported everything already."""
    try:
        wanted = experiment.cells(True)
    except Unavailable as reason:
        pytest.skip(str(reason))
    return Done([Cell(dict(s), experiment.work(**s), 0.0, {}) for s in wanted], len(wanted))


def test_every_script_is_in_the_report():
    folder = Path(report.__file__).parent
    scripts = {path.stem for path in folder.glob("*.py") if "EXPERIMENT.main()" in path.read_text()}
    assert scripts == set(EXPERIMENTS) == set(report.NAMES)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_fast_part_is_as_expected(name, tmp_path):
    experiment = EXPERIMENTS[name]
    done = run_fast(experiment)
    expected = list(experiment.expected(done))
    assert expected
    assert [str(line) for line in expected if not line.met] == []
    section = experiment.section(done, tmp_path)  # must work on part of the cells
    assert section.parts


def test_full_runs_have_the_papers_sizes():
    sizes = {name: len(EXPERIMENTS[name].cells(False)) for name in ("table4", "figure7")}
    both = 3 * 3 * 20  # ranks, orders, runs: by the paper's algorithm, and by ours
    assert sizes["table4"] == both + both - 3 * 18  # ours meets pairs in two runs only
    assert sizes["figure7"] == 2 * 3 * 4 * 10  # from tables and records; ranks, sizes, runs


def test_printed_tables_have_every_number():
    assert len(printed.TABLE4) == 9
    assert {len(row) for row in printed.TABLE5.values()} == {7}
    assert {len(row) for row in printed.TABLE7.values()} == {3}
    assert printed.TABLE5["CP (Quadruples)"]["CAR"] == (0.074, 0.015)
    assert printed.TABLE7["User Average"]["romance"] == (1.010, 0.002, 0.768, 0.002)
    # Ranks rise with the number of variables and of levels.
    for table in (printed.TABLE2, printed.TABLE3):
        assert np.all(np.diff(np.array(list(table.values())), axis=0) > 0)
