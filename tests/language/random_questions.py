"""Random questions, random texts, and texts that are nearly questions."""

from hypothesis import strategies as st

from rejoint import QueryError, ZeroEvidenceError
from rejoint.language import MAX_LENGTH, MAX_SAMPLE
from rejoint.language.query import Among, Between, Label, Name, Query, RangeEnd, Soft
from rejoint.language.tokens import reads_as_number

NAMES = st.builds(Name, st.text(max_size=8) | st.sampled_from(["in", "not", "7", "-", "P"]))
NUMBERS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
TEXT_LABELS = st.builds(Label, st.text(max_size=8) | st.sampled_from(["in", "7"]), st.just(False))
NUMBER_LABELS = st.builds(Label, NUMBERS.filter(reads_as_number), st.just(True))
LABELS = TEXT_LABELS | NUMBER_LABELS
BOUNDS = st.builds(RangeEnd, LABELS, st.booleans())
LISTS = st.lists(LABELS, min_size=1, max_size=4, unique=True).map(tuple)
AMONG = st.builds(Among, NAMES, LISTS, st.booleans())
BETWEEN = (
    st.builds(Between, NAMES, BOUNDS, BOUNDS, st.booleans())
    | st.builds(Between, NAMES, BOUNDS, st.none())
    | st.builds(Between, NAMES, st.none(), BOUNDS)
)
SOFT = st.builds(
    Soft,
    NAMES,
    st.dictionaries(LABELS, NUMBER_LABELS, min_size=1, max_size=3).map(lambda d: tuple(d.items())),
)


def some(items, least=1):
    return st.lists(items, min_size=least, max_size=3).map(tuple)


GIVEN = some(NAMES | AMONG | BETWEEN | SOFT, 0)
QUERIES = (
    st.builds(Query, st.just("P"), some(NAMES | AMONG | BETWEEN), GIVEN)
    | st.builds(Query, st.just("E"), some(NAMES).map(lambda names: names[:1]), GIVEN)
    | st.builds(Query, st.just("H"), some(NAMES), GIVEN)
    | st.builds(Query, st.just("MI"), some(NAMES), GIVEN, some(NAMES))
    | st.builds(Query, st.just("argmax"), some(NAMES, 0), GIVEN)
    | st.builds(
        Query, st.just("sample"), some(NAMES, 0), GIVEN, st.just(()), st.integers(0, MAX_SAMPLE)
    )
)

SEEDS = [
    "P(a, grade | stars = 2, age in {20, 50}, not ok = True)",
    "P(a = x, grade | ok)",
    "P(18 <= age < 40 | grade >= mid)",
    "P(a | stars ~ {1: 0.8, 4: 0.2})",
    "E(stars | a != y, grade)",
    "argmax a, grade | age >= 18",
    "sample 3 a, stars | not a in {x, y}",
    "H(a, ok | grade, stars > 1)",
    "MI(a; stars, ok | grade = 'mid')",
]
PIECES = [
    *("P(", "E(", "H(", "MI(", "argmax ", "sample 9 ", ")", "(", "{", "}", ",", ";", "|", ":"),
    *("~", "=", "!=", "<", "<=", ">", ">=", "==", "not ", " in ", "'", '"', "\\", "\\u{", " "),
    *("a", "grade", "age", "stars", "ok", "x", "mid", "18", "40", "1e999", "-0", "[18, 40)"),
    *("年", "\u0301", "\x00", "\u2028", "\ud800", "😀", "∞", "0" * 400, "9" * 400, "\ufeff", "65+"),
]


def texts():
    """Any text, and heaps of what questions are made of."""
    heaps = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
    return (
        st.text(max_size=60)
        | heaps
        | st.sampled_from(["P(", "argmax "]).flatmap(
            lambda verb: heaps.map(lambda heap: verb + heap)
        )
    )


def mutated(text, rng):
    """Cut, doubled, swapped, filled with pieces: a few times over."""
    for _ in range(rng.randint(0, 4)):
        i, j = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        j = min(j, i + 12)
        text = rng.choice(
            [
                text[:i] + text[j:],
                text[:j] + text[i:],
                text[:i] + rng.choice(PIECES) + text[j:],
                text[:i] + rng.choice(PIECES) + text[i:],
                text[:i] + text[i:j][::-1] + text[j:],
                text[:i] + chr(rng.randint(0, 0x2FFF)) + text[i:],
            ]
        )
    return text


def answer_or_error(pmf, text):
    """Ask, and look at the answer in every way; anything but the two errors passes through."""
    try:
        answer = pmf.ask(text, random_state=0)
    except (QueryError, ZeroEvidenceError) as error:
        str(error).encode()
        return type(error).__name__
    for shown in (str(answer), repr(answer), answer._repr_html_()):
        shown.encode()
    answer.to_json()
    if len(str(answer.query)) <= MAX_LENGTH:
        assert str(pmf.ask(answer.query, random_state=0)) == str(answer)
    return "answer"
