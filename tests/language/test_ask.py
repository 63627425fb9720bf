"""Every form of question, against sums over the dense joint."""

import json
import math
import pickle

import numpy as np
import pytest
from small_world import DOMAIN, VALUES, model

import rejoint as rj
from rejoint.pmf import entropy as information

ROUNDING = 1e-13  # sums of some hundred products of doubles
P = model()
JOINT = P.to_dense()  # axes a, grade, age, stars, ok
AXES = {name: n for n, name in enumerate(DOMAIN.names)}

# Conditions, and which levels of which variable they leave, by hand.
CONDITIONS = {
    "a = y": ("a", [0, 1, 0]),
    'a = "y"': ("a", [0, 1, 0]),
    "a != y": ("a", [1, 0, 1]),
    "not a = y": ("a", [1, 0, 1]),
    "a in {x, z}": ("a", [1, 0, 1]),
    "a not in {x, z}": ("a", [0, 1, 0]),
    "grade >= mid": ("grade", [0, 1, 1]),
    "grade > mid": ("grade", [0, 0, 1]),
    "low < grade <= high": ("grade", [0, 1, 1]),
    "not low < grade < high": ("grade", [1, 0, 1]),
    "age >= 18": ("age", [0, 1, 1]),
    "18 <= age < 40": ("age", [0, 1, 0]),
    "age <= 65": ("age", [1, 1, 1]),
    "age < 40": ("age", [1, 1, 0]),
    "age > -3": ("age", [1, 1, 1]),
    'age >= "[18, 40)"': ("age", [0, 1, 1]),
    'age = "[40, 65]"': ("age", [0, 0, 1]),
    "stars = 2": ("stars", [0, 1, 0]),
    "stars = 2.0": ("stars", [0, 1, 0]),
    'stars = "2"': ("stars", [0, 1, 0]),
    "stars >= 1.5": ("stars", [0, 1, 1]),
    "2 < stars": ("stars", [0, 0, 1]),
    "stars in {1, 4}": ("stars", [1, 0, 1]),
    "ok = True": ("ok", [1, 0]),
    "ok != true": ("ok", [0, 1]),
}
SOFT = {"a ~ {x: 0.8, z: 0.2}": ("a", [0.8, 0, 0.2]), "ok ~ {True: 3, False: 1}": ("ok", [3, 1])}


def weighed(joint, *conditions):
    for name, levels in conditions:
        shape = [-1 if n == AXES[name] else 1 for n in range(joint.ndim)]
        joint = joint * np.reshape(np.array(levels, dtype=float), shape)
    return joint


def onto(joint, *names):
    """Sum down to some variables, in the order asked."""
    axes = [AXES[name] for name in names]
    kept = joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in axes))
    return kept.transpose(np.argsort(np.argsort(axes)))


def entropy(table):
    cells = table[table > 0]
    return float(-(cells * np.log(cells)).sum())


@pytest.mark.parametrize("text", CONDITIONS)
def test_events(text):
    answer = P.ask(f"P({text})")
    assert answer.kind == "probability"
    assert float(answer) == pytest.approx(weighed(JOINT, CONDITIONS[text]).sum(), abs=ROUNDING)


@pytest.mark.parametrize("text", CONDITIONS | SOFT)
def test_evidence(text):
    condition = (CONDITIONS | SOFT)[text]
    given = weighed(JOINT, condition)
    answer = P.ask(f"P(stars, a | {text})")
    np.testing.assert_allclose(answer.value, onto(given / given.sum(), "stars", "a"), atol=ROUNDING)
    assert [axis.name for axis in answer.axes] == ["stars", "a"]
    # Of soft evidence the largest likelihood counts as one.
    assert answer.evidence == pytest.approx(given.sum() / max(condition[1]), abs=ROUNDING)


def test_joint_events_and_evidence():
    given = weighed(JOINT, CONDITIONS["a != y"], CONDITIONS["grade >= mid"])
    met = weighed(given, CONDITIONS["stars >= 1.5"], CONDITIONS["ok = True"])
    answer = P.ask("P(stars >= 1.5, ok = True | a != y, grade >= mid)")
    assert float(answer) == pytest.approx(met.sum() / given.sum(), abs=ROUNDING)


