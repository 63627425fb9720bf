"""The seven readers, each with valid inputs, mutations of them, and what may come of these.

A reader has ``make(rng)``, which returns bytes, and ``check(data, folder)``, which reads them and
returns what came of it in a word. Errors in words are an outcome; any other exception is a find.
"""

import json
import os
import sys
import tempfile
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import COMMANDS, main
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble

from .mutate import mutate_archive, mutate_bytes, mutate_json

MOST_WORDS = 3000  # characters of an error: it shall not repeat the file
REFUSED = (ValueError, KeyError, FileNotFoundError)


def refuse(error):
    """Say that an error is one in words, or raise it."""
    said = error.args[0] if error.args else ""
    if not isinstance(said, str) or len(said) < 15 or len(said) > MOST_WORDS:
        raise error
    return "refused"


class Text:
    """Delimited text."""

    pieces = (
        *(b",", b";", b"\t", b"|", b'"', b"\n", b"\r\n", b"\r", b"\x00", b'""', b"NA", b"?"),
        b"1e999",
        *(b"1234567890123456789", b"-5", b"1,5", b"007", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3"),
        *(b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80", b"=1+1", b"#", b"x" * 200_000, b"2020-01-01"),
    )  # fmt: skip
    name = "data.csv"

    def seeds(self):
        rows = "".join(f"{'xyz'[i % 3]},{i % 2},{i * 7 % 50},{1.5 * i}\n" for i in range(40))
        quoted = 'a;"b ""c""";d\n' + '"x; y";1,5;k\n"u\nv";2,25;l\n' * 10
        return [
            f"a,b,age,size\n{rows}".encode(),
            quoted.encode(),
            "a\tb\nköln\tx\nbonn\ty\n".encode("latin-1") * 5,
            "a,b\nköln,x\nbonn,y\n".encode("utf-16"),
            ("a,b\n" + "x,1\ny,2\n" * 40_000).encode(),
        ]

    def make(self, rng):
        seeds = self.seeds()
        return mutate_bytes(rng, rng.choice([*seeds[:-1] * 8, seeds[-1]]), seeds, self.pieces)

    def check(self, data, folder):
        path = folder / self.name
        path.write_bytes(data)
        try:
            records = rj.read(path)
        except REFUSED as error:
            return refuse(error)
        json.dumps(records.domain.to_json(), ensure_ascii=False).encode()  # a file can hold it
        assert (records.codes < np.array(records.domain.shape)).all()
        chunks = list(rj.read_chunks(path, size=7))
        assert sum(map(len, chunks)) == len(records)
        return "read"


class JsonLines(Text):
    """One JSON object per line, or a list of objects."""

    pieces = (
        *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\n", b"null", b"NaN", b"1e999", b"\\ud800"),
        *(b'{"a": [1]}', b'{"a": {"b": 1}}', b"\xff", b"\xef\xbb\xbf", b"1" * 5000, b"[" * 5000),
    )  # fmt: skip
    name = "data.jsonl"

    def seeds(self):
        rows = [{"a": "xyz"[i % 3], "b": i % 2 == 0, "n": i * 7 % 50, "x": None} for i in range(20)]
        lines = "".join(json.dumps({**row, "x": 1.5}) + "\n" for row in rows)
        return [lines.encode(), json.dumps(rows[:5]).encode(), lines.encode("utf-16")]

    def make(self, rng):
        if rng.random() < 0.5:
            return super().make(rng)
        rows = [json.loads(line) for line in self.seeds()[0].splitlines()]
        return "".join(json.dumps(row) + "\n" for row in mutate_json(rng, rows)).encode()


class Tables:
    """Published tables as files, and folders that the package wrote."""

    pieces = (*Text.pieces, b"Total", b"x", b"*", b"..", b"(1)", b"%", b"1 234", b"-", b"1e308")

    def seeds(self):
        folder = files("rejoint.datasets") / "town_downloads"
        found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        found["keys.px"] = (
            b'CHARSET="ANSI";UNITS("n")="persons";STUB="a","b";HEADING="c";CONTVARIABLE="c";'
            b'VALUES("a")="T","x","y";VALUES("b")="u","v";VALUES("c")="n","r";CODES("a")="0","1","2";'
            b'ELIMINATION("a")="T";HIERARCHIES("a")="0","0":"1","0":"2";KEYS("a")=CODES;'
            b'KEYS("b")=VALUES;\nDATA=\n"1","u",1 2;\n"2","v",3 "..";\n"0","u",1 2;\n"0","v",3 -;'
        )
        found["flags.tsv"] = (
            b"sex,age,geo\\TIME_PERIOD\t2019 \t2020 \nF,TOTAL,AT\t30 \t36 p\nF,Y1,AT\t10 \t12 \n"
            b"F,Y2,AT\t: c\t24 e\nM,Y1,AT\t1 \t2 \nM,Y2,AT\t3 \t4 \nM,TOTAL,AT\t4 \t6 \n"
        )
        found["bundle.json"] = json.dumps(
            {
                "one": {
                    "value": {"0": 1, "3": 2.5},
                    "status": ["a"],
                    "dimension": {
                        **{"id": ["s", "m"], "size": ["2", "2"], "role": {"metric": ["m"]}},
                        "s": {"category": {"index": {"x": 0, "y": 1}, "child": {"x": ["y"]}}},
                        "m": {"category": {"index": ["n", "r"], "unit": {"n": {"multiplier": 3}}}},
                    },
                }
            }
        ).encode()
        return found

    @staticmethod
    @cache
    def written():
        domain = rj.Domain.of({"a": ["x", "y"], "b": [1, 2, 3]})
        tables = rj.Marginals.from_tables(
            {("a", "b"): [[3.0, np.nan, 4.0], [np.nan, 7.0, 1.0]], ("b",): [0.5, 0.25, 0.25]},
            domain=domain, suppressed=(1, np.inf), moments={("b",): 2.0},
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            tables.write(folder)
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}

    def make(self, rng):
        if rng.random() < 0.5:
            parts = dict(self.written())
            name = rng.choice([*sorted(parts), "tables.json"])
            if name == "tables.json" and rng.random() < 0.8:
                changed = json.dumps(mutate_json(rng, json.loads(parts[name]))).encode()
            else:
                changed = mutate_bytes(rng, parts[name], list(parts.values()), self.pieces)
            parts[name] = changed
        else:
            seeds = self.seeds()
            name = rng.choice(sorted(seeds))
            if name.endswith(".json") and rng.random() < 0.7:
                changed = json.dumps(mutate_json(rng, json.loads(seeds[name]))).encode()
            else:
                changed = mutate_bytes(rng, seeds[name], list(seeds.values()), self.pieces)
            parts = {name: changed}
            if name == "tables.toml" or rng.random() < 0.3:  # a description beside its files
                parts = {**seeds, name: changed}
                del parts["bundle.json"], parts["keys.px"], parts["flags.tsv"]
                parts[name] = changed
        return json.dumps({name: part.decode("latin-1") for name, part in parts.items()}).encode()

    def check(self, data, folder):
        for name, part in json.loads(data).items():
            (folder / name).write_bytes(part.encode("latin-1"))
        try:
            tables = rj.Marginals.read(folder)
        except REFUSED as error:
            return refuse(error)
        assert np.isfinite(tables.flat).all()
        return "read"


class Models:
    """Saved models."""

    @staticmethod
    @cache
    def seeds():
        age = rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, float("inf"))), "binned", (9.0, 40.0))
        domain = rj.Domain((rj.Variable("text", ("ja", "π")), rj.Variable("n", (1, 2, 3)), age))
        rng = np.random.default_rng(0)
        factors = [rng.dirichlet(np.ones(levels), size=2).T for levels in domain.shape]
        pmf = rj.LowRankPMF([0.25, 0.75], factors, domain)
        drawn = rj.LowRankPMF(pmf.weights, factors, domain, [pmf, pmf.sorted(), pmf])
        members = [pmf, pmf.sorted()]
        ensemble = LabelEnsemble(members, 1, np.full((3, 2), 0.5), np.array([1]), [0.5])
        cells = {
            ("text", "n"): [[3.0, np.nan, 4.0], [np.nan, 7.0, 1.0]],
            ("n", "age"): [[0.5, 0]] * 3,
        }
        tables = rj.Marginals.from_tables(
            cells, domain=domain, suppressed=(1, np.inf), kind="counts", moments={("n", "age"): 0.1}
        )
        sums = ((np.array([0, 1]), 5.0),)
        tables = replace(tables, unknown=replace(tables.unknown, sums=sums))
        told = pmf.with_tables(tables, "Unique.").condition({"age": rj.Bin(0, 18)})
        fit = {"names": ["n"], "distance": 0.1, "chance": None, "records": 9.0}
        notes = {
            "class_names": ["x", "y"],
            "records": 500.0,
            "missing": {"n": 0.1},
            "fit": {"tables": [fit], "checked": 1, "all": 1},
            "rank_curve": {"rank": 1, "ranks": [1, 2], "scores": [0.5, 0.1], "errors": [0.1, 0.1]},
            "tables": [{"names": ["n", "age"], "total": None}],
            "choice": "a choice",
        }
        found = []
        with tempfile.TemporaryDirectory() as folder:
            saved = [model.to_saved(notes) for model in (told, drawn, pmf)]
            for contents in (*saved, saved[-1]._replace(ensemble=ensemble.to_saved())):
                for name in ("a.rejoint", "a.json"):
                    rj.io.write_model(Path(folder, name), contents)
                    found.append(Path(folder, name).read_bytes())
        return found

    def make(self, rng):
        seeds = self.seeds()
        at = rng.randint(0, len(seeds) - 1)
        if rng.random() < 0.5:
            return mutate_bytes(rng, seeds[at], seeds, [b"{}", b"null", b"1e999", b"\\ud800"])
        if at % 2:
            return json.dumps(mutate_json(rng, json.loads(seeds[at]))).encode()
        return mutate_archive(rng, seeds[at])

    def check(self, data, folder):
        path = folder / "model.rejoint"
        path.write_bytes(data)
        try:
            model = rj.load(path)
        except ValueError as error:
            return refuse(error)
        pmf = model
        if isinstance(model, rj.JointClassifier):
            pmf, ensemble = model.pmf_, model.ensemble_
            nothing = np.full((1, len(ensemble.features)), -1, dtype=np.int16)
            for shares in ensemble.probabilities(nothing):
                assert abs(shares.sum() - 1.0) < 1e-5
        for each in (pmf, *pmf.draws):
            assert abs(each.marginal([each.domain.names[0]]).sum() - 1.0) < 1e-6
        if len(data) % 5 == 0:  # notes are shown by these
            for words in (["inspect", str(path)], ["report", str(path), "-o", f"{path}.html"]):
                run_command(words)
        return "loaded"


