"""Cells that do not apply: found by another column, or not; asked, saved, sampled, filled."""

import warnings

import numpy as np
import pytest

import rejoint as rj
from rejoint.explorer.document import document
from rejoint.records.empty_cells import find_rules
from rejoint.records.infer import ColumnRule

pd = pytest.importorskip("pandas")


def stops(n=4000, seed=0, exceptions=0):
    """The table of records of searches, which are filled in for cars alone."""
    rng = np.random.default_rng(seed)
    where = rng.choice(["car", "office"], n, p=[0.8, 0.2])
    search = np.where(rng.random(n) < 0.12, "YES", "NO").astype(object)
    sex = np.where(rng.random(n) < np.where(search == "YES", 0.85, 0.6), "M", "F").astype(object)
    search[where == "office"] = sex[where == "office"] = None
    sex[np.flatnonzero(where == "office")[:exceptions]] = "M"
    return pd.DataFrame(
        {"where": where, "search": search, "sex": sex, "other": rng.choice(list("xyz"), n)}
    )


def read(data, **said):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)
        return rj.Records.of(data, **said)


def rules(records):
    """By name, the parent and its levels."""
    return {v.name: (v.empty.parent, v.empty.levels) for v in records.domain if v.empty}


OFFICE = ("where", ("office",))


class TestFound:
    def test_where_another_column_says_so(self):
        words = "'search', 'sex' (where where is office). not_applicable=False leaves them unknown"
        with pytest.warns(rj.Remark) as remarks:
            records = rj.Records.of(stops())
        assert [words in str(one.message) for one in remarks] == [True]
        assert rules(records) == {"search": OFFICE, "sex": OFFICE}
        assert records.domain["sex"].levels == ("F", "M", "does not apply")
        assert (records.codes >= 0).all()

    def test_other_empty_cells_stay_unknown(self):
        data = stops()
        data.loc[data.index[:300], "sex"] = None
        records = read(data)
        unknown = (data["where"] == "car") & data["sex"].isna()
        assert ((records.codes[:, 2] == -1) == unknown).all()

    @pytest.mark.parametrize("exceptions", [1, 8])
    def test_a_few_cells_that_should_be_empty_are_not(self, exceptions):
        records = read(stops(exceptions=exceptions))
        assert rules(records)["sex"] == OFFICE
        assert (records["sex"] == "M").sum() == (stops(exceptions=exceptions)["sex"] == "M").sum()

    def test_too_many_exceptions(self):
        assert "sex" not in rules(read(stops(exceptions=80)))

    def test_two_levels_of_the_parent(self):
        rng = np.random.default_rng(1)
        work = rng.choice(["full", "part", "retired", "pupil"], 2000)
        pay = rng.choice(["low", "high"], 2000).astype(object)
        pay[np.isin(work, ["retired", "pupil"])] = None
        records = read({"work": work, "pay": pay})
        assert rules(records) == {"pay": ("work", ("pupil", "retired"))}

    def test_a_question_that_follows_on_one_that_follows(self):
        rng = np.random.default_rng(2)
        smoke = rng.choice(["yes", "no"], 3000)
        daily = np.where(smoke == "yes", rng.choice(["daily", "weekly"], 3000), None)
        packs = np.where(daily == "daily", rng.choice([1, 2, 3], 3000), None)
        records = read({"smoke": smoke, "often": daily, "packs": packs})
        assert rules(records)["often"] == ("smoke", ("no",))
        assert rules(records)["packs"] == ("often", ("weekly", "does not apply"))
        assert (records.codes >= 0).all()
        assert records["packs"].tolist().count("does not apply") == (daily != "daily").sum()

    def test_not_by_chance(self):
        rng = np.random.default_rng(3)
        for _ in range(200):
            rows, columns = int(rng.integers(40, 3000)), int(rng.integers(2, 9))
            sizes = rng.integers(2, 12, columns)
            codes = np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)
            codes = codes.astype(np.int8)
            codes[rng.random(codes.shape) < rng.uniform(0.05, 0.7, columns)] = -1
            domain = rj.Domain.of({f"c{n}": int(size) for n, size in enumerate(sizes)})
            assert find_rules(domain, codes, ColumnRule()) == {}

    def test_not_where_columns_depend(self):
        rng = np.random.default_rng(4)
        a = rng.integers(0, 3, 5000)
        b = rng.integers(0, 2, 5000).astype(object)
        b[rng.random(5000) < np.array([0.1, 0.5, 0.9])[a]] = None
        assert rules(read({"a": a, "b": b})) == {}