def test_events_beside_variables():
    answer = P.ask("P(stars = 2, grade | a = x)")
    given = weighed(JOINT, ("a", [1, 0, 0]))
    expected = onto(weighed(given, ("stars", [0, 1, 0])), "grade") / given.sum()
    np.testing.assert_allclose(answer.value, expected, atol=ROUNDING)
    # A variable asked for under a condition of its own keeps its axis.
    np.testing.assert_allclose(
        P.ask("P(a, a != x)").value, onto(JOINT, "a") * [0, 1, 1], atol=ROUNDING
    )


def test_variables_right_of_the_bar_are_tabulated_by():
    answer = P.ask("P(a, grade | stars = 2, ok, age)")
    given = onto(weighed(JOINT, ("stars", [0, 1, 0])), "a", "grade", "ok", "age")
    expected = given / given.sum(axis=(0, 1))
    np.testing.assert_allclose(answer.value, expected, atol=ROUNDING)
    assert [axis.name for axis in answer.axes] == ["a", "grade", "ok", "age"]
    event = P.ask("P(grade >= mid | ok)")
    expected = onto(JOINT, "grade", "ok")[1:].sum(axis=0) / onto(JOINT, "ok")
    np.testing.assert_allclose(event.value, expected, atol=ROUNDING)


def test_what_is_impossible_to_tabulate_by_is_nan_and_said():
    answer = P.ask("P(grade | a, a != x)")
    assert np.isnan(answer.value[:, 0]).all()
    assert np.isfinite(answer.value[:, 1:]).all()
    assert answer.notes == ("Undefined, shown as nan, because it is impossible here: a = x.",)
    assert answer.to_json()["value"][0][0] is None
    json.dumps(answer.to_json(), allow_nan=False)


@pytest.mark.parametrize("name", VALUES)
def test_expectations(name):
    given = weighed(JOINT, CONDITIONS["a != y"])
    values = VALUES[name]
    answer = P.ask(f"E({name} | a != y)")
    expected = onto(given / given.sum(), name) @ values
    # Values up to 52.5 scale the rounding of the shares.
    assert float(answer) == pytest.approx(expected, abs=100 * ROUNDING)
    table = onto(given, name, "grade")
    by = P.ask(f"E({name} | a != y, grade)")
    np.testing.assert_allclose(by.value, values @ table / table.sum(axis=0), atol=100 * ROUNDING)
    assert [axis.name for axis in by.axes] == ["grade"]


def test_modes():
    given = weighed(JOINT, CONDITIONS["a in {x, z}"])
    table = onto(given / given.sum(), "stars", "grade")
    best = np.unravel_index(table.argmax(), table.shape)
    answer = P.ask("argmax stars, grade | a in {x, z}")
    assert dict(answer.value) == {
        "stars": DOMAIN["stars"].levels[best[0]],
        "grade": DOMAIN["grade"].levels[best[1]],
    }
    assert answer.value.prob == pytest.approx(table.max(), rel=1e-11)
    assert set(P.ask("argmax | a = x, ok = True").value) == {"grade", "age", "stars"}
    assert set(P.ask("argmax").value) == set(DOMAIN.names)


def test_samples():
    answer = P.ask("sample 50 stars, a | a != y, age >= 18", random_state=1)
    assert answer.kind == "records"
    assert answer.value.names == ("stars", "a")
    assert len(answer.value) == 50
    assert set(answer.value["a"]) == {"x", "z"}
    whole = P.ask("sample 50 | a != y, age >= 18", random_state=1).value
    assert list(whole["stars"]) == list(answer.value["stars"])
    assert whole.names == DOMAIN.names
    assert len(P.ask("sample 0").value) == 0