class Checkpoints:
    """Checkpoints of fits."""

    records = rj.Records.of({"a": [0, 1, 1, 0, 1] * 4, "b": [1, 0, 1, 1, 0] * 4, "c": [0, 1] * 10})

    def fit(self, path, solver):
        more = {"n_init": 2} if solver == "ml" else {}
        return rj.estimate(
            self.records, rank=2, solver=solver, random_state=0, checkpoint=path, **more
        )

    @staticmethod
    @cache
    def seeds():
        found = []
        for solver in ("ml", "bayes"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "fit.checkpoint")
                Checkpoints().fit(path, solver)
                found.append((solver, path.read_bytes()))
        return found

    def make(self, rng):
        at = rng.choice([0, 0, 0, 1])
        data = self.seeds()[at][1]
        if rng.random() < 0.3:
            data = mutate_bytes(rng, data, [data], [b"{}", b"null", b"1e999"])
        else:
            data = mutate_archive(rng, data)
        return bytes([at]) + data

    def check(self, data, folder):
        path = folder / "fit.checkpoint"
        path.write_bytes(data[1:])
        try:
            result = self.fit(path, self.seeds()[data[0] % 2][0])
        except ValueError as error:
            return refuse(error)
        assert abs(result.pmf.marginal(["a"]).sum() - 1.0) < 1e-6
        return "resumed"


