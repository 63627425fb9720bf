"""Options of files and columns, forms of output, and what else commands take."""

import csv
import gzip
import io
import json
from dataclasses import replace

import pytest

import rejoint as rj
from rejoint.solver import Stop

AGES = "age;grade;town\n" + "".join(
    f"{20 + 3 * k % 50};{('low', 'mid', 'high')[k % 3]};{('Köln', 'Ulm')[k % 2]}\n"
    for k in range(40)
)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def fitted(run, *words, data="ages.csv"):
    result = run("fit", data, "-o", "o.rejoint", "--rank", 1, "--solver", "ml", *words)
    assert result.exit_code == 0, result.output
    return rj.load("o.rejoint").domain


@pytest.fixture(scope="module")
def ages(world):
    (world / "ages.csv").write_text(AGES, encoding="utf-8")
    return world


def test_columns_and_their_kinds(run, ages):
    domain = fitted(run, "--levels", "grade=low,mid,high", "--ordinal", "grade", "--bins", "age=4")
    assert domain["grade"].levels == ("low", "mid", "high")
    assert domain["grade"].kind == "ordinal"
    assert len(domain["age"]) == 4
    assert fitted(run, "--columns", "town,grade").names == ("grade", "town")
    assert fitted(run, "--without", "age").names == ("grade", "town")
    assert len(fitted(run, "--bins", "age=0,30,99")["age"]) == 2
    assert fitted(run, "--bins", "age=none")["age"].kind == "ordinal"
    assert fitted(run, "--nominal", "age")["age"].kind == "nominal"
    assert len(fitted(run, "--bins", "3")["age"]) == 3


def test_missing_markers(run, ages):
    assert fitted(run, "--missing", "mid")["grade"].levels == ("high", "low")
    (ages / "na.csv").write_text("a,b\nNA,x\nno,-\nNA,x\n")
    assert fitted(run, data="na.csv")["a"].levels == ("no",)
    kept = fitted(run, "--only-missing", "--missing", "-", data="na.csv")
    assert kept["a"].levels == ("NA", "no")
    assert kept["b"].levels == ("x",)


def test_names_delimiter_encoding_weights(run, ages):
    (ages / "bare.txt").write_bytes("Köln:1:2\nUlm:2:3\n".encode("latin-1"))
    words = ["--names", "town,n,w", "--delimiter", ":", "--encoding", "latin-1", "--weight", "w"]
    domain = fitted(run, *words, data="bare.txt")
    assert domain.names == ("town", "n")
    assert domain["town"].levels == ("Köln", "Ulm")
    assert rj.io.read_saved("o.rejoint").notes["records"] == 5
    assert rj.load("o.rejoint").prob({"town": "Ulm"}) == pytest.approx(0.6)


@pytest.mark.parametrize("name", ["s.csv", "s.tsv", "s.jsonl", "s.parquet", "s.arrow", "s.csv.gz"])
def test_what_is_written_is_read_again(name, run, world):
    assert run("sample", "patients.rejoint", "-n", 30, "-o", name).exit_code == 0
    p = rj.load(world / "patients.rejoint")
    again = rj.read(world / name, domain=p.domain)
    assert (again.codes == p.sample(30, random_state=0).codes).all()


