"""What the parser must make of a text, word by word: ports to other languages are held to it."""

import json
from pathlib import Path

import pytest

from rejoint.language import QueryError, parse

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def test_there_are_cases():
    assert len(GOLDEN["queries"]) > 50
    assert len(GOLDEN["errors"]) > 50


@pytest.mark.parametrize("case", GOLDEN["queries"], ids=lambda case: case["text"])
def test_queries(case):
    query = parse(case["text"])
    assert query.to_json() == case["query"]
    assert str(query) == case["canonical"]
    assert parse(str(query)) == query


@pytest.mark.parametrize("case", GOLDEN["errors"], ids=lambda case: case["text"])
def test_errors(case):
    with pytest.raises(QueryError) as caught:
        parse(case["text"])
    assert (caught.value.position, caught.value.reason) == (case["position"], case["reason"])
