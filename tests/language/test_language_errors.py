"""What is wrong, and a caret under the place; what was meant, where that can be guessed."""

import pytest
from small_world import DOMAIN, model

import rejoint as rj
from rejoint.language import MAX_LENGTH, QueryError, bind, parse
from rejoint.language.tokens import pointed

P = model()

# A question whose mistake is marked by a ^ before it, and words of the reason.
MISTAKES = {
    "P(^grad | a = x)": 'No variable is called "grad". Did you mean "grade"?',
    "P(^GRADE)": 'Did you mean "grade"?',
    "P(a | ^mid)": 'No variable is called "mid". It is a level of "grade": write grade = mid.',
    "P(^qqq)": 'The variables are "a", "grade", "age", "stars", "ok".',
    "P(a | grade = ^midd)": (
        '"grade" has no level "midd"; its levels are "low", "mid", "high". Did you mean "mid"?'
    ),
    "P(a | grade = ^MID)": 'Did you mean "mid"?',
    "P(stars = ^3)": '"stars" has no level "3"; its levels are "1", "2", "4".',
    "P(age = ^99)": '"age" has no level "99"',
    "P(ok = ^1)": '"ok" has no level "1"; its levels are "True", "False".',
    "P(a, ^a)": '"a" appears twice without a value.',
    "P(a | grade, ^a)": '"a" appears twice without a value.',
    "MI(a; ^a)": '"a" appears twice without a value.',
    "P(^a >= y)": '"a" is nominal: its levels have no order to compare by. List the levels',
    "P(^ok > False)": "or declare the variable ordinal when the data are read.",
    "P(grade > ^best)": '"grade" has no level "best"',
    "P(age >= ^30)": (
        'The bin [18, 40) of "age" would be cut at 30, and the distribution within it is '
        "not known: compare with 18 or 40."
    ),
    "P(age > ^18)": "it holds 18 itself, so write < or >=.",
    "P(age < ^65)": "it holds 65 itself, so write <= or >.",
    "P(18 <= age <= ^40)": "it holds 40 itself, so write < or >=.",
    "P(a | stars ~ {1: 1, ^1.0: 2})": 'The level "1" appears twice.',
    "P(a | stars ~ {1: ^0, 2: 0})": "At least one likelihood must be above zero.",
    "P(a | stars ~ {1: ^1e999})": "This number is too large.",
    "E(^a)": "Variable 'a' has levels that are not numbers",
    "argmax a | ^grade": "argmax needs a value here: grade = ... (P tabulates by it).",
    "sample 3 | ^grade": "sample needs a value here",
    "^argmax | a = x, grade = mid, age = 20, stars = 1, ok = True": "Every variable is given",
}


@pytest.mark.parametrize("marked", MISTAKES)
def test_words_and_place(marked):
    text = marked.replace("^", "")
    with pytest.raises(QueryError) as caught:
        P.ask(text)
    assert MISTAKES[marked] in caught.value.reason
    assert caught.value.position == marked.index("^")
    shown, caret = str(caught.value).splitlines()[-2:]
    assert shown[caret.index("^") :].startswith(text[marked.index("^") :][:30])


def test_tables_too_large_are_refused_before_they_are_formed():
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 40)
    with pytest.raises(QueryError, match=r"The table would have 10\^12 cells, more than the"):
        p.ask(f"P({', '.join(p.domain.names)})")


def test_samples_too_large_are_refused_before_they_are_drawn():
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]] * 2000)
    with pytest.raises(QueryError, match="At most 67,108 records of this model") as caught:
        p.ask("sample 100000")
    assert caught.value.position == len("sample ")


def test_long_texts_are_refused():
    text = "P(" + "a, " * 4000
    with pytest.raises(
        QueryError, match="at most 10,000 characters; this one has 12,002"
    ) as caught:
        parse(text)
    assert caught.value.position == MAX_LENGTH
    assert parse("P(" + "a" * (MAX_LENGTH - 3) + ")").asked[0].text == "a" * (MAX_LENGTH - 3)


def test_the_caret_stands_under_wide_and_combining_characters_too():
    assert pointed("P(年齢?", 4).splitlines()[1] == " " * (4 + 2 + 2 * 2) + "^"
    assert pointed("e\u0301?", 2).splitlines()[1] == " " * (4 + 1) + "^"


def test_labels_of_bare_numbers_and_quoted_ones():
    domain = rj.Domain(
        (
            rj.Variable("mixed", (1, "1", 2.5)),
            rj.Variable("code", ("007", "7")),
            rj.Variable("flag", ("True", True, False)),
            rj.Variable("huge", (10**30, 10**400)),
        )
    )

    def levels(condition):
        (n,) = (bound := bind(f"P({condition})", domain)).events
        return bound.events[n].tolist()

    assert levels("mixed = 1") == [1, 0, 0]
    assert levels('mixed = "1"') == [0, 1, 0]
    assert levels("mixed = 2.50") == [0, 0, 1]
    assert levels("code = 007") == [1, 0]
    assert levels("code = 7") == [0, 1]
    assert levels("flag = True") == [1, 0, 0]
    assert levels("flag = true") == [0, 1, 0]
    assert levels("flag = False") == [0, 0, 1]
    assert levels("huge = 1000000000000000000000000000000") == [1, 0]
    assert levels("huge > 1e300") == [0, 1]


def test_numbers_compare_by_value_words_by_the_order_declared():
    domain = rj.Domain(
        (
            rj.Variable("down", (3, 2, 1), "ordinal"),
            rj.Variable("size", ("L", "M", "S"), "ordinal"),
        )
    )
    assert bind("P(down >= 2)", domain).events[0].tolist() == [1, 1, 0]
    assert bind("P(size >= M)", domain).events[1].tolist() == [0, 1, 1]


def test_bins_without_ends():
    inf = float("inf")
    ages = (rj.Bin(-inf, 18), rj.Bin(18, 65), rj.Bin(65, inf, True))
    domain = rj.Domain((rj.Variable("age", ages), rj.Variable("any", (rj.Bin(-inf, inf),))))
    assert bind("P(age >= 65)", domain).events[0].tolist() == [0, 0, 1]
    assert bind("P(age < 1e999)", domain).events[0].tolist() == [1, 1, 1]
    with pytest.raises(QueryError, match=r"The bin >= 65 of .* cut at 70.*: compare with 65\."):
        bind("P(age >= 70)", domain)
    with pytest.raises(QueryError, match="it is the only one"):
        bind("P(any >= 70)", domain)


def test_nothing_is_suggested_for_very_long_names():
    name = "grade" * 100
    with pytest.raises(QueryError, match="The variables are"):
        bind(f"P({name})", DOMAIN)
