"""Properties over random questions and random texts: nothing but QueryError ever comes out."""

import warnings

from hypothesis import example, given
from hypothesis import strategies as st
from random_questions import QUERIES, SEEDS, answer_or_error, mutated, texts
from small_world import model

from rejoint.language import MAX_LENGTH, QueryError, parse

P = model(zeros=0.3)


@given(QUERIES)
def test_the_text_of_a_question_reads_back_as_the_same(query):
    text = str(query)
    again = parse(text)
    assert again == query
    assert str(again) == text


@given(texts())
@example("\ud800")
@example("P(a = '\ud800\x00')")
@example("P(" + "(" * 5000)
@example("P(a = " + "\\" * 5000)
def test_no_text_does_anything_but_parse_or_say_where_it_is_wrong(text):
    found = parsed(text)
    if isinstance(found, QueryError):
        assert 0 <= found.position <= len(text)
        str(found).encode()
    else:
        assert len(str(found)) > MAX_LENGTH or parse(str(found)) == found


def parsed(text):
    try:
        return parse(text)
    except QueryError as error:
        return error


@given(st.sampled_from(SEEDS), st.randoms(use_true_random=False))
def test_mutated_questions_are_answered_or_refused(seed, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = answer_or_error(P, mutated(seed, rng))
    assert outcome in ("answer", "QueryError", "ZeroEvidenceError")