def test_packed_output_is_the_same_bytes_each_time(run, world):
    for name in ("a.csv.gz", "b.csv.gz"):
        run("sample", "patients.rejoint", "-n", 5, "-o", name)
    a, b = ((world / name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert gzip.decompress(a) == gzip.decompress(b)
    assert a == b


def test_bins_come_out_as_text_or_as_numbers(run, ages):
    fitted(run, "--bins", "age=0,30,99")
    assert rows(run("sample", "o.rejoint", "-n", 3).stdout)[0]["age"] in ("[0, 30)", "[30, 99]")
    numbers = rows(run("sample", "o.rejoint", "-n", 3, "--numbers").stdout)
    assert all(0 <= float(row["age"]) <= 99 for row in numbers)


def test_impute_writes_numbers_for_bins_and_leaves_what_it_does_not_know(run, ages):
    fitted(run, "--bins", "age=0,30,99")
    (ages / "holes.csv").write_text("id,age,grade\n007,,low\n008,25.50,other\n009,?,\n")
    for method in ("mode", "joint", "draw", "expect"):
        result = run("impute", "o.rejoint", "holes.csv", "--method", method)
        assert result.exit_code == 0, result.output
        found = rows(result.stdout)
        assert [row["id"] for row in found] == ["007", "008", "009"]
        assert found[1] == {"id": "008", "age": "25.50", "grade": "other"}
        assert 0 < float(found[0]["age"]) < 99
        assert found[2]["grade"] in ("low", "mid", "high")
    assert "3 cells filled in 2 of 3 rows." in result.stderr


def test_expectations_are_of_numbers_and_not_of_truth_values(run, world):
    """As JointImputer fills them."""
    table = {"wet": [True, False] * 20, "drops": [1, 2] * 20}
    imputer = rj.JointImputer(2, "map", "expect", random_state=0).fit(table)
    imputer = rj.JointImputer.from_pmf(imputer.pmf_)
    imputer.pmf_.save(world / "wet.rejoint")
    (world / "wet.csv").write_text("wet,drops\n,2\nTrue,\n")
    filled = run("impute", "wet.rejoint", "wet.csv", "--method", "expect").stdout.splitlines()
    expected = imputer.transform({"wet": [None, True], "drops": [2.0, None]})
    assert filled[1] == "False,2"
    assert not expected["wet"][0]
    assert float(filled[2].removeprefix("True,")) == pytest.approx(expected["drops"][1], abs=1e-5)


def test_impute_keeps_the_types_of_other_formats(run, ages):
    fitted(run, "--bins", "age=0,30,99")
    lines = [{"age": None, "grade": "low"}, {"age": 61.5, "grade": None}]
    (ages / "h.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = [
        json.loads(x)
        for x in run("impute", "o.rejoint", "h.jsonl", "--json").stdout.split("\n")
        if x
    ]
    assert isinstance(found[0]["age"], int | float)
    assert found[1]["age"] == 61.5
    assert found[1]["grade"] in ("low", "mid", "high")


def test_fit_smooth(run, ages):
    words = ["--bins", "age=4", "--smooth", "--solver", "ml", "--starts", 1]
    result = run("fit", "ages.csv", "-o", "smooth.rejoint", "--rank", 1, *words)
    assert "Smoothed columns" in result.stderr


def test_dry_runs_write_nothing(run, ages):
    before = set(ages.iterdir())
    told = json.loads(run("fit", "ages.csv", "-o", "x", "--dry-run", "--json").stdout)
    assert told["records"] == 40
    told = json.loads(run("tables", "patients.csv", "-o", "x", "--dry-run", "--json").stdout)
    assert told["tables"] == 56
    assert set(ages.iterdir()) == before


def test_the_same_seed_is_the_same_file(run, world):
    for name in ("one.rejoint", "two.rejoint"):
        run("fit", "patients.csv", "-o", name, "--rank", 2, "--seed", 3)
    assert (world / "one.rejoint").read_bytes() == (world / "two.rejoint").read_bytes()


def test_inspect_and_identify_by_tables(run, world):
    told = json.loads(run("inspect", "patients.rejoint", "--tables", "pairs", "--json").stdout)
    p = rj.load(world / "patients.rejoint")
    worst = rj.Marginals.read(world / "pairs").compare(p)[0]
    assert told["fit"]["tables"][0]["distance"] == pytest.approx(worst.distance)
    assert told["weights"] == pytest.approx(list(p.weights))
    told = json.loads(run("identify", "pairs", "--rank", 2, "--local", "--json").stdout)
    assert "Tables of two variables" in told["verdict"]
    assert len(told["details"]) == 1


def test_questions_from_stdin(run):
    result = run("ask", "patients.rejoint", "--json", input="P(lung = yes)\n\nH(smoke)\n")
    assert [answer["kind"] for answer in json.loads(result.stdout)] == ["probability", "entropy"]


def test_a_table_that_is_missed_by_more_than_allowed(run, world):
    words = ["fit-tables", "triples", "-o", "f.rejoint", "--rank", 1]
    result = run(*words, "--within", "0.0001")
    assert result.exit_code == 4
    assert "--within" in result.stderr
    assert (world / "f.rejoint").exists()


def test_ctrl_c_while_tables_are_fitted(run, world, monkeypatch):
    done = rj.factorize(rj.Marginals.read(world / "triples"), rank=1, n_init=1, random_state=0)
    ended = replace(done, starts=(replace(done.starts[0], stop=Stop.INTERRUPTED),))

    def interrupt(*args, **more):
        raise rj.FitInterrupted(ended)

    monkeypatch.setattr("rejoint.cli.fit_tables.factorize", interrupt)
    result = run("fit-tables", "triples", "-o", "e.rejoint", "--rank", 1)
    assert result.exit_code == 3
    assert rj.load(world / "e.rejoint") == done.pmf


def test_hostile_labels_do_not_reach_the_terminal(run, world):
    (world / "evil.csv").write_text("a\x1b[2J,b\nx\x1b[31m,1\ny,2\n")
    result = run("fit", "evil.csv", "-o", "evil.rejoint", "--rank", 1)
    assert result.exit_code == 0
    assert "\x1b" not in result.stderr
    assert "\x1b" not in run("inspect", "evil.rejoint").output


def test_recommend_agrees_with_the_model(run, world):
    model = rj.JointRecommender.load(world / "films.rejoint")
    given = {"Heat": 5, "Up": 2}
    words = ["recommend", "films.rejoint", "--rated", "Heat=5", "--rated", "Up=2", "--json"]

    def told(*more):
        return json.loads(run(*words, *more).stdout)

    def plain(found):
        return [one._asdict() | {"because": list(one.because)} for one in found]

    assert told() == plain(model.recommend(given))
    assert told("--by", "expected", "-k", 1) == plain(model.recommend(given, 1, by="expected"))
    assert told("--among", "Heat,Up") == []
    assert [entry["item"] for entry in told("--among", "Heat,Ghost")] == ["Ghost"]
    assert len(told("--seen")) == 5
    why = model.explain(given, "Ronin")
    found = told("--explain", "Ronin")
    assert (found["expected"], found["baseline"]) == (why.expected, why.baseline)
    assert found["moves"] == [move._asdict() for move in why.moves]
    for by in ("probability", "like"):
        bundle = model.bundle(given, 2, by=by)
        found = told("--bundle", "-k", 2, "--by", by)
        assert found["items"] == list(bundle.items)
        assert found["probability"] == bundle.probability
    by_id = ["recommend", "films.rejoint", "--user", "u1", "--json"]
    assert json.loads(run(*by_id).stdout) == plain(model.recommend("u1"))
    rows = [row.split(",") for row in (world / "ratings.csv").read_text().split()[1:]]
    mine = {film: float(stars) for user, film, stars in rows if user == "u1"}
    found = json.loads(run(*by_id, "--data", "ratings.csv").stdout)
    assert found == plain(model.recommend(mine))
    text = run("recommend", "films.rejoint", "--user", "u1", "-k", 1).stdout
    assert "chosen and liked" in text
    assert "expected" in run(*words[:-1], "--explain", "Ronin").stdout
    assert "Chosen and liked all together" in run(*words[:-1], "--bundle", "-k", 2).stdout


def test_fit_ratings_gives_the_numbers_of_python(run, world):
    words = ["-o", "new.rejoint", "--seed", 3]
    done = run("fit-ratings", "ratings.csv", *words)
    assert done.exit_code == 0, done.stderr
    rows = [row.split(",") for row in (world / "ratings.csv").read_text().split()[1:]]
    ratings = [(user, film, float(stars)) for user, film, stars in rows]
    twin = rj.JointRecommender(random_state=3).fit(ratings)
    assert rj.JointRecommender.load("new.rejoint").recommend("u1") == twin.recommend("u1")


def test_fit_ratings_of_choices(run, world):
    rows = [row.split(",")[:2] for row in (world / "ratings.csv").read_text().split()[1:]]
    (world / "chosen.csv").write_text("\n".join(["user,film", *map(",".join, rows)]) + "\n")
    done = run("fit-ratings", "chosen.csv", "--implicit", "-o", "chosen.rejoint")
    assert done.exit_code == 0, done.stderr
    assert "choices by 30 users (columns user, film)" in done.stderr
    words = ["recommend", "chosen.rejoint", "--rated", "Heat", "--json"]
    twin = rj.JointRecommender("implicit", random_state=0).fit([tuple(row) for row in rows])
    assert [e["item"] for e in json.loads(run(*words).stdout)] == [
        one.item for one in twin.recommend(["Heat"])
    ]


def test_fit_tables_without_a_rank_says_which_and_why(run):
    result = run("fit-tables", "triples", "-o", "chosen.rejoint", "--json")
    assert result.exit_code == 0, result.stderr
    plain = json.loads(result.stdout)
    assert "The joint nearest to independence that approximates the 56 tables" in plain["choice"]
    assert plain["choice"] in result.stderr
    by_bic = run("fit-tables", "triples", "-o", "chosen.rejoint", "--solver", "newton", "--json")
    plain = json.loads(by_bic.stdout)
    assert plain["rank_curve"]["rank"] == rj.load("chosen.rejoint").rank
    assert "has the lowest BIC of the tables" in plain["choice"]


def test_fit_tables_for_tables_that_were_not_published(run):
    result = run("fit-tables", "triples", "-o", "smooth.rejoint", "--solver", "smooth")
    assert result.exit_code == 0, result.stderr
    assert "the mean of 3 models of 256 classes" in result.stderr  # as many as the joint has cells
    assert rj.load("smooth.rejoint").rank == 3 * 256


@pytest.fixture
def drawn(run, world):
    """A model with posterior draws."""
    words = ["fit", "patients.csv", "-o", "drawn.rejoint", "--rank", 2, "--solver", "bayes"]
    if not (world / "drawn.rejoint").exists():
        result = run(*words)
        assert "40 posterior draws" in result.stderr
    return "drawn.rejoint"


def test_answers_have_intervals_without_the_data(run, world):
    drawn, words = "alone.rejoint", ["fit", "patients.csv", "--rank", 2, "--solver", "bayes"]
    assert run(*words, "-o", drawn, "--no-counts").exit_code == 0
    wide = run("ask", drawn, "P(lung | smoke = yes)", "--json")
    narrow = run("ask", drawn, "P(lung | smoke = yes)", "--json", "--level", 0.5)
    (low, high), (inner_low, inner_high) = (
        (plain["interval"]["low"][0], plain["interval"]["high"][0])
        for plain in (json.loads(result.stdout) for result in (wide, narrow))
    )
    assert low < inner_low < inner_high < high
    bounds = rj.load(drawn).interval("lung", given={"smoke": "yes"})
    # The same sums over fewer variables, in another order.
    assert (low, high) == pytest.approx((bounds[0][0], bounds[1][0]), abs=1e-12)
    text = run("ask", drawn, "P(lung | smoke = yes)").stdout
    assert "In parentheses: 90 % credible interval from 40 posterior draws." in text
    assert run("ask", drawn, "P(lung, smoke)", "-o", "bounds.csv").exit_code == 0
    assert list(rows((world / "bounds.csv").read_text())[0]) == [
        *("lung", "smoke", "prob", "low", "high")
    ]
    assert "40 posterior draws" in run("inspect", drawn).stdout
    assert run("export", drawn, "-o", "drawn.html").exit_code == 0
    assert '"draws":[{"weights"' in (world / "drawn.html").read_text(encoding="utf-8")
    assert run("ask", drawn, "P(lung)", "--level", 1.5).exit_code == 2


def test_draws_can_be_left_out(run, world):
    words = ["fit", "patients.csv", "-o", "bare.rejoint", "--rank", 2, "--solver", "bayes"]
    plain = json.loads(run(*words, "--no-draws", "--no-counts", "--json").stdout)
    assert (plain["draws"], plain["bytes"]) == (0, (world / "bare.rejoint").stat().st_size)
    assert "In parentheses" not in run("ask", "bare.rejoint", "P(lung)").stdout


def test_files_have_tables_or_records_to_count(run, world, drawn):
    asked = ("P(lung = yes | smoke = yes)", "P(lung = yes | smoke = yes, dysp = no)")
    assert (
        "tables of one and two variables of 150 records"
        in run(*("fit", "patients.csv", "-o", "tables.rejoint", "--rank", 2)).stderr
    )
    pair, triple = run("ask", "tables.rejoint", *asked).stdout.split("\n\n")
    assert "; counted " in pair.split("\n")[0]
    assert "The model answers alone: there are counts of one and two variables" in triple
    words = ["fit", "patients.csv", "-o", "kept.rejoint", "--rank", 2, "--keep-records"]
    assert "150 records" in run(*words).stderr
    assert "; counted " in run("ask", "kept.rejoint", asked[1]).stdout
    assert run(*words, "--no-counts").exit_code == 2
    assert run("ask", "kept.rejoint", "P(lung | smoke)", "-o", "counted.csv").exit_code == 0
    assert list(rows((world / "counted.csv").read_text())[0]) == [
        *("lung", "smoke", "prob", "low", "high", "counted", "records", "model")
    ]


def test_multiple_imputation(run, world, drawn):
    words = ["impute", drawn, "patients.csv", "--draws", 3]
    result = run(*words, "-o", "three.csv")
    assert result.exit_code == 0, result.stderr
    assert "of 150 rows, 3 times." in result.stderr
    given = rows((world / "patients.csv").read_text())
    found = rows((world / "three.csv").read_text())
    assert [row["draw"] for row in found] == [str(k) for k in (1, 2, 3) for _ in given]
    differ = 0
    for k, row in enumerate(given):
        tables = [found[k + len(given) * m] for m in range(3)]
        for name, cell in row.items():
            values = {table[name] for table in tables}
            assert values == {cell} if cell else values <= {"yes", "no"}
            differ += len(values) > 1
    assert differ > 0  # what is not known differs from table to table
    assert run(*words).stdout == (world / "three.csv").read_text()


@pytest.mark.parametrize("more", [["--method", "mode"], ["--probabilities", "p.csv"]])
def test_multiple_imputation_is_by_draws(run, more):
    result = run("impute", "patients.rejoint", "patients.csv", "--draws", 3, *more)
    assert result.exit_code == 2
    assert (
        "--draws needs --method draw and cannot be combined with --probabilities"
    ) in result.stderr


def test_a_place_that_cannot_be_written_is_told_before_the_fit(run, monkeypatch):
    def never(*args, **more):
        raise AssertionError("fitted all the same")

    monkeypatch.setattr("rejoint.cli.fit.estimate", never)
    monkeypatch.setattr("rejoint.cli.fit_tables.factorize", never)
    for words in (["fit", "patients.csv"], ["fit-tables", "triples"]):
        result = run(*words, "-o", "nowhere/x.rejoint")
        assert result.exit_code == 1
        assert "there is no folder" in result.stderr


def test_which_tables_to_ask_for(run):
    words = ["identify", "pairs", "--rank", 3, "--plan"]
    told = json.loads(run(*words, "--json").stdout)
    assert told["plan"]
    assert all(len(names) == 3 for names in told["plan"])
    assert "Tables to add for rank 3: " in run(*words).stdout
    assert run("identify", "pairs", "--plan").exit_code == 2
    said = run("fit-tables", "pairs", "-o", "open.rejoint", "--rank", 3).stderr
    assert said.count("rejoint identify --plan says which") == 1
