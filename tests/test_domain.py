"""Variable and Domain: labels to codes and back, look-ups, evidence, and what is refused."""

import json
import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoint import Bin, Domain, Remark, Variable

labels = (
    st.text(max_size=4)
    | st.integers()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.booleans()
)
level_lists = st.lists(labels, min_size=1, max_size=12, unique=True)
AGE = Variable("age", (Bin(0, 18), Bin(18, 65), Bin(65, 120, True)), "binned", (9, 40, 80))


def encode_quietly(variable, column):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        return variable.encode(column)


class TestEncode:
    @given(level_lists, st.data())
    def test_round_trip(self, levels, data):
        v = Variable("x", tuple(levels))
        codes = data.draw(st.lists(st.integers(-1, len(levels) - 1), max_size=20))
        assert v.encode(list(v.decode(codes))).tolist() == codes
        assert v.decode(codes).tolist() == [None if c < 0 else levels[c] for c in codes]

    @given(level_lists, st.lists(labels | st.none(), max_size=20))
    def test_as_python_compares(self, levels, column):
        v = Variable("x", tuple(levels))
        expected = [levels.index(x) if x in levels else -1 for x in column]
        assert encode_quietly(v, column).tolist() == expected

    @given(
        st.lists(st.integers(-40, 40) | st.floats(-2, 2), min_size=1, unique=True),
        st.lists(st.integers(-40, 40) | st.floats(-2, 2) | st.just(math.nan), max_size=30),
        st.sampled_from([np.float64, np.int64, object]),
    )
    def test_arrays_of_numbers(self, levels, column, dtype):
        v = Variable("x", tuple(levels))
        if dtype is np.int64:
            column = [int(x) for x in column if x == x]
        expected = [levels.index(x) if x in levels else -1 for x in column]
        assert encode_quietly(v, np.array(column, dtype=dtype)).tolist() == expected

    def test_far_apart_integers(self):
        v = Variable("x", (-(2**63), 0, 2**62, 2**63 - 1))
        column = np.array([2**63 - 1, -(2**63), 5, 2**62, 0])
        assert encode_quietly(v, column).tolist() == [3, 0, -1, 2, 1]

    def test_numbers_match_by_value_not_by_type(self):
        v = Variable("x", (0, 1))
        for ones in ([1], [1.0], [True], np.array([1], dtype=np.uint8), np.array([True])):
            assert v.encode(ones).tolist() == [1]
        assert encode_quietly(v, ["1"]).tolist() == [-1]
        assert Variable("x", (False, True)).encode(np.array([1.0, 0, np.nan])).tolist() == [
            1,
            0,
            -1,
        ]

    def test_narrow_floats_match_what_was_meant(self):
        v = Variable("x", (0.1, 0.2, 1e300))
        assert v.encode(np.array([0.2, 0.1], dtype=np.float32)).tolist() == [1, 0]
        assert encode_quietly(v, np.array([np.inf], dtype=np.float32)).tolist() == [-1]

    def test_dtype_follows_the_number_of_levels(self):
        assert Variable("x", range(32_767)).encode([3]).dtype == np.int16
        assert Variable("x", range(32_768)).encode([32_767]).tolist() == [32_767]

    def test_binned_takes_numbers_bins_and_their_text(self):
        column = [17, 18.0, 120, Bin(0, 18), "[18, 65)", None]
        assert AGE.encode(column).tolist() == [0, 1, 2, 0, 1, -1]
        assert AGE.encode(np.array([3.0, np.nan])).tolist() == [0, -1]

    def test_unknown_is_missing_with_a_remark(self):
        v = Variable("x", ("a", "b"))
        with pytest.warns(
            Remark,
            match=r"'x': 3 cells with labels that are not levels.*: 'c', "
            r"'d'",
        ):
            assert v.encode(["c", "a", "d", "c"]).tolist() == [-1, 0, -1, -1]
        with pytest.warns(Remark, match=r"'age': 1 cell with numbers outside all bins.*: 130"):
            AGE.encode(np.array([130, 20]))

    def test_remark_points_at_the_caller(self):
        with pytest.warns(Remark) as said:
            Variable("x", ("a",)).encode(["b"])
        assert said[0].filename == __file__

    def test_unknown_is_an_error_on_request(self):
        words = (
            "Variable 'x', row 1: level 'hihg' is not among 'low', 'high'; declare it in the "
            "Domain or leave the cell empty. Did you mean 'high'?"
        )
        with pytest.raises(ValueError, match="row 1: level 'hihg'") as error:
            Variable("x", ("low", "high")).encode(["low", "hihg"], handle_unknown="error")
        assert str(error.value) == words

    def test_handle_unknown_has_two_values(self):
        with pytest.raises(ValueError, match="must be 'missing' or 'error', not 'ignore'"):
            Variable("x", ("a",)).encode(["a"], handle_unknown="ignore")


