"""Every command as it is typed, in a process of its own, on files."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import click.testing
import pandas as pd
import pytest

import rejoint as rj


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def good(done):
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done.stdout.decode()


def test_fit_writes_a_model_with_notes(spawn, world):
    out = good(spawn("fit", "patients.csv", "-o", "new.rejoint", "--rank", 2, "--json"))
    told = json.loads(out)
    saved = rj.io.read_saved(world / "new.rejoint")
    assert told["rank"] == len(saved.weights) == 2
    assert saved.notes["records"] == 150
    assert saved.notes["source"] == "patients.csv"
    assert set(saved.notes["missing"]) == set(saved.domain.names)
    assert {"choice", "stop", "seed", "fit"} <= set(saved.notes)
    worst = saved.notes["fit"]["tables"]
    assert len(worst) == 28
    assert worst[0]["distance"] - worst[0]["chance"] >= worst[-1]["distance"] - worst[-1]["chance"]


def test_fit_shows_columns_on_stderr_and_nothing_on_stdout(spawn):
    done = spawn("fit", "patients.csv", "-o", "new.json", "--rank", 1, "--solver", "ml")
    assert good(done) == ""
    said = done.stderr.decode()
    assert "patients.csv: 150 records, 8 columns" in said
    assert "smoke   nominal  no, yes" in said
    assert said.index("smoke   nominal") < said.index("Log-likelihood")


def test_models_and_data_pass_through_pipes(spawn, world):
    data = (world / "patients.csv").read_bytes()
    words = ["fit", "-", "-o", "-", "--rank", 2, "--solver", "ml", "--starts", 1]
    model = spawn(*words, input=data)
    assert model.returncode == 0, model.stderr
    answer = good(spawn("ask", "-", "P(lung = yes)", "--json", input=model.stdout))
    assert json.loads(answer)["kind"] == "probability"


def test_tables_then_fit_tables(spawn, world):
    good(spawn("tables", "patients.csv", "-o", "counted", "--order", 3))
    assert len(rj.Marginals.read(world / "counted")) == 56
    out = good(spawn("fit-tables", "counted", "-o", "t.rejoint", "--rank", 2, "--json"))
    told = json.loads(out)
    distances = [fit["distance"] for fit in told["fits"]]
    assert distances == sorted(distances, reverse=True)
    assert len(told["tables"]) == 56
    assert told["disagreements"][0]["distance"] > 0
    assert rj.io.read_saved(world / "t.rejoint").notes["fit"]["checked"] == 56


def test_ask(spawn, world):
    out = good(spawn("ask", "patients.rejoint", "P(lung | smoke)", "--json"))
    p = rj.load(world / "patients.rejoint")
    assert json.loads(out)["value"] == p.ask("P(lung | smoke)").value.tolist()


def test_sample(spawn, world):
    out = good(spawn("sample", "patients.rejoint", "-n", 20, "--seed", 5, "--given", "smoke = yes"))
    p = rj.load(world / "patients.rejoint")
    drawn = p.sample(20, {"smoke": "yes"}, random_state=5)
    assert rows(out) == [{name: str(x) for name, x in row.items()} for row in drawn.rows()]


def test_inspect_draws(spawn, world):
    out = good(spawn("inspect", "patients.rejoint", "--data", "patients.csv", "--plot", "c.svg"))
    assert "2 classes, 8 variables; fitted to 150 records of patients.csv" in out
    assert "Worst-fitting of 28 tables" in out
    assert b"<svg" in (world / "c.svg").read_bytes()


def test_compare(spawn, world):
    asia = rj.datasets.asia()
    p = rj.load(world / "patients.rejoint").align(asia.domain)
    asia.save(world / "true.rejoint")
    done = spawn("compare", "true.rejoint", "patients.rejoint", "--json", "--within", "0.001")
    assert done.returncode == 4
    told = json.loads(done.stdout)
    assert told["total_variation"] == pytest.approx(rj.metrics.total_variation(asia, p))
    assert told["pairs"][0]["distance"] <= told["total_variation"]


def test_identify(spawn):
    out = good(spawn("identify", "--levels", "3,3,3,3,3,3", "--rank", 5, "--json"))
    report = rj.identifiability.report([3] * 6, order=3, rank=5)
    assert json.loads(out)["proved"] == report.best.rank


def test_rank(spawn):
    words = ["rank", "patients.csv", "--ranks", "1,2", "--criterion", "bic", "--json"]
    told = json.loads(good(spawn(*words)))
    assert told["rank"] == 2
    assert told["ranks"] == told["table"]["rank"] == [1, 2]
    assert told["table"]["entropy"][0] is None
    table = told["table"]
    for k in range(2):
        assert table["aic"][k] == pytest.approx(
            -2 * table["log_likelihood"][k] + 2 * table["parameters"][k]
        )


def test_rank_shows_several_criteria(spawn):
    words = ["rank", "patients.csv", "--ranks", "1,2", "--criterion", "aic"]
    head, one, two, said = good(spawn(*words, "--criterion", "heldout")).splitlines()
    assert head.split()[:6] == ["rank", "log-likelihood", "parameters", "AIC", "BIC", "aBIC"]
    assert "held-out per record" in head
    assert two.split()[0] == "2"
    assert two.endswith("chosen")
    assert "*" in two
    assert not one.endswith("chosen")
    assert said.startswith("Rank 2 of 1 and 2 has the lowest AIC")


def test_predict(spawn, world):
    done = spawn("predict", "patients.rejoint", "patients.csv", "--target", "lung", "--all")
    found = rows(good(done))
    p = rj.load(world / "patients.rejoint")
    first = next(rj.read(world / "patients.csv", domain=p.domain).rows())
    seen = {n: x for n, x in first.items() if x is not None and n != "lung"}
    share = p.prob({"lung": "yes"}, given=seen)
    assert float(found[0]["lung=yes"]) == pytest.approx(share, abs=1e-6)  # written to six digits
    assert len(found) == 150
    assert "correct in" in done.stderr.decode()


def test_impute_changes_empty_cells_only(spawn, world):
    out = good(spawn("impute", "patients.rejoint", "patients.csv", "--probabilities", "sure.csv"))
    before, after = rows((world / "patients.csv").read_text()), rows(out)
    sure = rows((world / "sure.csv").read_text())
    holes = 0
    for old, new, p in zip(before, after, sure, strict=True):
        for name, cell in old.items():
            if cell:
                assert new[name] == cell
                assert float(p[name]) == 1.0
            else:
                holes += 1
                assert new[name] in ("yes", "no")
    assert holes > 50


def test_score(spawn, world):
    told = json.loads(good(spawn("score", "patients.rejoint", "patients.csv", "--json")))
    p = rj.load(world / "patients.rejoint")
    logs = p.log_prob(rj.read(world / "patients.csv", domain=p.domain))
    assert told["mean_log_prob"] == pytest.approx(logs.mean())


def test_recommend(spawn):
    out = good(
        spawn("recommend", "films.rejoint", "--rated", "Heat=5", "--rated", "Up=2", "--json")
    )
    assert {entry["item"] for entry in json.loads(out)} == {"Ronin", "Ghost", "Titanic"}


def test_population_and_rake(spawn, world):
    done = spawn("population", "patients.rejoint", "-n", 150, "--tables", "pairs", "-o", "p.csv")
    good(done)
    real = rj.Marginals.read(world / "pairs")
    made = rj.read(world / "p.csv", domain=real.domain)
    assert len(made) == 150
    assert re.search(r"(all|2\d of 28) (rounded )?tables are met exactly", done.stderr.decode())
    assert real.compare(made)[0].distance < 0.02  # 3 of 150 records
    good(spawn("rake", "p.csv", "pairs", "--total", 1000, "-o", "w.csv"))
    weights = [float(row["weight"]) for row in rows((world / "w.csv").read_text())]
    assert sum(weights) == pytest.approx(1000)


def test_population_of_tables_alone(spawn, world):
    done = spawn("population", "-n", 150, "--tables", "pairs", "-o", "alone.csv")
    good(done)
    real = rj.Marginals.read(world / "pairs")
    made = rj.read(world / "alone.csv", domain=real.domain)
    assert len(made) == 150
    assert "all rounded tables are met exactly" in done.stderr.decode()
    assert real.compare(made)[0].distance == pytest.approx(0.0, abs=1e-12)
    none = spawn("population", "-n", 150)
    assert none.returncode == 2
    assert "Give a model, --tables to build one from, or both" in none.stderr.decode()


def test_report(spawn, world):
    good(spawn("report", "patients.rejoint", "--data", "patients.csv", "-o", "report.html"))
    text = (world / "report.html").read_text()
    for part in ("counted", "empty", "classes", "fit", "identifiability"):
        assert f'"{part}":' in text
    assert '"records":{' not in text


def test_export(spawn, world):
    good(spawn("export", "patients.rejoint", "-o", "open.json"))
    assert rj.load(world / "open.json") == rj.load(world / "patients.rejoint")


def test_help_is_light():
    heavy = ["numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "rich"]
    code = (
        "import sys\nfrom rejoint.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "fit-tables" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_of_a_command_imports_it_alone_and_no_scikit_learn():
    code = (
        "import sys, click\nfrom rejoint.cli import main\n"
        "def loaded():\n"
        "    names = {name.replace('_', '-') for name in sys.modules if 'rejoint.cli.' in name}\n"
        "    return [name for name in main.helps if f'rejoint.cli.{name}' in names]\n"
        "for name in ('-h', *main.helps):\n"
        "    try:\n        main([name, '-h'] if name != '-h' else ['-h'])\n"
        "    except SystemExit:\n        pass\n"
        "    print('loaded', name, *loaded())\n"
        "heavy = ['sklearn', 'pandas', 'matplotlib', 'pyarrow', 'jinja2', 'starlette', 'dask']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert lines[0] == ["-h"]
    assert lines[1] == ["fit", "fit"]
    assert len(lines[-1]) == 1 + 22
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("rejoint fi", ["plain,fit", "plain,fit-target", "plain,fit-ratings", "plain,fit-tables"]),
        ("rejoint fit patients.csv --ordinal s", ["plain,smoke"]),
        ("rejoint inspect patients.rejoint --variables smoke,l", ["plain,smoke,lung"]),
        ("rejoint fit patients.rejoint --levels smoke=y", ["plain,smoke=yes"]),
        ("rejoint predict pat", ["file,pat"]),
        ("rejoint fit none.csv --ordinal s", []),
    ],
)
def test_completion_of_commands_files_variables_and_levels(spawn, line, items):
    asked = {"_REJOINT_COMPLETE": "bash_complete", "COMP_WORDS": line}
    done = spawn(env=os.environ | asked | {"COMP_CWORD": str(len(line.split()) - 1)})
    assert done.stdout.decode().split() == items


def test_a_wrong_question_does_not_hide_the_others(run):
    words = ("ask", "patients.rejoint", "P(lung)", "P(lungs)", "P(smoke)")
    done = run(*words)
    assert done.exit_code == 1
    assert "P(lung)" in done.stdout
    assert "P(smoke)" in done.stdout
    assert 'No variable is called "lungs"' in done.stderr
    plain = json.loads(run(*words, "--json").stdout)
    assert [part["query"] for part in plain] == ["P(lung)", "P(lungs)", "P(smoke)"]
    assert "No variable" in plain[1]["error"]


def test_a_pipe_gets_every_row_of_an_answer(run):
    lines = run("ask", "patients.rejoint", "sample 60").stdout.splitlines()
    assert len(lines) >= 61
    assert not any("more row" in line for line in lines)


def test_a_prompt_answers_until_it_ends(run, monkeypatch):
    typed = iter(["P(lungs)", "", "P(lung = yes)"])

    def type_line(prompt):
        if (line := next(typed, None)) is None:
            raise EOFError
        return line

    monkeypatch.setattr("builtins.input", type_line)
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
    done = run("ask", "patients.rejoint")
    assert done.exit_code == 0
    assert "No variable is called" in done.stderr
    assert "P(lung = yes) = " in done.stdout


def test_a_report_is_a_page(run, world):
    done = run("report", "patients.rejoint", "-o", "x.pdf")
    assert done.exit_code == 2
    assert "should end in .html" in done.stderr
    assert not (world / "x.pdf").exists()


def test_predictions_are_those_of_the_model(run, world):
    patients = rj.read(world / "patients.csv")
    fitted = rj.estimate(patients, rank=2, solver="bayes", n_init=1, random_state=0).pmf
    fitted.save(world / "drawn.rejoint")
    done = run("predict", "drawn.rejoint", "patients.csv", "--target", "lung", "--all", "--json")
    yes = [json.loads(line)["lung=yes"] for line in done.stdout.splitlines()]
    rest = [name for name in patients.names if name != "lung"]
    expected = [
        fitted.prob({"lung": "yes"}, {n: x for n, x in row.items() if n in rest and x is not None})
        for row in patients.rows()
    ]
    assert yes == pytest.approx(expected, abs=1e-12)
    run("impute", "drawn.rejoint", "patients.csv", "-o", "by.csv", "--probabilities", "sure.csv")
    sure = rows((world / "sure.csv").read_text())
    row, values = next((k, v) for k, v in enumerate(patients.rows()) if v["lung"] is None)
    given = {name: value for name, value in values.items() if value is not None}
    shares = fitted.marginal(["lung"], given)
    assert float(sure[row]["lung"]) == pytest.approx(shares.max(), abs=1e-6)  # six digits


def test_fit_ratings_reads_columns_as_python_does(run, world):
    bought = {"kunde": [1, 1, 2, 3], "ware": [10, 11, 10, 12]}
    (world / "k.csv").write_text("kunde,ware,day\n1,10,3\n1,11,1\n2,10,5\n3,12,9\n")
    assert run("fit-ratings", "k.csv", "--implicit", "-o", "r.rejoint").exit_code == 0
    model = rj.JointRecommender("implicit", random_state=0).fit(pd.DataFrame(bought))
    assert rj.load(world / "r.rejoint").recommend(1) == model.recommend(1)
    (world / "r.csv").write_text("user,film,stars,day\n1,10,1,9\n1,11,2,1\n2,10,2,5\n1,10,5,2\n")
    columns = ["--columns", "user,film,stars,day"]
    assert run("fit-ratings", "r.csv", *columns, "-o", "t.rejoint").exit_code == 0
    latest = rj.load(world / "t.rejoint").explain(1, 11).moves
    assert [move.rating for move in latest] == [1]
    assert "r.rejoint has a recommender" in run("inspect", "r.rejoint").stderr
