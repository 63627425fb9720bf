"""What must come of a text, question and answer: ports to other languages are held to it."""

import json
from pathlib import Path

import numpy as np
import pytest

import rejoint as rj
from rejoint.language import QueryError, parse


def read(name):
    return json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


GOLDEN, ANSWERS = read("golden.json"), read("answers.json")


@pytest.mark.parametrize("case", GOLDEN["queries"], ids=lambda case: case["text"])
def test_queries(case):
    query = parse(case["text"])
    assert str(query) == case["canonical"]
    assert parse(str(query)) == query


@pytest.mark.parametrize("case", GOLDEN["errors"], ids=lambda case: case["text"])
def test_errors(case):
    with pytest.raises(QueryError) as caught:
        parse(case["text"])
    assert (caught.value.position, caught.value.reason) == (case["position"], case["reason"])


@pytest.mark.parametrize("case", ANSWERS["answers"], ids=lambda case: case["query"])
def test_answers(case):
    model = ANSWERS["model"]
    p = rj.LowRankPMF(model["weights"], model["factors"], rj.Domain.from_json(model["domain"]))
    answer = p.ask(case["query"]).to_json()
    assert {**answer, "value": None, "evidence": None} == {**case, "value": None, "evidence": None}
    assert answer["evidence"] == pytest.approx(case["evidence"], rel=1e-12)
    if case["kind"] == "mode":
        assert answer["value"]["levels"] == case["value"]["levels"]
        assert answer["value"]["prob"] == pytest.approx(case["value"]["prob"], rel=1e-11)
    else:
        found, expected = (np.array(plain["value"], dtype=float) for plain in (answer, case))
        # Some hundred products of doubles, and logarithms of them.
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