class TestDeclared:
    def test_off(self):
        records = read(stops(), not_applicable=False)
        assert rules(records) == {}
        assert records.domain["sex"].levels == ("F", "M")

    def test_by_name(self):
        assert rules(read(stops(), not_applicable=["sex"])) == {"sex": OFFICE}
        with pytest.warns(rj.Remark, match="No column says where 'other' does not apply"):
            rj.Records.of(stops(), not_applicable=["other"])

    def test_missing_is_an_answer(self):
        records = read(stops(), missing_level=["sex"], not_applicable=False)
        assert records.domain["sex"].levels == ("F", "M", "missing")
        assert rules(records) == {"sex": (None, ())}

    @pytest.mark.parametrize("argument", ["not_applicable", "missing_level"])
    def test_names_that_are_wrong(self, argument):
        with pytest.raises(KeyError, match=rf"{argument}: there is no 'sx'.*Did you mean 'sex'"):
            rj.Records.of(stops(), **{argument: ["sx"]})
        with pytest.raises(TypeError, match=f"{argument} must be .*list of names, not 'sex'"):
            rj.Records.of(stops(), **{argument: "sex"})
        with pytest.raises(ValueError, match="do not give them with it"):
            rj.Records.of(stops(), domain=read(stops()).domain, **{argument: ["sex"]})

    def test_arrays_without_names_are_searched_by_name_only(self):
        array = stops().to_numpy()
        assert rules(read(array)) == {}
        assert rules(read(array, not_applicable=["x2"])) == {"x2": ("x0", ("office",))}


class TestSources:
    def test_streams_decide_as_memory_does(self, tmp_path):
        data = stops()
        data.to_csv(tmp_path / "a.csv", index=False)
        data.to_parquet(tmp_path / "a.parquet")
        memory = read(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rj.Remark)
            sources = [
                [rj.read(tmp_path / "a.csv")],
                rj.read_chunks(tmp_path / "a.csv", 700),
                rj.scan(tmp_path / "a.parquet", size=900),
                rj.scan(lambda: iter([data[:1500], data[1500:]])),
            ]
            for source in sources:
                parts = list(source)
                assert parts[0].domain == memory.domain
                assert np.array_equal(np.vstack([part.codes for part in parts]), memory.codes)

    def test_on_a_cluster(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        dask = pytest.importorskip("dask.dataframe")
        with (
            distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", rj.Remark)
            scan = rj.distributed.scan(dask.from_pandas(stops(), npartitions=3), client=client)
        assert scan.domain == read(stops()).domain

    def test_a_row_to_predict_is_read_by_the_rule(self):
        domain = read(stops()).domain
        rows = [{"where": "office"}, {"where": "car"}, {"search": "YES"}]
        assert read(rows, domain=domain)["sex"].tolist() == ["does not apply", None, None]


@pytest.fixture(scope="module")
def pmf():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)
        return rj.estimate(stops(), rank=4, random_state=0).pmf


class TestModel:
    def test_the_answer_is_of_those_to_whom_it_applies(self, pmf):
        cars = stops()[stops()["where"] == "car"]
        share = (cars["search"] == "YES").mean()
        for text in ("P(search = YES | where = car)", "P(search = YES | search applies)"):
            assert pmf.ask(text).value == pytest.approx(share, abs=0.01)
        assert pmf.ask("P(sex applies)").value == pytest.approx(len(cars) / 4000, abs=0.01)

    @pytest.mark.parametrize("suffix", ["rejoint", "json"])
    def test_files(self, pmf, tmp_path, suffix):
        pmf.save(tmp_path / f"a.{suffix}")
        again = rj.load(tmp_path / f"a.{suffix}")
        assert again.domain == pmf.domain
        assert again.ask("P(sex applies)").value == pmf.ask("P(sex applies)").value

    def test_the_page_shows_the_level(self, pmf):
        (sex,) = (v for v in document(pmf)["variables"] if v["name"] == "sex")
        assert sex["labels"] == ["F", "M", "does not apply"]

    def test_samples_and_frames(self, pmf):
        frame = pmf.sample(500, random_state=0).to_frame("pandas")
        office = frame["where"] == "office"
        assert (frame.loc[office, "sex"] == "does not apply").mean() > 0.99
        numbers = read({"a": ["x", "y"] * 50, "n": [3.5, None] * 50})
        assert rules(numbers) == {"n": ("a", ("y",))}
        assert numbers.to_frame("pandas")["n"].tolist()[:1] == [3.5]
        assert numbers.to_frame("pandas")["n"].isna().tolist() == [False, True] * 50

    def test_an_imputer_leaves_them_empty(self):
        data = stops(1000)
        data.loc[data.index[:100], "sex"] = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rj.Remark)
            filled = rj.JointImputer(rank=2, random_state=0).fit_transform(data)
        assert (filled["sex"].isna() == (data["where"] == "office")).all()
