"""No message repeats a file: whatever is long in the data, errors and remarks stay readable."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import rejoint as rj

LONG = "n" * 20_000
MOST = 3000  # characters of a message
SOURCES = sorted((Path(__file__).parents[1] / "src" / "rejoint").rglob("*.py"))


def messages_of(call, *args, **options):
    """What a call says: its remarks and its error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            call(*args, **options)
        except (ValueError, KeyError, TypeError, OSError, MemoryError, rj.QueryError) as error:
            return [*(str(each.message) for each in said), str(error)]
    return [str(each.message) for each in said]


FRAMES = {
    "name": {LONG: [1, 2], "b": ["x", "y"]},
    "uneven": {LONG: [1, 2], LONG + "b": ["x"]},
    "empty column": {LONG: [None, None], "b": ["x", "y"]},
    "mixed": {LONG: [1, "1"] * 20, "b": ["x", "y"] * 20},
    "odd cells": {"a": [{LONG: 1}, 2], "b": [1, 2]},
    "list cells": {LONG: [[LONG], 2], "b": [1, 2]},
    "bytes": {"a": [LONG.encode(), b""], "b": [1, 2]},
    "identifiers": {"a": [LONG + str(i) for i in range(200)], "b": [0, 1] * 100},
    "dates": {LONG: [f"2020-01-{1 + i % 28:02}" for i in range(200)], "b": [0, 1] * 100},
    "numbers": {LONG: np.random.default_rng(0).normal(size=2000), "b": [0, 1] * 1000},
    "text nan": {LONG: ["nan", "x"] * 20, "b": [0, 1] * 20},
    "surrogate": {"a": ["\ud800" + LONG, "y"], "b": [0, 1]},
    "single text": {"a": LONG, "b": [0, 1]},
    "set": {LONG: {1, 2}, "b": [0, 1]},
    "longer": {LONG * 6: [0, 1], "b": [0, 1]},
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns(frame):
    for options in (
        {},
        {"bins": {LONG: 2}},
        {"bins": {"b": LONG}},
        {"levels": {"b": [LONG]}},
        {"kinds": {"a": LONG}},
        {"kinds": {LONG: "ordinal"}},
        {"domain": rj.Domain.of({"a": ["x"], LONG: [LONG]})},
        {"sample_weight": LONG},
    ):
        for said in messages_of(rj.Records.of, frame, **options):
            assert 0 < len(said) <= MOST


TEXTS = {
    "a.csv": [
        f"a,b\n{LONG},1,2\n",
        f"{LONG},{LONG}\n1,2\n",
        f"{LONG},b\n1\n",
        f'a,"{LONG}\n1,2\n',
        f'a,b\n"{LONG}"x,2\n',
        f"{LONG}\n",
        f"a,b\n{LONG},1\n\ud800,2\n",
        f"{LONG},b\n,1\n,2\n",
    ],
    "a.jsonl": [
        f'{{"{LONG}": [1]}}\n',
        f'{{"{LONG}": {{"a": 1}}}}\n',
        f'["{LONG}"]\n',
        f'"{LONG}"\n',
        f"{{{LONG}\n",
        f'{{"{LONG}": 1}}\n{{"{LONG}": "x"}}\n{{"b": 1}}\n',
    ],
}


@pytest.mark.parametrize(("name", "text"), [(k, text) for k in TEXTS for text in TEXTS[k]])
def test_files(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode(errors="surrogatepass"))
    for options in (
        {},
        {"encoding": "ascii"},
        {"encoding": LONG},
        {"columns": [LONG + "c"]},
        {"without": [LONG + "c"]},
        {"bins": {LONG: 3}},
        {"header": [LONG]},
        {"delimiter": LONG},
        {"format": LONG},
        {"missing": [LONG]},
    ):
        for said in messages_of(rj.read, path, **options):
            assert 0 < len(said) <= MOST


def test_tables(tmp_path):
    rows = [[3.0, 4.0], [5.0, 6.0]]
    for tables in (
        {(LONG, "b"): [[1.0, -1.0], [2.0, 3.0]]},
        {(LONG, "b"): [[1e300, 1.0], [2.0, 3.0]]},
        {(LONG, LONG): rows},
        {(LONG, "b"): [1.0, 2.0]},
        {(LONG, "b"): rows, ("b", LONG): [[1.0], [2.0]]},
        {(LONG, "b"): rows, (LONG,): [500.0, 1.0]},
        {LONG: LONG},
        {(LONG, "b"): {(LONG, "x"): 1.0, (LONG, "y"): -2.0}},
        {(LONG, "b"): {(LONG, "x"): 1.0, (LONG,): 2.0}},
        {("a", "b"): {(LONG, "x"): 1.0, (None, "x"): 2.0}},
    ):
        for said in messages_of(rj.Marginals.from_tables, tables):
            assert 0 < len(said) <= MOST
    good = rj.Marginals.from_tables({("a", "b"): rows, ("b",): [8.0, 10.0]})
    good.write(tmp_path / "tables")
    manifest = json.loads((tmp_path / "tables" / "tables.json").read_text())
    for path in paths_of(manifest):
        for value in (LONG, [LONG], {LONG: LONG}):
            changed = json.dumps(replaced(manifest, path, value))
            (tmp_path / "tables" / "tables.json").write_text(changed)
            for said in messages_of(rj.Marginals.read, tmp_path / "tables"):
                assert 0 < len(said) <= MOST


def paths_of(plain, path=()):
    """The way to every part of nested lists and dicts."""
    yield path
    if isinstance(plain, dict | list):
        parts = plain.items() if isinstance(plain, dict) else enumerate(plain)
        for key, part in parts:
            yield from paths_of(part, (*path, key))


def replaced(plain, path, value):
    """A copy with another value in one place."""
    if not path:
        return value
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


def test_models(tmp_path):
    path = tmp_path / "model.json"
    rj.datasets.asia().project(["smoke", "lung"]).save(path, notes={"records": 5.0})
    plain = json.loads(path.read_text())
    for where in paths_of(plain):
        for value in (LONG, {LONG: LONG}):
            path.write_text(json.dumps(replaced(plain, where, value)))
            for said in messages_of(rj.load, path):
                assert 0 < len(said) <= MOST


def test_questions_and_evidence():
    pmf = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 2, rj.Domain.of({"a": [0, 1], LONG: [LONG, "y"]}))
    calls = [
        (pmf.prob, {LONG: LONG + "z"}),
        (pmf.prob, {LONG + "z": 1}),
        (pmf.prob, {"a": LONG}),
        (pmf.prob, {"a": 1}, {LONG: 5}),
        (pmf.marginal, [LONG + "z"]),
        (pmf.marginal, [LONG, LONG]),
        (pmf.condition, {LONG: [0.0, 0.0]}),
        (pmf.expect, LONG),
        (rj.estimate, {LONG: ["x", "y"] * 9, "b": [0, 1] * 9}, LONG),
        (rj.estimate, {LONG: ["x", "y"] * 9, "b": [0, 1] * 9}, 1, LONG),
        (rj.datasets.asia().align, pmf.domain),
        (rj.load, LONG[:200]),
    ]
    for call, *args in calls:
        for said in messages_of(call, *args):
            assert 0 < len(said) <= MOST


def test_messages_show_values_through_one_function():
    """What an f-string shows as Python writes it has no limit: cite(value) has one."""
    own = r"self|counted|known|thing|value"  # objects of the package, whose texts are short
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(rf'\bf"[^"]*\{{(?!{own})[^{{}}"]*!r\}}', line)
        and not line.strip().startswith((">>>", "..."))
    ]
    assert found == []