def test_entropies():
    given = weighed(JOINT, CONDITIONS["age >= 18"])
    given = given / given.sum()

    def h(*names):
        return entropy(onto(given, *names)) if names else 0.0

    cases = {
        "H(a | age >= 18)": h("a"),
        "H(a, stars | age >= 18)": h("a", "stars"),
        "H(a | grade, age >= 18)": h("a", "grade") - h("grade"),
        "H(age | grade, age >= 18)": h("age", "grade") - h("grade"),
        "MI(a; grade | age >= 18)": h("a") + h("grade") - h("a", "grade"),
        "MI(a, ok; grade | stars, age >= 18)": (
            h("a", "ok", "stars")
            + h("grade", "stars")
            - h("a", "ok", "grade", "stars")
            - h("stars")
        ),
    }
    for text, expected in cases.items():
        answer = P.ask(text)
        # Sums of four entropies of order one.
        assert float(answer) == pytest.approx(expected, abs=1e-12), text
        assert answer.standard_error is None
        assert answer.unit == "nats"
        bits = P.ask(text, bits=True)
        assert float(bits) == pytest.approx(expected / math.log(2), abs=1e-12)
        assert bits.unit == "bits"


def test_entropies_of_tables_too_large_are_drawn_and_say_so(monkeypatch):
    exact = {
        text: float(P.ask(text)) for text in ("H(a, stars | grade, ok = True)", "MI(a; stars)")
    }
    monkeypatch.setattr("rejoint.queries.tables.MAX_CELLS", 4)
    monkeypatch.setattr(information, "_DRAWS", (1_000, 20_000))
    for text, expected in exact.items():
        answer = P.ask(text, random_state=0)
        assert answer.standard_error > 0
        assert abs(float(answer) - expected) < 4 * answer.standard_error
        assert "Estimated from 20,000 drawn records" in answer.notes[0]
        assert f"standard error {answer.standard_error:.2g} nats" in str(answer)
        assert answer.to_json()["standard_error"] == answer.standard_error
        bits = P.ask(text, random_state=0, bits=True)
        assert bits.standard_error == pytest.approx(answer.standard_error / math.log(2))


def test_entropy_of_many_variables_needs_no_dense_joint():
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 60)
    answer = p.ask(f"H({', '.join(p.domain.names)})", random_state=0)
    # Every record has the same probability: the estimate is exact, its error zero.
    assert float(answer) == pytest.approx(60 * math.log(2), rel=1e-12)
    assert answer.standard_error == pytest.approx(0, abs=1e-12)


def test_tiny_soft_evidence_does_not_vanish():
    answer = P.ask("P(grade | a ~ {x: 5e-324, y: 1}, a = x)")
    np.testing.assert_allclose(answer.value, P.marginal("grade", {"a": "x"}), atol=ROUNDING)


def test_a_number_in_a_bin_is_read_as_the_bin_and_said():
    answer = P.ask("P(a | age = 20)")
    np.testing.assert_allclose(answer.value, P.marginal("a", {"age": 20}), atol=ROUNDING)
    assert str(answer).startswith("P(a | age in [18, 40))\n")
    assert str(answer.query) == "P(a | age = 20)"
    assert answer.notes == ()
    assert "age in [18, 40)" in answer._repr_html_()


def test_headlines_name_the_bins_that_are_answered_for():
    texts = {
        "P(age = 55)": "P(age in [40, 65]) = ",
        "P(age != 55)": "P(age not in [40, 65]) = ",
        "P(age in {3, 4})": "P(age in [0, 18)) = ",
        "P(age in {3, 20})": "P(age in {[0, 18), [18, 40)}) = ",
        "P(a = x | age ~ {3: 1, 20: 0.5})": "P(a = x | age ~ {[0, 18): 1, [18, 40): 0.5}) = ",
        'P(age = "[0, 18)")': 'P(age = "[0, 18)") = ',
        "P(stars = 4)": "P(stars = 4) = ",
    }
    for text, headline in texts.items():
        assert str(P.ask(text)).startswith(headline)
    open_ended = rj.Domain((rj.Variable("age", (rj.Bin(-np.inf, 18), rj.Bin(18, np.inf))),))
    p = rj.LowRankPMF([1.0], [[[0.25], [0.75]]], open_ended)
    assert str(p.ask("P(age = 5)")) == "P(age < 18) = 0.25"
    assert str(p.ask("P(age != 5)")) == "P(not age < 18) = 0.75"