class TestDecode:
    def test_natural_dtypes(self):
        kinds = {(1, 2): "i", ("a", "b"): "U", (0.5, 1.0): "f", (True, False): "b", (1, "a"): "O"}
        for levels, kind in kinds.items():
            v = Variable("x", levels)
            assert v.decode([0, 1]).dtype.kind == kind
            assert v.decode([0, -1]).dtype.kind == "O"

    def test_bins_stay_bins(self):
        assert AGE.decode([2, 0]).tolist() == [Bin(65, 120, True), Bin(0, 18)]

    def test_shape_is_kept(self):
        assert Variable("x", (5, 6)).decode([[0, 1], [1, 0]]).tolist() == [[5, 6], [6, 5]]

    def test_codes_out_of_range(self):
        with pytest.raises(ValueError, match=r"'x': code 2 is not among 0\.\.1 \(-1 is missing\)"):
            Variable("x", ("a", "b")).decode([0, 2])


class TestCode:
    @pytest.mark.parametrize(("level", "code"), [(17.9, 0), (Bin(18, 65), 1), ("[65, 120]", 2)])
    def test_binned(self, level, code):
        assert AGE.code(level) == code

    @pytest.mark.parametrize("level", ["yess", None, math.nan, [1], 3, ("yes",)])
    def test_unknown(self, level):
        with pytest.raises(ValueError, match=r"'smoke': level .* is not among 'yes', 'no'"):
            Variable("smoke", ("yes", "no")).code(level)

    def test_suggests_the_number_for_its_text(self):
        with pytest.raises(ValueError, match=r"level '12' is not among 11, 12\. Did you mean 12\?"):
            Variable("x", (11, 12)).code("12")


class TestNumeric:
    def test_values(self):
        assert Variable("x", (3, 1.5)).numeric.tolist() == [3, 1.5]
        assert Variable("x", (False, True)).numeric.tolist() == [0, 1]
        assert AGE.numeric.tolist() == [9, 40, 80]

    def test_words_have_none(self):
        with pytest.raises(ValueError, match=r"levels that are not numbers \('b'\).*no mean"):
            _ = Variable("x", (1, "b")).numeric


class TestLikelihood:
    V = Variable("x", ("a", "b", "c"))

    @pytest.mark.parametrize(
        ("evidence", "expected"),
        [
            ("b", [0, 1, 0]),
            (["a", "c"], [1, 0, 1]),
            ({"a"}, [1, 0, 0]),
            (("a", "a"), [1, 0, 0]),
            (np.array(["c", "b"]), [0, 1, 1]),
            (np.str_("c"), [0, 0, 1]),
            (np.array([0.5, 0, 2]), [0.5, 0, 2]),
            (None, [1, 1, 1]),
            (math.nan, [1, 1, 1]),
        ],
    )
    def test_evidence(self, evidence, expected):
        assert self.V.likelihood(evidence).tolist() == expected

    def test_bins(self):
        assert AGE.likelihood(Bin(0, 18)).tolist() == [1, 0, 0]
        assert AGE.likelihood([70, 3]).tolist() == [1, 0, 1]

    def test_result_is_a_copy(self):
        soft = np.array([0.2, 0.3, 0.5])
        self.V.likelihood(soft)[0] = 9
        assert soft[0] == 0.2

    @pytest.mark.parametrize(
        ("evidence", "words"),
        [
            ([], "an empty list of levels can never be true"),
            ("d", "level 'd' is not among"),
            (np.array([0.5, 0.5]), r"has 3 levels: soft evidence .* not an array of shape \(2,\)"),
            (np.array([0.5, -0.1, 0]), "must be finite, nonnegative and not all zero"),
            (np.zeros(3), "not all zero"),
            (np.array([np.nan, 1, 1]), "must be finite"),
        ],
    )
    def test_refused(self, evidence, words):
        with pytest.raises(ValueError, match=words):
            self.V.likelihood(evidence)


