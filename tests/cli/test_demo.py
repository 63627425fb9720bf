import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import demo, main
from rejoint.kernels import backend


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new"
    return folder, CliRunner().invoke(main, ["demo", "--seed", "1", "--output", str(folder)])


def test_demo_prints_answers_and_errors_on_stdout(ran):
    _, result = ran
    assert result.exit_code == 0, result.output
    for event, given in demo.QUESTIONS:
        assert rj.plots.describe(event, given) in result.stdout
        assert f"{rj.datasets.asia().prob(event, given=given):.3f}" in result.stdout
    assert "total variation" in result.stdout
    assert "records" in result.stderr
    assert "56 tables of 3 variables" in result.stderr


def test_demo_writes_the_plot_it_names(ran):
    folder, result = ran
    assert (folder / "asia.png").stat().st_size > 10_000
    assert "asia.png" in result.stdout.replace("\n", "")


def test_demo_beats_the_simple_ways(ran):
    _, result = ran
    rows = [line.split() for line in result.stdout.splitlines()]
    errors = {" ".join(row[:2]): float(row[-2]) for row in rows if row[-1:] and "0." in row[-1]}
    simple = errors["counting the"], errors["treating the"]
    ours = next(error for name, error in errors.items() if name.startswith("rejoint"))
    assert ours < min(simple)


def test_demo_without_matplotlib_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "_recover", lambda *args: rj.datasets.asia())
    monkeypatch.setattr(demo, "_draw", lambda *args: None)
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 0
    assert "pip install 'rejoint[plots]'" in result.stderr


def test_version():
    result = CliRunner().invoke(main, ["--version"])
    assert result.stdout == f"rejoint, version {rj.__version__} ({backend} kernels)\n"