def test_unlikely_evidence_gets_a_remark():
    rare = rj.LowRankPMF([1.0], [[[1e-9], [1 - 1e-9]], [[0.5], [0.5]]])
    with pytest.warns(rj.Remark, match="x0 = 0 has probability 1e-9: the answer depends on"):
        answer = rare.ask("P(x1 | x0 = 0)")
    assert answer.evidence == pytest.approx(1e-9)
    assert "nearly impossible" in str(answer)
    # Much evidence is improbable by its amount alone, and gets none.
    many = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 40)
    given = ", ".join(f"x{n} = 1" for n in range(1, 40))
    assert many.ask(f"P(x0 | {given})").evidence == pytest.approx(2.0**-39)


def test_zero_evidence_is_said_in_the_words_of_the_question():
    domain = rj.Domain.of({name: ["x", "y"] for name in "abc"})
    p = rj.LowRankPMF([0.5, 0.5], [np.eye(2)] * 3, domain)
    with pytest.raises(rj.ZeroEvidenceError, match=r"^a = x and b != x are possible by themselves"):
        p.ask("P(c | a = x, b != x)")
    with pytest.raises(rj.ZeroEvidenceError, match=r"^a = x, a = y has probability zero"):
        p.ask("P(c | a = x, a = y)")
    with pytest.raises(rj.ZeroEvidenceError, match=r"^age > 65 has probability zero"):
        P.ask("sample 3 | age > 65")


def test_tables_as_frames():
    frame = P.ask("P(grade | ok, a = x)").table("pandas")
    assert frame.loc["mid", True] == pytest.approx(
        P.prob({"grade": "mid"}, {"ok": True, "a": "x"}), abs=ROUNDING
    )
    means = P.ask("E(stars | a)").table("polars")
    assert means.columns == ["a", "mean"]
    assert P.ask("sample 4 a").table("pandas").shape == (4, 1)
    for text in ("P(a = x)", "argmax a"):
        with pytest.raises(ValueError, match=r"not a table: see \.value"):
            P.ask(text).table()


@pytest.mark.parametrize(
    "text",
    [
        *("P(a = x)", "P(a, grade, stars)", "P(a, grade, stars | ok)", "E(age | a)", "E(age)"),
        *("argmax", "sample 3", "sample 0", "H(a)", "MI(a; ok)"),
    ],
)
def test_answers_as_text_html_and_json(text):
    answer = P.ask(text)
    assert str(answer).startswith(text)
    assert repr(answer).startswith(f"<Answer: {text}")
    assert text in answer._repr_html_()
    plain = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert plain["query"] == text
    assert plain["kind"] == answer.kind


def test_answers_are_immutable():
    answer = P.ask("P(a)")
    with pytest.raises(AttributeError):
        answer.value = 1.0
    with pytest.raises(ValueError, match="read-only"):
        answer.value[0] = 1.0


def test_long_tables_are_cut_and_labels_escaped():
    p = rj.LowRankPMF([1.0], [np.full((300, 1), 1 / 300)] * 2, rj.Domain.of({"<b>": 300, "y": 300}))
    answer = p.ask('P("<b>", y)')
    assert str(answer).endswith("... 89,960 more rows")
    assert "&lt;b&gt;" in answer._repr_html_()
    assert "<b>" not in answer._repr_html_()
    many = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 50)
    assert "... 60 more rows and 38 more variables" in str(many.ask("sample 100", random_state=0))
    assert "... 10 more variables. Probability" in str(many.ask("argmax"))


def test_errors_can_be_pickled():
    error = rj.QueryError("reason", "text", 2)
    again = pickle.loads(pickle.dumps(error))
    assert (again.reason, again.text, again.position, str(again)) == (
        "reason",
        "text",
        2,
        str(error),
    )