class TestVariable:
    def test_labels_become_plain_python(self):
        v = Variable("x", (np.int64(1), np.str_("a"), np.float64(0.5), np.True_ & False))
        assert [type(level) for level in v.levels] == [int, str, float, bool]

    def test_bins_make_it_binned(self):
        v = Variable("x", (Bin(0, 1), Bin(1, 3)))
        assert v.kind == "binned"
        assert v.representatives == (0.5, 2)

    def test_pickle_and_hash(self):
        assert pickle.loads(pickle.dumps(AGE)) == AGE
        assert pickle.loads(pickle.dumps(AGE)).code(20) == 1
        assert hash(AGE) == hash(pickle.loads(pickle.dumps(AGE)))

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            (("x", ()), ValueError, "has no levels"),
            (("x", ("a", "a")), ValueError, "level 'a' appears twice"),
            (("x", (1, True)), ValueError, "level True appears twice"),
            (("x", ("a", None)), ValueError, "None means missing and cannot be a level"),
            (("x", (math.nan,)), ValueError, "nan means missing"),
            (("x", "abc"), TypeError, "levels must be a list, not the text 'abc'"),
            (("x", ((1, 2),)), TypeError, r"level \(1, 2\) is a tuple, which cannot be a label"),
            (("x", ("a",), "odd"), ValueError, "kind must be .* not 'odd'"),
            (("x", ("a",), "binned"), ValueError, "must be adjoining bins"),
            (("x", (Bin(0, 1), "a")), ValueError, "must be adjoining bins"),
            (("x", (Bin(0, 1), Bin(2, 3))), ValueError, "must be adjoining bins"),
            (("x", (Bin(1, 2), Bin(0, 1))), ValueError, "increasing order"),
            (("x", (Bin(1, 1),)), ValueError, "increasing order"),
            (("x", ("a",), "nominal", (1,)), ValueError, "only binned ones have representatives"),
            (("x", (Bin(0, 1),), "binned", (1, 2)), ValueError, "1 bin: it needs one finite"),
        ],
    )
    def test_refused(self, arguments, error, words):
        with pytest.raises(error, match=words):
            Variable(*arguments)


class TestDomain:
    D = Domain.of({"smoke": ["yes", "no"], "age": 3, "x": [0.5]})

    def test_look_ups(self):
        assert self.D.names == ("smoke", "age", "x")
        assert self.D.shape == (2, 3, 1)
        assert self.D["age"] is self.D[1]
        assert [v.name for v in self.D] == list(self.D.names)
        assert "age" in self.D
        assert "agee" not in self.D
        assert self.D.indices(["x", "smoke"]) == (2, 0)
        assert self.D.indices("age") == (1,)
        assert self.D.project(["x", "smoke"]).shape == (1, 2)

    def test_names_are_text_and_look_ups_take_the_original(self):
        d = Domain.of({1: 2, ("a", 2): 3})
        assert d.names == ("1", "('a', 2)")
        assert d.indices([("a", 2), 1]) == (1, 0)
        assert 1 in d

    def test_unknown_name(self):
        with pytest.raises(KeyError, match=r"No variable 'smok' among .* Did you mean 'smoke'?"):
            self.D.index("smok")
        with pytest.raises(KeyError, match="No variable 'zzz'"):
            self.D["zzz"]

    def test_duplicates(self):
        with pytest.raises(ValueError, match="Two or more variables are called '1'"):
            Domain.of({1: 2, "1": 2})

    @pytest.mark.parametrize("levels", ["abc", 2.5, None])
    def test_levels_must_be_listed(self, levels):
        with pytest.raises(TypeError, match="'a': levels must be a list of labels or their number"):
            Domain.of({"a": levels})

    def test_only_variables(self):
        with pytest.raises(TypeError, match="made of Variables, not of 'a'"):
            Domain(("a",))

    def test_of_shape(self):
        assert Domain.of_shape((2, 3)) == Domain.of({"x0": 2, "x1": 3})

    @given(st.lists(level_lists, min_size=1, max_size=3))
    def test_json_round_trip(self, lists):
        variables = [Variable(str(n), tuple(levels)) for n, levels in enumerate(lists)]
        d = Domain((*variables, AGE, Variable("b", (Bin(-math.inf, 0), Bin(0, math.inf, True)))))
        text = json.dumps(d.to_json(), allow_nan=False)
        back = Domain.from_json(json.loads(text))
        assert back == d
        for one, other in zip(back, d, strict=True):
            assert [type(x) for x in one.levels] == [type(x) for x in other.levels]
