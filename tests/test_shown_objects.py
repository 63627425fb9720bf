"""What objects show of themselves: results in some ten lines, answers with their numbers."""

import re
import warnings

import numpy as np
import pytest

import rejoint as rj
from rejoint.messages import remark
from rejoint.pmf.table_gap import TableGap
from rejoint.text import format_interval, format_number


@pytest.fixture(scope="module")
def records():
    truth = rj.datasets.asia()
    return rj.datasets.remove_cells(truth.sample(500, random_state=0), 0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(records):
    return rj.estimate(records, rank=3, random_state=0)


def test_a_fit_shows_what_was_done_in_some_ten_lines(fitted):
    lines = repr(fitted).splitlines()
    assert 8 <= len(lines) <= 15
    assert max(map(len, lines)) <= 100
    shown = re.sub(r"\s+", " ", repr(fitted))
    assert "500 records of 8 variables (asia, smoke, tub" in shown
    answers = fitted.pmf.mixture.rank
    assert (
        f"3 classes to inspect; answers come from the posterior mean of {answers} classes"
    ) in shown
    assert "40 posterior draws" in shown
    assert "Bayes: 500 records for" in shown
    assert f"{fitted.log_likelihood / 500:.4f} per record" in shown
    assert fitted.stop[:60] in shown
    assert ".ask('P(asia | smoke)')" in shown
    assert str(fitted) == repr(fitted)


def test_facts_are_a_list_with_headings_and_html_escapes_them(fitted):
    headings = [heading for heading, _ in fitted.facts()]
    assert headings[:2] == ["fitted", "model"]
    assert headings[-1] == "next"
    assert all(text for _, text in fitted.facts())
    domain = rj.Domain.of({"<b>": ["x", "y"], "c": ["u", "v"]})
    alone = rj.LowRankPMF([1.0], [[[0.3], [0.7]]] * 2, domain)
    tables = rj.Marginals.from_pmf(alone, order=2)
    shown = rj.factorize(tables, rank=1, random_state=0)._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "<table>" in shown


def test_a_fit_to_tables_shows_the_worst_of_them(records):
    result = rj.factorize(rj.Marginals.count(records, order=3), rank=2, random_state=0)
    worst, distance = next(iter(result.misfits.items()))
    shown = re.sub(r"\s+", " ", repr(result))
    assert "56 tables of 3 variables" in shown
    assert f"the worst, ({', '.join(worst)}), has {100 * distance:.2g} % of its mass" in shown
    assert "per record" not in shown


def test_stop_says_how_many_draws_the_model_keeps(fitted):
    assert len(fitted.pmf.draws) == 40
    assert re.search(r"120 posterior draws from 3 chains, .*; the model keeps 40\.", fitted.stop)


def test_an_answer_shows_its_numbers_and_bounds(fitted):
    answer = fitted.pmf.ask("P(bronc | smoke)")
    low, high = answer.interval
    cell = "{} ({} to {})".format(
        *format_interval(answer.value[0, 0], float(low[0, 0]), float(high[0, 0]))
    )
    assert cell in repr(answer)
    assert repr(answer).startswith("<Answer: P(bronc | smoke)\n")
    assert "smoke = yes" in repr(answer)


def test_a_large_answer_shows_a_few_rows():
    domain = rj.Domain.of({"a": list(range(30)), "b": list(range(20))})
    evenly = [np.full((size, 1), 1 / size) for size in domain.shape]
    answer = rj.LowRankPMF([1.0], evenly, domain).ask("P(a, b)")
    assert len(repr(answer).splitlines()) < 16
    assert "588 more rows" in repr(answer)
    assert len(str(answer).splitlines()) > 40


def test_numbers_have_the_digits_that_matter():
    domain = rj.Domain([rj.Variable("mass", (3000, 4000, 5000))])
    rng = np.random.default_rng(0)
    draws = [
        rj.LowRankPMF([1.0], [rng.dirichlet([30, 40, 20])[:, None]], domain) for _ in range(40)
    ]
    model = rj.LowRankPMF([1.0], [[[0.3], [0.45], [0.25]]], domain, draws)
    text = str(model.ask("E(mass)")).splitlines()[0]
    assert re.fullmatch(r"E\(mass\) = 3,8\d0 \(3,\d\d0 to 4,\d\d0\)", text)
    assert "e+" not in text


@pytest.mark.parametrize("value", [0.5, 1e-3, 0.99999, 123456.0, 3e-9, -7.25])
def test_an_interval_keeps_its_ends_apart_and_the_value_inside(value):
    for width in 10.0 ** np.arange(-3, 3) * abs(value):
        texts = format_interval(value, value - 0.3 * width, value + 0.7 * width)
        middle, low, high = (float(text.replace(",", "")) for text in texts)
        assert low <= middle <= high
        assert abs(middle - value) <= 0.1 * max(width, abs(value))
        if width > 1e-5:
            assert low < high
    assert float(format_number(value).replace(",", "")) == pytest.approx(value, rel=1e-3)


def test_small_numbers_keep_their_bounds_apart():
    assert format_interval(1.0042e-6, 9.803e-7, 1.0191e-6) == ("1.004e-6", "9.80e-7", "1.019e-6")


def test_objects_with_numbers_show_few_digits(records):
    domain = rj.Domain.of({"a": ["x", "y"]})
    weighted = rj.Records.of({"a": ["x", "y"]}, domain=domain, sample_weight=[408.1, 0.6440045])
    shown = [
        repr(rj.Marginals.count(weighted, order=1)),
        repr(rj.rank.select(records, ranks=[1, 2], random_state=0)),
        repr(rj.rake(records, rj.Marginals.count(records, subsets=[["smoke"]]))),
        repr(TableGap(("a",), 1 / 3, 2 / 3, "a = x", 1 / 7, 1 / 9)),
    ]
    assert "408.7 records each" in shown[0]
    assert not [text for text in shown if re.search(r"[.][0-9]{7}", text)]


def given(call):
    """Texts of remarks, by filters as they are in a session."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        call()
    return [str(warning.message) for warning in caught]


def test_a_remark_is_given_once_a_session_wherever_the_call_is():
    def session():
        for text in ("data A", "data A", "data B"):
            remark(f"once: {text}")
            with warnings.catch_warnings():  # as libraries do: Python then forgets what it gave
                warnings.simplefilter("ignore", ResourceWarning)
        remark("once: data A")

    assert given(session) == ["once: data A", "once: data B"]


def test_filters_of_the_user_go_first():
    def always():
        warnings.simplefilter("always", rj.Remark)
        remark("told to say always")
        remark("told to say always")

    def silenced():
        warnings.simplefilter("ignore", rj.Remark)
        remark("silenced first")

    assert len(given(always)) == 2
    assert given(silenced) == []
    assert given(lambda: remark("silenced first")) == ["silenced first"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", rj.Remark)
        for _ in range(2):
            with pytest.raises(rj.Remark):
                remark("made an error")


def test_the_package_shows_its_public_names_alone():
    assert [name for name in dir(rj) if not name.startswith("__")] == sorted(rj.__all__)


def test_the_question_that_is_proposed_can_be_asked():
    domain = rj.Domain.of({"the 'first'": ["x", "y"], "my town": ["u", "v"]})
    pmf = rj.LowRankPMF([1.0], [[[0.3], [0.7]]] * 2, domain)
    result = rj.factorize(rj.Marginals.from_pmf(pmf, order=2), rank=1, random_state=0)
    call = dict(result.facts())["next"].split(", .pmf.sample")[0]
    answer = eval(f"result{call}", {"result": result})
    assert answer.value.shape == (2, 2)
