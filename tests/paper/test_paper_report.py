"""The report, built from few finished cells."""

from paper import beyond, proposition1, report
from paper.framework import Cell


def keep(experiment, results, wanted):
    store = experiment.store(results, fast=False)
    for settings in wanted:
        store.keep(Cell(dict(settings), experiment.work(**settings), 1.0, {"numpy": "9.9"}))


def test_report_of_what_is_there(tmp_path):
    results, folder = tmp_path / "results", tmp_path / "docs"
    keep(proposition1.EXPERIMENT, results, proposition1.cells(False))
    keep(beyond.EXPERIMENT, results, beyond.cells(False)[-1:])
    report.build(results, folder)
    names = {"index.rst", "conclusions.rst", "beyond.rst", "report.md", "report.html", "beyond.svg"}
    assert {path.name for path in folder.iterdir()} == names
    text = (folder / "report.md").read_text()
    assert "## Proposition 1: every joint is a naive Bayes model" in text
    assert "`python -m paper.beyond`: 1 cells, 1 seconds of one processor; 2 cells are not" in text
    assert "| numpy | 9.9 |" in text
    verdicts = [line for line in text.splitlines() if "| confirmed |" in line or "| open |" in line]
    assert any("naive Bayes model with a bounded" in v and "| confirmed |" in v for v in verdicts)
    assert any("Pairs reach a plateau" in v and "| open |" in v for v in verdicts)


def test_report_of_nothing_says_what_to_do(tmp_path, capsys):
    report.build(tmp_path, tmp_path / "docs")
    assert "make paper" in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()