class Questions:
    """Questions in the query language."""

    @staticmethod
    @cache
    def world():
        sys.path.insert(0, str(Path(__file__).parents[1] / "language"))
        from random_questions import PIECES, SEEDS
        from small_world import model

        return model(zeros=0.3), SEEDS, PIECES

    def make(self, rng):
        _, seeds, pieces = self.world()
        if rng.random() < 0.3:
            return "".join(rng.choices(pieces, k=rng.randint(0, 40))).encode("utf-8", "replace")
        texts = [text.encode() for text in seeds]
        parts = [piece.encode("utf-8", "replace") for piece in pieces]
        return mutate_bytes(rng, rng.choice(texts), texts, parts)

    def check(self, data, folder):
        text = data.decode("utf-8", "replace")
        try:
            answer = self.world()[0].ask(text)
        except (rj.QueryError, rj.ZeroEvidenceError) as error:
            return "refused" if str(error) else refuse(error)  # it shows the question
        assert str(answer)
        json.dumps(answer.to_json())
        return "answered"


def run_command(words):
    """Run a command line; whatever it ends with but an exit is a find."""
    done = CliRunner().invoke(main, words, input="P(b)\n")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return f"exit {done.exit_code}"


class Arguments:
    """Arguments of the command line, on small files."""

    left_out = ("demo", "explore")  # which do not end, or take long
    values = (
        *("a", "b", "a,b", "0", "1", "2", "-1", "1e999", "nan", "", "=", "a=2", "a=0,1,2", "b=x"),
        *("\x1b[31m", "\x00", "\udcff", "x" * 5000, "{}", "[", '"', "*", "..", "/", "utf-8", "x,y"),
        *("data.csv", "model.rejoint", "tables", "none.csv", "-", "out.csv", "out.json", "out.xyz"),
        *("P(a)", "P(a | b = 1)", "sample 3", "csv", "parquet", "text", "json", "ml", "map"),
    )  # fmt: skip
    needed = {  # noqa: RUF012 (nothing changes it)
        "fit": ["data.csv", "-o", "out.rejoint", "--rank", "1", "--solver", "ml"],
        "fit-target": ["data.csv", "-o", "out.rejoint", "--target", "b", "--rank", "1"],
        "fit-ratings": ["data.csv", "-o", "out.rejoint", "--rank", "1"],
        "check-tables": ["tables"],
        "fit-tables": ["tables", "-o", "out.rejoint", "--rank", "1"],
        "tables": ["data.csv", "-o", "out", "--order", "1"],
        "rank": ["data.csv", "--ranks", "1"],
        "ask": ["model.rejoint", "P(a)"],
        "sample": ["model.rejoint", "-n", "3"],
        "inspect": ["model.rejoint"],
        "compare": ["model.rejoint", "model.rejoint"],
        "identify": ["model.rejoint"],
        "predict": ["model.rejoint", "data.csv", "--target", "b"],
        "impute": ["model.rejoint", "data.csv"],
        "score": ["model.rejoint", "data.csv"],
        "recommend": ["model.rejoint"],
        "population": ["model.rejoint", "-n", "3"],
        "rake": ["data.csv", "tables"],
        "report": ["model.rejoint", "-o", "out.html"],
        "export": ["model.rejoint", "-o", "out.html"],
    }

    def make(self, rng):
        commands = [name for part in COMMANDS.values() for name in part]
        name = rng.choice([name for name in commands if name not in self.left_out])
        command = main.get_command(None, name)
        options = [option for param in command.params for option in param.opts if option[0] == "-"]
        words = list(self.needed[name])
        for _ in range(rng.randint(0, 4)):
            word = rng.choice(options if rng.random() < 0.6 else self.values)
            if word in ("--rank", "--ranks", "--starts", "-n", "--draws", "--order"):
                more = [word, rng.choice(["1", "2", "0", "-1", "x"])]
            elif word.startswith("-") and rng.random() < 0.8:
                more = [word, rng.choice(self.values)]
            else:
                more = [word]
            place = rng.randint(0, len(words))
            words[place : place + rng.choice([0, 0, 1])] = more
        return json.dumps([name, *words]).encode()

    def check(self, data, folder):
        before = Path.cwd()
        os.chdir(folder)
        try:
            rows = "".join(f"{'xyz'[i % 3]},{i % 2},{i % 4}\n" for i in range(24))
            Path("data.csv").write_text(f"a,b,c\n{rows}")
            records = rj.Records.of({"a": list("xyz") * 8, "b": [0, 1] * 12, "c": [0, 1, 2, 3] * 6})
            rj.Marginals.count(records, order=2).write("tables")
            small_model().save("model.rejoint", notes={"records": 24.0})
            return run_command(json.loads(data))
        finally:
            os.chdir(before)


@cache
def small_model():
    """A model of the columns of the small file."""
    rng = np.random.default_rng(0)
    domain = rj.Domain.of({"a": list("xyz"), "b": [0, 1], "c": [0, 1, 2, 3]})
    factors = [rng.dirichlet(np.ones(levels), 2).T for levels in domain.shape]
    return rj.LowRankPMF([0.25, 0.75], factors, domain)


READERS = {
    "text": Text(),
    "json": JsonLines(),
    "tables": Tables(),
    "models": Models(),
    "checkpoints": Checkpoints(),
    "questions": Questions(),
    "arguments": Arguments(),
}
