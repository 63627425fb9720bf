"""`rejoint explore` and `rejoint export`, as they are typed."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main
from rejoint.explorer.open import open_model


@pytest.fixture
def model(tmp_path, asia):
    path = tmp_path / "asia.rejoint"
    asia.save(path, notes={"class_names": [f"kind {f}" for f in range(8)], "by": "hand"})
    return path


@pytest.fixture
def data(tmp_path, patients):
    path = tmp_path / "patients.csv"
    patients.to_frame("pandas").to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_export_makes_a_page_without_records_unless_asked(model, data, tmp_path):
    result = run("export", model, "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"title":"asia"' in text
    assert '"source":"asia.rejoint"' in text
    assert '"class_names":["kind 0"' in text
    assert '"records":' not in text
    assert run("export", model, "-o", tmp_path / "page.html", "--data", data).exit_code == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"records":{"rows":2000' in text
    assert '"fit":{"tables"' in text


def test_export_of_the_open_format(model, tmp_path, asia):
    assert run("export", model, "-o", tmp_path / "asia.json").exit_code == 0
    plain = json.loads((tmp_path / "asia.json").read_text(encoding="utf-8"))
    assert plain["arrays"]["weights"]["values"] == pytest.approx(asia.weights)
    assert rj.load(tmp_path / "asia.json") == asia


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "{model}", "-o", "page.pdf"], "should end in .html"),
        (["export", "{data}", "-o", "page.html"], "is not a rejoint model"),
        (["export", "nowhere.rejoint", "-o", "page.html"], "No model file"),
        (["explore", "{data}", "--data", "{data}"], "--data needs a MODEL"),
        (["explore"], "Give a MODEL or DATA, or try --demo"),
        (["explore", "{model}", "--demo"], "--demo cannot be combined with a MODEL"),
    ],
)
def test_errors_are_in_words(model, data, words, said):
    named = [word.format(model=model, data=data) for word in words]
    result = run(*named)
    assert result.exit_code != 0
    assert said in result.output


def test_names_go_into_the_file_and_other_notes_stay(model, asia):
    open_model(model).keep_names(list("abcdefgh"))
    again = open_model(model)
    assert again.pmf == asia
    assert again.notes == {"class_names": list("abcdefgh"), "by": "hand"}


@pytest.mark.parametrize("source", ["model", "data", "demo"])
def test_explore_serves_until_ctrl_c(request, source, tmp_path):
    pytest.importorskip("uvicorn")
    demo = source == "demo"
    path = tmp_path / "demo.rejoint" if demo else request.getfixturevalue(source)
    start = "from rejoint.cli import main; main()"
    words = ["-c", start, "explore", *(["--demo", "-o"] if demo else []), str(path), "--no-browser"]
    if source == "data":
        words += ["--rank", "2", "-o", str(path.with_suffix(".rejoint"))]
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.stderr.read()
        with urllib.request.urlopen(address + "model.json", timeout=30) as answer:
            plain = json.load(answer)
        assert plain["title"] == ("Asia, a demo" if demo else path.stem)
        assert plain["can_save"]
        if source != "model":
            assert plain["records"]["total"] == 2000
            assert len(plain["draws"]) > 10
            assert open_model(path.with_suffix(".rejoint")).notes["fit"] == plain["fit"]
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "Traceback" not in err


def test_what_the_file_says_of_its_fit_is_shown(tmp_path, asia):
    fit = {
        "tables": [
            {"names": ["smoke", "lung", "dysp"], "distance": 0.2, "chance": None, "records": 100.0}
        ],
        "checked": 1,
        "all": 1,
    }
    notes = {"records": 500.0, "choice": "Bayes.", "stop": "It stopped.", "fit": fit}
    asia.save(tmp_path / "asia.rejoint", notes=notes | {"target": ["lung"]})
    plain = open_model(tmp_path / "asia.rejoint").document()
    assert (plain["record_count"], plain["note"]) == (500.0, "Bayes. It stopped.")
    assert (plain["fit"], plain["target"]) == (fit, ["lung"])
