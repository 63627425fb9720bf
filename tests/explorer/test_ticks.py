"""A served page shows the best of count and model, and the count as a tick."""

import http.client
import json
from urllib.parse import urlsplit

import numpy as np
import pytest

from rejoint.explorer import document
from rejoint.explorer.open import Opened
from rejoint.pmf.counts import Counts


@pytest.fixture(scope="module")
def counting(posterior, patients):
    return Opened(posterior.with_counts(Counts.of(patients)))


def smokers(pmf):
    n = pmf.domain.index("smoke")
    return n, [[n, {"kind": "in", "levels": [0]}]], [[n, [1, 0]]]


def test_bars_and_answers_are_those_of_ask(node, counting):
    pmf, question = counting.pmf, "P(dysp | smoke = yes)"
    n, pieces, pairs = smokers(pmf)
    replies = {
        "[]": counting.count([]),
        json.dumps(pairs, separators=(",", ":")): counting.count(pairs),
        json.dumps(question): counting.count(question),
    }
    found = node("counted", [document(pmf) | {"can_count": True}, pieces, question, replies])
    answer = pmf.ask(question)
    of_dysp = found["bars"][pmf.domain.index("dysp")]
    for same in (of_dysp["bars"], found["answer"]["value"]):
        np.testing.assert_allclose(same, answer.value)
    np.testing.assert_allclose(of_dysp["bounds"]["low"], answer.interval.low)
    np.testing.assert_allclose(of_dysp["counted"], answer.counted)
    np.testing.assert_allclose(found["answer"]["counted"], answer.counted)
    assert found["answer"]["records"] == [answer.records]
    assert found["answer"]["notes"] == list(answer.notes)
    assert found["bars"][n]["counted"] is None  # what is given has no count


def test_page_without_counts_answers_as_the_model(node, posterior):
    question = "P(dysp | smoke = yes)"
    _, pieces, _ = smokers(posterior)
    found = node("counted", [document(posterior), pieces, question, {}])
    assert found["answer"] is None


def test_counts_are_served_and_what_is_no_question_is_refused(served, counting):
    address = urlsplit(served(document(counting.pmf), count=counting.count))
    head = {"Origin": f"http://{address.netloc}", "Content-Type": "application/json"}

    def post(body):
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
        connection.request("POST", "/t0ken/counts", body=body, headers=head)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    status, text = post('"P(dysp = yes | smoke = yes)"')
    assert status == 200
    assert json.loads(text)["counted"] == counting.pmf.ask("P(dysp = yes | smoke = yes)").counted
    assert post("[[99, [1, 0]]]")[0] == post('"P(nothing)"')[0] == post("3")[0] == 400
