"""Numbers agree with their nouns: one record is not "1 records"."""

import ast
import re
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main
from rejoint.text import plural

FALSE_PLURAL = re.compile(
    r"(?<![\d.,/^-])(?<!- )1 (?:[a-z]+ )?(?!(?:is|has|was|this|class)\b)[a-z]+s\b"
)
NOUNS = (
    "records|rows|tables|variables|cells|classes|levels|columns|files|bins|labels|parameters|models"
    "|draws|starts|ranks|users|items|chunks|chains|sweeps|groups|nodes|members|times|dimensions"
)
#: Numbers that are never one: limits, and numbers of what was found to be several.
SEVERAL = re.compile(
    r"MOST_\w+|MAX_\w+|RECORDS|ORDER|PAGE_CLASSES|format_count|plural|len\(known.goals\)|number"
    r"|negligible_records|fibers|sample|len\(shape\)|count|largest|bounds|verb|low|name|what|filled|noun|present|most|^rows$"
)
SOURCES = sorted((Path(__file__).parents[1] / "src" / "rejoint").rglob("*.py"))


def numbers_before_nouns(source):
    """Yield line, expression and noun of each number that a text shows before a plural."""
    noun = rf" (?:[a-z]+ )?({NOUNS})\b"
    if not re.search(r"\}" + noun.replace(" ", r"[ \n\"f]+", 1), source):
        return  # most files, which need no parsing
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for shown, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(shown, ast.FormattedValue) and isinstance(text, ast.Constant):
                    found = re.match(noun, str(text.value))
                    if found and not re.search(r"\b(?:has|of|whose)\b", found[0]):
                        yield node.lineno, ast.unparse(shown.value), found[1]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in re.finditer(r"\{(\w+)(?::[^{}]*)?\}" + noun, node.value):
                if not re.search(r"\b(?:has|of|whose)\b", found[0]):
                    yield node.lineno, found[1], found[2]


def test_numbers_are_written_with_their_noun_by_one_function():
    found = [
        f"{path.name}:{line}: {{{shown}}} {noun}"
        for path in SOURCES
        if path.name != "messages.py"
        for line, shown, noun in numbers_before_nouns(path.read_text(encoding="utf-8"))
        if not SEVERAL.search(shown)
    ]
    assert found == [], "use text.plural"


def test_plural():
    assert plural(1, "such model") == "1 such model"
    assert FALSE_PLURAL.search("Worst of 1 tables:")
    assert FALSE_PLURAL.search("from 1 more records")
    assert not FALSE_PLURAL.search("21 records of 1 variable, 0.1 records, 1 of 3 tables, 1 class")


ONE = {"a": ["x"], "b": [5]}


def test_objects_of_one_part():
    records = rj.Records.of(ONE)
    tables = rj.Marginals.count(records, order=1)
    one = rj.Marginals.from_tables({("a",): [1.0, 0.0]})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = rj.estimate(records, random_state=0)
        made = [
            records,
            tables,
            one,
            fit,
            fit.pmf,
            rj.factorize(one, random_state=0),
            rj.identifiability.report([2, 2], 1),
            fit.pmf.ask("P(a)"),
            fit.pmf.ask("sample 1"),
            rj.rank.select(records, random_state=0),
            rj.JointImputer(random_state=0).fit(ONE),
        ]
    for each in (*map(repr, made), *map(str, made), *(str(w.message) for w in said)):
        assert not FALSE_PLURAL.search(each), each


def test_errors_on_one_part():
    pmf = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    for call in (
        lambda: rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 2, rj.Domain.of({"a": 2})),
        lambda: rj.LowRankPMF([1.0], [[[1.0]]], rj.Domain.of({"a": 2})),
        lambda: rj.Records.of([[1, 2], [1]]),
        lambda: rj.Records.of(ONE, sample_weight=[1.0, 2.0]),
        lambda: rj.Records.of(ONE, clusters=["u", "v"]),
        lambda: rj.Marginals.from_tables({("a", "b"): [1.0, 2.0]}),
        lambda: rj.Marginals.from_tables({("a", "b"): {("x",): 1.0}}),
        lambda: rj.Marginals.count(rj.Records.of({"a": ["x", "y"]}), order=2),
        lambda: rj.JointClassifier().fit(ONE, "a"),
        lambda: pmf.marginal(["x1"]),
    ):
        with pytest.raises((ValueError, KeyError, TypeError)) as error:
            call()
        assert not FALSE_PLURAL.search(str(error.value)), str(error.value)


def test_commands_on_one_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("a,b\nx,5\n")
    Path("gap.csv").write_text("a,b\nx,\n")
    Path("rated.csv").write_text("user,film,stars\nu,f,5\n")
    rj.LowRankPMF([1.0], [[[1.0], [0.0]], [[1.0]]], rj.Domain.of({"a": ["x", "y"], "b": [5]})).save(
        "zero.rejoint"
    )
    for line in (
        "fit one.csv -o one.rejoint",
        "fit one.csv -o s.rejoint --stream",
        "inspect one.rejoint",
        "report one.rejoint -o report.html",
        "score one.rejoint one.csv",
        "predict one.rejoint one.csv --target a",
        "impute one.rejoint gap.csv",
        "impute one.rejoint gap.csv --draws 1",
        "ask one.rejoint P(a)",
        "tables one.csv -o tables --order 2",
        "tables one.csv -o none --order 2 --dry-run",
        "fit-tables tables -o two.rejoint",
        "fit-tables tables -o two.rejoint --rank 1",
        "inspect two.rejoint",
        "compare one.rejoint one.rejoint",
        "identify one.rejoint",
        "rank one.csv --ranks 1 --criterion bic",
        "population one.rejoint -n 1",
        "rake one.csv tables",
        "fit-ratings rated.csv -o rated.rejoint",
        "score zero.rejoint one.csv",
    ):
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, (line, done.output)
        found = FALSE_PLURAL.search(done.output)
        assert not found, (line, done.output[max(found.start() - 60, 0) : found.end() + 20])
