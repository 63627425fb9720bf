"""What Records make of data: levels and bins seen, wished for, or given as a domain."""

import math
import warnings

import numpy as np
import pytest

from rejoint import Bin, Domain, Records, Remark

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def left_out(data, **said):
    """Names of the records of a table with one more column, and the remark on those left out."""
    rows = len(next(iter(data.values())))
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        names = Records.of(data | {"other": ["u", "v"] * (rows // 2) + ["u"] * (rows % 2)}, **said)
    texts = [str(one.message) for one in remarks if "left out" in str(one.message)]
    return names.names[:-1], texts[0] if texts else ""


class TestLeftOut:
    def test_together_with_one_remark(self):
        rng = np.random.default_rng(0)
        data = {
            "id": range(1000),
            "who": [f"person {k}" for k in range(1000)],
            "day": pd.date_range("2019-05-01", periods=1000),
            "note": [f"word {k}" for k in rng.integers(0, 600, 500)] + [None] * 500,
            "none": [None] * 1000,
            "a": rng.choice(list("xy"), 1000),
        }
        names, text = left_out(data)
        assert names == ("a",)
        for part in (
            "'id' (1,000 different): numbers or identifies the rows (kinds={'id': 'nominal'} or "
            "bins={'id': 10} keeps it)",
            "'who' (1,000 different): identifies the rows (kinds={'who': 'nominal'} keeps it)",
            "'day' (1,000 different): dates (kinds={'day': 'year'} or kinds={'day': 'month'} keeps",
            "free text, mostly seen once or twice (kinds={'note': 'nominal'} keeps it)",
            "'none': no value in any row (levels={'none': [...]} keeps it)",
        ):
            assert part in text
        kinds = {"who": "nominal", "day": "month", "note": "nominal"}
        for said in ({"kinds": kinds | {"id": "nominal"}}, {"kinds": kinds, "bins": {"id": 10}}):
            assert left_out(data, levels={"none": [1, 2]}, **said) == (tuple(data), "")

    def test_nothing_is_left(self):
        with pytest.raises(ValueError, match="nothing to learn from, because every column is left"):
            Records.of({"who": [f"person {i}" for i in range(51)], "no": [None] * 51})

    def test_not_so_many_or_not_so_distinct(self):
        assert len(Records.of({"who": [f"p{i}" for i in range(19)]}).domain["who"]) == 19
        assert left_out({"who": [f"p{i}" for i in range(20)]})[0] == ()
        twice = [f"p{i}" for i in range(50)]
        assert len(Records.of({"who": [*twice, "p0"]}).domain["who"]) == 50
        cells = Records.of({"who": twice}, sample_weight=[3] * 50)  # a table with its counts
        assert len(cells.domain["who"]) == 50
        assert len(Records.of({"who": [f"p{i}" for i in range(60)] * 2}).domain["who"]) == 60

    def test_free_text_is_what_occurs_once_or_twice(self):
        often = [f"place {k}" for k in range(320)] * 3
        assert left_out({"place": often})[0] == ("place",)
        rare = [f"note {k}" for k in range(330)]
        assert left_out({"note": often + rare})[0] == ()
        assert left_out({"note": often + rare[:310]})[0] == ("note",)
        assert left_out({"note": often + rare}, sample_weight=np.full(1290, 3.0))[0] == ("note",)

    def test_numbers_are_identifiers_by_name_if_nearly_all_differ(self):
        nearly = [*range(0, 1900, 2), *range(0, 100, 2)]
        assert left_out({"patient_id": nearly})[0] == ()
        assert left_out({"price": nearly})[0] == ("price",)
        assert left_out({"patient_id": nearly * 2})[0] == ("patient_id",)

    def test_arrays_without_names_keep_all_columns(self):
        array = np.array([[f"k{i}", "ab"[i % 2]] for i in range(200)], dtype=object)
        with pytest.warns(Remark, match="'x0': identifies the rows. Each of 200 .* is a level"):
            assert Records.of(array).domain.shape == (200, 2)
        dates = np.array([[f"2020-{1 + i % 12:02}-{1 + i % 28:02}"] for i in range(200)])
        with pytest.warns(Remark, match="'x0': dates. Each of 84 different texts is a level"):
            assert Records.of(dates).domain.shape == (84,)

    @pytest.mark.parametrize(
        ("form", "keeps"),
        [
            ("%b %d %Y", "month"),
            ("%A, %d %B %Y", "month"),
            ("%Y%m%d", "month"),
            ("%d-%b-%y", "month"),
            ("%d.%m.%Y", "month"),
            ("%Y-%m-%dT%H:%M:%SZ", "month"),
            ("%m/%d/%Y", "year"),
            ("%d/%m/%y", "year"),
            ("%H:%M:%S", "nominal"),
        ],
    )
    def test_dates_in_every_form(self, form, keeps):
        days = pd.Series(pd.date_range("2020-01-05 10:01:01", periods=254, freq="25h59min"))
        texts = days.dt.strftime(form).tolist()
        names, remark = left_out({"day": texts})
        assert names == ()
        assert f"kinds={{'day': {keeps!r}}} keeps it" in remark
        if keeps != "nominal":
            found = Records.of({"day": texts}, kinds={"day": keeps})
            assert found["day"].tolist() == getattr(days.dt, keeps).tolist()
            with pytest.warns(Remark, match="'day': 1 cell with labels that are not .*: 'never'"):
                again = Records.of({"day": [*texts[:3], "never"]}, domain=found.domain)
            assert again.codes[:, 0].tolist() == [*found.codes[:3, 0].tolist(), -1]
            assert Records.of(found.to_frame(), domain=found.domain).codes.tolist() == (
                found.codes.tolist()
            )

    def test_a_month_that_is_not_certain(self):
        with pytest.raises(ValueError, match=r"no month in '3/4/2020': .* kinds=\{'d': 'year'\}"):
            Records.of({"d": ["3/4/2020", "31/4/2020"]}, kinds={"d": "month"})
        with pytest.raises(ValueError, match=r"'d' has no year in 'x': write dates as 2020-01-31"):
            Records.of({"d": ["x"]}, kinds={"d": "year"})

    def test_wanted_all_the_same(self):
        names = [f"p{i}" for i in range(80)]
        assert len(Records.of({"who": names}, kinds={"who": "nominal"}).domain["who"]) == 80
        assert len(Records.of({"who": names}, levels={"who": names}).domain["who"]) == 80
        declared = pd.DataFrame({"who": pd.Categorical(names)})
        assert len(Records.of(declared).domain["who"]) == 80


class TestBins:
    def test_many_numbers_are_binned_with_a_remark(self):
        with pytest.warns(Remark) as said:
            r = Records.of(
                {"age": [*range(50), 49], "pay": [0] * 37 + list(range(51, 65)), "sex": [1] * 51}
            )
        words = "Numbers are cut into quantile bins: 'age' (15 bins). Use bins={'age': 5} for other"
        assert [words in str(s.message) for s in said] == [True]
        assert "bins={'age': None} for none" in str(said[0].message)
        assert [v.kind for v in r.domain] == ["binned", "ordinal", "nominal"]
        assert r.domain.shape == (15, 15, 1)

    def test_one_remark_for_all_columns_says_how_many_bins_each_got(self):
        columns = {f"c{n}": [*range(59), 5] for n in range(6)}
        columns["pay"] = [0] * 8 + list(range(1, 53))
        with pytest.warns(Remark) as said:
            Records.of(columns)
        assert len(said) == 1
        assert "'c4' (15 bins), ... (7 in all)" in str(said[0].message)
        with pytest.warns(Remark, match=r"'pay' \(21 bins\)"):
            Records.of({"pay": [0] * 600 + list(range(1, 2401))}, sample_weight=[1.0] * 3000)

    @pytest.mark.parametrize(
        "said",
        [
            {"bins": False},
            {"bins": {"age": None}},
            {"bins": {"age": False}},
            {"kinds": {"age": "ordinal"}},
            {"levels": {"age": range(51)}},
        ],
    )
    def test_unless_told_otherwise(self, said):
        assert Records.of({"age": range(51)}, **said).domain["age"].levels == tuple(range(51))

    def test_fifteen_numbers_are_levels(self):
        assert Records.of({"age": range(15)}).domain["age"].levels == tuple(range(15))

    def test_kind_binned_is_fifteen_quantiles_and_no_remark(self):
        r = Records.of({"age": range(30)}, kinds={"age": "binned"}, bins=False)
        assert len(r.domain["age"]) == 15

    def test_more_records_carry_more_bins(self):
        for rows, weight, size in ((749, None, 15), (750, None, 25), (100, [7.5] * 100, 25)):
            with pytest.warns(Remark, match=f"{size} bins"):
                r = Records.of({"x": np.arange(rows) / 7}, sample_weight=weight)
            assert r.domain.shape == (size,)

    def test_one_number_of_bins_for_all_columns_of_numbers(self):
        r = Records.of({"x": np.arange(50) / 7, "y": ["a", "b"] * 25, "z": [0, 1] * 25}, bins=4)
        assert r.domain.shape == (4, 2, 2)
        with pytest.raises(ValueError, match="bins must be 2 or more, got 1"):
            Records.of({"x": [1, 2]}, bins=1)

    def test_number_of_bins(self):
        r = Records.of({"age": [*range(100), None]}, bins={"age": 4})
        assert [str(b) for b in r.domain["age"].levels] == ["< 25", "[25, 50)", "[50, 75)", ">= 75"]
        assert r.domain["age"].representatives == (12, 37, 62, 87)
        assert np.bincount(r.codes[:100, 0]).tolist() == [25] * 4
        # New data outside the range seen falls into the end bins.
        assert Records.of({"age": [-5, 1e9]}, domain=r.domain).codes.tolist() == [[0], [3]]

    def test_ties_leave_fewer_bins_and_a_remark(self):
        words = "'age': 5 quantile bins were requested, but there are 2, because equal values"
        with pytest.warns(Remark, match=words):
            r = Records.of({"age": [0] * 9 + [1]}, bins={"age": 5})
        assert [str(b) for b in r.domain["age"].levels] == ["< 1", ">= 1"]

    def test_edges(self):
        with pytest.warns(Remark, match=r"2 cells with numbers outside all bins.*: 121, -1"):
            r = Records.of({"age": [3, 5, 120, 121, -1]}, bins={"age": [0, 18, 65, 120]})
        assert r.domain["age"].levels == (Bin(0, 18), Bin(18, 65), Bin(65, 120, True))
        assert r.domain["age"].representatives == (4, 41.5, 120)
        assert r.codes[:, 0].tolist() == [0, 0, 2, -1, -1]

    def test_outside_is_an_error_on_request(self):
        with pytest.raises(ValueError, match=r"'age', row 1: level 130 is not among \[0, 18\]"):
            Records.of({"age": [3, 130]}, bins={"age": [0, 18]}, handle_unknown="error")

    def test_infinite_edges(self):
        r = Records.of({"age": [3, 130]}, bins={"age": [-math.inf, 18, math.inf]})
        assert r.codes.tolist() == [[0], [1]]

    def test_weights_move_the_quantiles(self):
        data = {"age": range(10)}
        r = Records.of(data, bins={"age": 2}, sample_weight=[1] * 9 + [9])
        assert r.domain["age"].levels[1].left == 9

    def test_values_without_weight_are_binned_as_if_they_had_some(self):
        data = {"age": [1, 2, None]}
        r = Records.of(data, bins={"age": 2}, sample_weight=[0, 0, 1])
        assert r.codes.tolist() == [[0], [1], [-1]]

    def test_categories_of_numbers_can_be_binned(self):
        r = Records.of({"age": pd.Categorical([1, 9])}, bins={"age": [0, 5, 10]})
        assert r.codes.tolist() == [[0], [1]]

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ({"bins": {"age": 1}}, "must be 2 or more, up to 100,000, or a list of edges; not 1"),
            ({"bins": {"age": 10**9}}, "or a list of edges; not 1,000,000,000"),
            ({"bins": {"age": [3]}}, r"two or more increasing edges, not \[3\]"),
            ({"bins": {"age": [3, 2]}}, "increasing edges"),
            ({"bins": {"age": "auto"}}, "increasing edges, not 'auto'"),
            ({"bins": {"age": [0, math.nan]}}, "increasing edges"),
            ({"bins": {"age": 2}, "levels": {"age": [1]}}, "its levels or its bins, not both"),
            (
                {"bins": {"age": 2}, "kinds": {"age": "nominal"}},
                "cannot be both nominal and binned",
            ),
            ({"bins": {"name": 2}}, "'name' cannot be binned: it holds 'a', not numbers"),
        ],
    )
    def test_refused(self, said, words):
        with pytest.raises(ValueError, match=words):
            Records.of({"age": [1], "name": ["a"]}, **said)


class TestGivenDomain:
    D = Domain.of({"a": ["x", "y"], "b": [0, 1]})

    def test_columns_by_name_in_any_order(self):
        r = Records.of({"b": [1, None], "a": ["y", "x"]}, domain=self.D)
        assert r.codes.tolist() == [[1, 1], [0, -1]]

    def test_columns_by_position_without_names(self):
        assert Records.of([["y", 1.0]], domain=self.D).codes.tolist() == [[1, 1]]
        with pytest.raises(ValueError, match="3 columns without names, the domain has 2 variables"):
            Records.of([["y", 1, 2]], domain=self.D)

    def test_absent_columns_are_missing(self):
        assert Records.of([{"a": "x"}], domain=self.D).codes.tolist() == [[0, -1]]

    def test_other_columns_are_left_out_with_a_remark(self):
        words = "not in the domain: 'bb', 'id'. Did you mean 'b'?"
        with pytest.warns(Remark, match=words):
            Records.of([{"a": "x", "bb": 1, "id": 7}], domain=self.D)

    def test_no_column_fits(self):
        with pytest.raises(ValueError, match=r"No column of the data \('A'\) is a variable of"):
            Records.of({"A": ["x"]}, domain=self.D)

    def test_unknown_labels_of_all_variables_in_one_remark(self):
        with pytest.warns(Remark) as said:
            r = Records.of({"a": ["x", "z"], "b": [7, 7]}, domain=self.D)
        assert [w.filename for w in said] == [__file__]
        assert "'a': 1 cell" in str(said[0].message)
        assert "'b': 2 cells" in str(said[0].message)
        assert r.codes.tolist() == [[0, -1], [-1, -1]]
        wide = Domain.of_shape([1] * 7)
        with pytest.warns(Remark, match="The same holds for 2 more variables"):
            Records.of(np.ones((1, 7)), domain=wide)

    def test_no_rows_are_fine(self):
        assert Records.of({"a": [], "b": []}, domain=self.D).codes.shape == (0, 2)

    def test_a_domain_defines_kinds_levels_and_bins(self):
        with pytest.raises(ValueError, match="do not give them with it"):
            Records.of({"a": ["x"]}, domain=self.D, kinds={"a": "ordinal"})
        with pytest.raises(ValueError, match="do not give them with it"):
            Records.of(Records.of({"a": ["x"]}), bins=False)

    def test_handle_unknown_has_two_values(self):
        with pytest.raises(ValueError, match="must be 'missing' or 'error', not 'drop'"):
            Records.of({"a": ["x"]}, domain=self.D, handle_unknown="drop")


class TestWeights:
    def test_a_column_by_name(self):
        r = Records.of({"a": ["x", "y"], "times": [2, 0.5]}, sample_weight="times")
        assert r.names == ("a",)
        assert r.sample_weight.tolist() == [2, 0.5]

    def test_series(self):
        for weight in (pd.Series([1, 2], index=[7, 8]), pl.Series([1, 2]), pa.array([1, 2])):
            assert Records.of({"a": [1, 2]}, sample_weight=weight).sample_weight.tolist() == [1, 2]

    def test_unknown_name(self):
        with pytest.raises(KeyError, match=r"there is no column 'time'; .* Did you mean 'times'\?"):
            Records.of({"a": ["x"], "times": [2]}, sample_weight="time")
        with pytest.raises(KeyError, match="must be the name of one column"):
            Records.of([["x"]], sample_weight="x9")

    def test_all_zero(self):
        with pytest.raises(ValueError, match="zero in every row"):
            Records.of({"a": ["x"]}, sample_weight=[0])

    def test_missing_weights(self):
        frame = pd.DataFrame({"a": ["x", "y"], "w": pd.array([1, None], dtype="Int64")})
        with pytest.raises(ValueError, match="but row 1 has nan"):
            Records.of(frame, sample_weight="w")


def test_wishes_about_columns_that_are_not_there():
    with pytest.raises(KeyError, match=r"there is no 'grad'; .* Did you mean 'grade'?"):
        Records.of({"grade": ["a"]}, kinds={"grad": "ordinal"})
    with pytest.raises(TypeError, match="kinds must be a dict from names"):
        Records.of({"grade": ["a"]}, kinds="ordinal")
    with pytest.raises(TypeError, match="levels must be a list, not the text 'ab'"):
        Records.of({"grade": ["a"]}, levels={"grade": "ab"})


def test_chunks_encoded_in_one_domain_are_the_whole():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.choice(list("xyz"), 300), "b": rng.normal(size=300)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Remark)
        whole = Records.of(frame)
    parts = [Records.of(frame[i : i + 70], domain=whole.domain) for i in range(0, 300, 70)]
    assert np.array_equal(np.vstack([p.codes for p in parts]), whole.codes)
