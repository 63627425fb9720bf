"""The same records through every door: the same model, choice, remarks and kind of ending.

A door is a way in which records come to ``estimate``. Where all records are in memory the model is
to be the same; beyond memory the choices are, and the likelihood nearly. What does not hold stands
in ``KNOWN``, claim by claim and door by door, with what is seen: a line is taken out of it when the
difference is mended.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rejoint as rj
from rejoint.estimation import Bayes

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")

SHAPE = (3, 4, 2, 3, 3)
ROWS = 2600  # a rank is chosen by one fold of as many, by five of few
FIRST = 1100  # rows of the first file of two
FEW = 600  # rows of numbers, which are read and not searched

#: Each with its own way through the package: likelihood at a rank, the search for one, draws.
FITS = {
    "ml": {"rank": 3, "solver": "ml", "n_init": 2},
    "rank": {"solver": "map", "n_init": 2},
    "bayes": {"rank": 2, "solver": Bayes(burn_in=10, draws=12, thin=1), "n_init": 2},
}

#: Frames that are fitted.
WORLDS = ("holes", "weighted", "survey")

#: Ways in where all records are in memory, and where they are not; all are compared with Records.
IN_MEMORY = [
    *("pandas", "polars", "csv", "parquet", "sparse", "JointPMF"),
    *("scan csv", "scan folder", "scan parquet", "scan chunks", "dask"),
]
BEYOND = ["beyond csv", "beyond folder", "beyond chunks", "beyond dask"]
SCANS = [door for door in (*IN_MEMORY, *BEYOND) if door.split()[0] in ("scan", "beyond", "dask")]

#: Scans of several parts; the others have all rows in one.
PARTS = [door for door in SCANS if door not in ("scan csv", "scan parquet")]

# Dask and what it uses warn of what they will change themselves, not of what is done here.
OF_DASK = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


# --- what does not hold yet ----------------------------------------------------------------------

KNOWN: dict[tuple[str, ...], str] = {}

#: What a claim that does not hold ends in; anything else is a fault of the test.
DIFFERENCE = (AssertionError, pytest.fail.Exception)


def cases(claim, *parts):
    """All combinations, those that do not hold marked; the door comes last."""
    found = [()]
    for values in parts:
        found = [(*case, value) for case in found for value in values]
    params = []
    for case in found:
        marks = list(OF_DASK) if "dask" in case[-1] else []
        if (claim, *case) in KNOWN:
            marks.append(
                pytest.mark.xfail(raises=DIFFERENCE, reason=KNOWN[claim, *case], strict=True)
            )
        params.append(pytest.param(*case, marks=marks))
    return params


def test_what_is_known_is_tested():
    """No line of KNOWN is left over from a claim or a door that is not there."""
    source = Path(__file__).read_text("utf-8")
    doors = {"records", *IN_MEMORY, *BEYOND}
    for claim, *_, door in KNOWN:
        assert f'cases("{claim}"' in source
        assert door in doors


# --- worlds and doors ----------------------------------------------------------------------------


@cache
def world(name):
    """A frame of text with holes; with weights; of a survey; or of halves of other variables."""
    if name in ("numbers", "late"):
        return numbers(late=name == "late")
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.full(size, 0.5), size=3).T for size in SHAPE]
    truth = rj.LowRankPMF(rng.dirichlet(np.full(3, 5.0)), factors)
    codes = np.array(truth.sample(ROWS, random_state=0).codes)
    codes[np.random.default_rng(1).random(codes.shape) < 0.2] = -1
    if name == "apart":
        codes[::2, :2] = -1
        codes[1::2, 3:] = -1
    labels = np.array([*(f"level {k}" for k in range(max(SHAPE))), None], dtype=object)
    frame = pd.DataFrame(labels[codes], columns=truth.domain.names)
    if name == "weighted":
        frame["times"] = np.random.default_rng(2).integers(0, 4, ROWS).astype(float)
    if name == "no weight":
        frame["times"] = 0.0
    if name == "survey":
        rng = np.random.default_rng(3)
        frame["people"] = np.exp(rng.normal(7.0, 0.5, ROWS))
        frame["region"] = rng.integers(0, 3, ROWS)
        frame["town"] = [f"town {k}" for k in rng.integers(0, 20, ROWS)]
    return frame


#: Columns that weigh the records, where a world has them.
WEIGHTS = {
    "sample_weight": "times",
    "survey_weight": "people",
    "strata": "region",
    "clusters": "town",
}


def weights_of(frame):
    """Arguments that name the columns which weigh the records of a frame."""
    return {name: column for name, column in WEIGHTS.items() if column in frame}


def numbers(late):
    """Numbers that are binned, columns that a domain does not have, labels that are not levels."""
    rng = np.random.default_rng(0)
    frame = {
        "city": rng.choice(["Bergen", "Cork", "Delft"], FEW),
        "rooms": rng.integers(1, 6, FEW),
        "price": rng.normal(size=FEW).round(3),
    }
    if late:
        frame["city"][-1] = "Ulm"
    return pd.DataFrame(frame)


@pytest.fixture(scope="module")
def client():
    """A cluster within this process."""
    pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = distributed.Client(
            processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
        )
    yield one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.close()


@pytest.fixture(scope="module")
def enter(tmp_path_factory, request):
    """Records of a frame by a door; ``options`` are those of ``Records.of``."""
    folder = tmp_path_factory.mktemp("doors")

    def files(frame, name):
        place = folder / name
        if not place.exists():
            (place / "two").mkdir(parents=True)
            frame.to_csv(place / "one.csv", index=False)
            first = len(frame) * FIRST // ROWS
            frame[:first].to_csv(place / "two" / "a.csv", index=False)
            frame[first:].to_csv(place / "two" / "b.csv", index=False)
            frame.to_parquet(place / "one.parquet", index=False)
        return place

    def by(door, name, **options):
        frame = world(name)
        options |= weights_of(frame)
        kind, _, what = door.partition(" ")
        if kind in ("records", "pandas", "JointPMF"):
            return rj.Records.of(frame, **options)
        if kind == "polars":
            return rj.Records.of(pl.from_pandas(frame), **options)
        if kind == "sparse":
            return rj.SparseRecords.of(rj.Records.of(frame, **options))
        if kind in ("csv", "parquet"):
            return rj.read(files(frame, name) / f"one.{kind}", **options)
        if kind == "beyond":
            options["memory"] = 0
        if "dask" in door:
            import dask.dataframe

            parts = dask.dataframe.from_pandas(frame, npartitions=3)
            return rj.distributed.scan(parts, client=request.getfixturevalue("client"), **options)
        if what == "chunks":
            first = len(frame) * FIRST // ROWS
            return rj.scan(lambda: iter([frame[:first], frame[first:]]), **options)
        place = {"csv": "one.csv", "folder": "two", "parquet": "one.parquet"}[what]
        size = 450 if kind == "beyond" else None  # rows of a part
        return rj.scan(files(frame, name) / place, size=size, **options)

    return by


@contextmanager
def listening():
    """The remarks that are made, in order."""
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(w.message) for w in caught if issubclass(w.category, rj.Remark)]


@pytest.fixture(scope="module")
def fitted(enter):
    """The result of a fit to a world by a door, and the remarks that it made; each once."""

    @cache
    def fit(name, world_name, door):
        options = FITS[name] | {"random_state": 0}
        with listening() as said:
            if door == "JointPMF":
                return joint_pmf(world(world_name), **options), said
            if door in ("pandas", "polars"):
                return estimate_frame(door, world(world_name), **options), said
            return rj.estimate(enter(door, world_name), **options), said

    return fit


def joint_pmf(frame, rank="auto", **options):
    weights = {name: frame[column].to_numpy() for name, column in weights_of(frame).items()}
    columns = frame.drop(columns=list(WEIGHTS.values()), errors="ignore")
    return rj.JointPMF(rank, **options).fit(columns, **weights).result_


def estimate_frame(door, frame, **options):
    """A frame is given to ``estimate`` as it is."""
    options |= weights_of(frame)
    return rj.estimate(pl.from_pandas(frame) if door == "polars" else frame, **options)


def distance(one, other):
    """Largest difference of weights and factors, largest classes first."""
    assert one.domain == other.domain
    assert one.rank == other.rank
    mine, theirs = (np.vstack([p.weights, *p.factors]) for p in (one.sorted(), other.sorted()))
    return np.abs(mine - theirs).max()


def kind_of(sentence):
    """A sentence without its numbers: whether there is one start or more does not matter."""
    words = re.sub(r"\b(one|no)\b|-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#", sentence)
    return re.sub(r"\b(step|start|draw|chain|record)s\b", r"\1", words)


# --- the model, where all records are in memory --------------------------------------------------


@pytest.mark.parametrize(("fit", "name", "door"), cases("model", FITS, WORLDS, IN_MEMORY))
def test_the_model_is_the_same(fitted, fit, name, door):
    mine, other = (fitted(fit, name, by)[0] for by in (door, "records"))
    # Sums in another order at the most: 1e-16, magnified by the steps of a fit.
    # Passes over sparse records add up in an order of their own, so that EM may end a step earlier.
    exact = 1e-7 if door == "sparse" else 1e-10
    assert distance(mine.pmf, other.pmf) <= exact
    assert mine.log_likelihood == pytest.approx(other.log_likelihood, rel=exact**1.2)


@pytest.mark.parametrize(("name", "door"), cases("draws", WORLDS, IN_MEMORY[:4]))
def test_the_draws_are_the_same(fitted, name, door):
    mine, other = (fitted("bayes", name, by)[0].posterior.draws for by in (door, "records"))
    assert len(mine) == len(other) == 24
    assert all(distance(a, b) <= 1e-10 for a, b in zip(mine, other, strict=True))


# --- choices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "door"), cases("rank", WORLDS, [*IN_MEMORY, *BEYOND]))
def test_the_rank_is_the_same(fitted, name, door):
    """Beyond memory, too: the sample that it is chosen from is all records here."""
    mine, other = (fitted("rank", name, by)[0] for by in (door, "records"))
    assert mine.pmf.rank == other.pmf.rank > 1
    assert mine.selection.ranks == other.selection.ranks


@pytest.mark.parametrize(("name", "door"), cases("scores", WORLDS, [*IN_MEMORY, *BEYOND]))
def test_the_scores_of_ranks_are_the_same(fitted, name, door):
    mine, other = (fitted("rank", name, by)[0].selection for by in (door, "records"))
    np.testing.assert_allclose(mine.scores, other.scores, rtol=1e-9)  # sums in another order
    np.testing.assert_allclose(mine.errors, other.errors, rtol=1e-7, atol=1e-10)
    assert mine.tied == other.tied


@pytest.mark.parametrize(
    ("fit", "door"),
    cases("choice in words", ("ml", "rank", "apart", "survey"), [*IN_MEMORY, *BEYOND]),
)
def test_the_choice_is_told_in_the_same_words(fitted, fit, door):
    name = ("ml", fit) if fit in ("apart", "survey") else (fit, "holes")
    mine, other = (fitted(*name, by)[0].choice for by in (door, "records"))
    assert mine == other


@pytest.mark.parametrize("times", [1.0, 1e4])
def test_auto_takes_the_same_estimator(times):
    """Bayes for few records; likelihood where they count for many, beyond memory, too."""
    frame = world("holes").assign(times=times)
    whole = rj.Records.of(frame, sample_weight="times")
    scan = rj.scan(whole, size=100, memory=0)
    mine, other = (rj.estimate(data, 1, n_init=1, random_state=0) for data in (scan, whole))
    assert mine.choice == other.choice
    assert (mine.posterior is None) == (other.posterior is None) == (times > 1.0)


# --- beyond memory -------------------------------------------------------------------------------


@pytest.mark.parametrize(("fit", "name", "door"), cases("likelihood", FITS, WORLDS, BEYOND))
def test_the_likelihood_is_nearly_the_same_beyond_memory(fitted, fit, name, door):
    mine, other = (fitted(fit, name, by)[0] for by in (door, "records"))
    frame = world(name)
    size = frame["times"].sum() if "times" in frame else len(frame)
    assert abs(mine.log_likelihood - other.log_likelihood) <= 1e-3 * size


def test_the_likelihood_is_nearly_the_same_where_the_sample_is_not_all_records():
    """So many that the fit begins with a sample: 500,000 of 520,000."""
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(4), size=2).T for _ in range(3)]
    many = rj.LowRankPMF([0.4, 0.6], factors).sample(520_000, random_state=0)
    scan = rj.scan(many, size=130_000, memory=0)
    mine, other = (rj.estimate(d, 2, "ml", n_init=2, random_state=0) for d in (scan, many))
    assert abs(mine.log_likelihood - other.log_likelihood) <= 1e-3 * len(many)


# --- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize("door", cases("remarks of a fit", [*IN_MEMORY, *BEYOND]))
def test_a_fit_makes_the_same_remarks(fitted, door):
    mine, other = (fitted("ml", "apart", by)[1] for by in (door, "records"))
    assert len(other) == 1
    assert other[0].startswith("No record contains both of: x0 and x3;")
    assert mine == other


@pytest.mark.parametrize(("name", "door"), cases("no remarks", WORLDS, [*IN_MEMORY, *BEYOND]))
def test_a_fit_without_concerns_makes_no_remarks(fitted, name, door):
    assert [fitted(fit, name, door)[1] for fit in FITS] == [[]] * len(FITS)


@pytest.mark.parametrize(("fit", "door"), cases("ending", FITS, [*IN_MEMORY, *BEYOND]))
def test_the_kind_of_ending_is_the_same(fitted, fit, door):
    mine, other = (fitted(fit, "holes", by)[0].stop for by in (door, "records"))
    assert kind_of(mine) == kind_of(other)


@pytest.mark.parametrize("door", cases("worth of draws", ["records", *IN_MEMORY, *BEYOND]))
def test_what_draws_are_worth_is_said(fitted, door):
    stop = kind_of(fitted("bayes", "holes", door)[0].stop)
    assert "# posterior draw from # chain, worth about # independent ones" in stop


# --- reading -------------------------------------------------------------------------------------

READ = [door for door in (*IN_MEMORY, *BEYOND) if door not in ("sparse", "JointPMF")]
WISHES = {
    "bins by rule": {},
    "fewer bins": {"bins": {"rooms": 9, "price": 4}},
    "domain": {"domain": rj.Domain.of({"city": ["Bergen", "Cork"], "rooms": [1, 2, 3, 4, 5]})},
}
SAID = {
    "bins by rule": ["Numbers are cut into quantile bins: "],
    "fewer bins": ["Variable 'rooms': 9 quantile bins were requested, but there are 5"],
    "domain": [
        "Ignored columns, which are not in the domain: 'price'",
        "Variable 'city': 223 cells with labels that are not levels, treated as missing: 'Delft'",
    ],
}


@pytest.mark.parametrize(("wish", "door"), cases("remarks of reading", WISHES, READ))
def test_reading_makes_the_same_remarks(enter, wish, door):
    """From the file to the fit: a scan reads some of it only then."""
    said = []
    for by in (door, "records"):
        with listening() as heard:
            rj.estimate(enter(by, "numbers", **WISHES[wish]), 1, "ml", n_init=1, random_state=0)
        said.append(heard)
    mine, other = said
    assert all(words.startswith(begun) for words, begun in zip(other, SAID[wish], strict=True))
    assert mine == other


@pytest.mark.parametrize(("name", "door"), cases("domain", ("holes", "weighted", "numbers"), READ))
def test_the_domain_is_the_same(enter, name, door):
    with listening():
        mine, other = (enter(by, name).domain for by in (door, "records"))
    for one, two in zip(mine, other, strict=True):
        assert (one.name, one.levels, one.kind) == (two.name, two.levels, two.kind)
        if one.representatives is not None:
            # Means of the numbers in a bin, of sums in another order.
            np.testing.assert_allclose(one.representatives, two.representatives, rtol=1e-12)


@pytest.mark.parametrize("door", cases("no weight", READ))
def test_weights_that_are_all_zero_are_refused_in_the_same_words(enter, door):
    with pytest.raises(ValueError, match="sample_weight is zero in every row"):
        rj.estimate(enter(door, "no weight"), 1, "ml")


@pytest.mark.parametrize("door", cases("no weight in a domain", READ))
def test_so_they_are_where_a_domain_is_given(enter, door):
    domain = rj.Domain.of({f"x{n}": [f"level {k}" for k in range(4)] for n in range(5)})
    with pytest.raises(ValueError, match="sample_weight is zero in every row"):
        rj.estimate(enter(door, "no weight", domain=domain), 1, "ml")


@pytest.mark.parametrize("door", cases("row of an error", READ))
def test_an_error_names_the_row_of_the_data(enter, door):
    """A label that is not a level, far down: the only one of its kind."""
    domain = rj.Domain.of({"city": ["Bergen", "Cork", "Delft"], "rooms": [1, 2, 3, 4, 5]})

    def fit():
        return rj.estimate(enter(door, "late", domain=domain, handle_unknown="error"), 1, "ml")

    words = f"Variable 'city', row {FEW - 1}: level 'Ulm' is not among"
    with listening(), pytest.raises(ValueError, match=words):
        fit()


# --- kernels -------------------------------------------------------------------------------------

SCRIPT = """
import json, sys, warnings
import rejoint as rj
from rejoint.estimation import Bayes

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = {}
    for name, options in eval(sys.argv[2]).items():
        result = rj.estimate(rj.read(sys.argv[1]), random_state=0, **options)
        found[name] = {
            "backend": rj.kernels.backend,
            "weights": result.pmf.weights.tolist(),
            "factors": [factor.tolist() for factor in result.pmf.factors],
            "log_likelihood": result.log_likelihood,
            "stop": result.stop,
            "choice": result.choice,
            "ranks": result.selection and list(result.selection.ranks),
        }
found["remarks"] = [str(w.message) for w in caught if issubclass(w.category, rj.Remark)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def by_numpy(tmp_path_factory):
    """The same fits by NumPy kernels, which are chosen when the package is imported."""

    @cache
    def run(name):
        path = tmp_path_factory.mktemp("numpy") / f"{name}.csv"
        world(name).to_csv(path, index=False)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path), repr(FITS)],
            env=os.environ | {"REJOINT_KERNELS": "numpy"},
            capture_output=True,
            check=True,
            text=True,
        )
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("fit", FITS)
def test_numpy_kernels_find_the_same(fitted, by_numpy, fit):
    native, numpy = fitted(fit, "holes", "csv")[0], by_numpy("holes")[fit]
    assert numpy["backend"] == "numpy"
    found = rj.LowRankPMF(numpy["weights"], numpy["factors"], native.pmf.domain)
    # Other sums, which the steps of a fit magnify.
    assert distance(found, native.pmf) <= 1e-6
    assert numpy["log_likelihood"] == pytest.approx(native.log_likelihood, rel=1e-9)


@pytest.mark.parametrize("fit", FITS)
def test_numpy_kernels_make_the_same_choice(fitted, by_numpy, fit):
    native, numpy = fitted(fit, "holes", "csv")[0], by_numpy("holes")[fit]
    if fit != "rank":  # held-out scores come from drawn classes, which differ
        assert numpy["choice"] == native.choice
        assert numpy["ranks"] == (native.selection and list(native.selection.ranks))


@pytest.mark.parametrize("fit", FITS)
def test_numpy_kernels_end_in_the_same_words(fitted, by_numpy, fit):
    native, numpy = fitted(fit, "holes", "csv")[0], by_numpy("holes")[fit]
    assert kind_of(numpy["stop"]) == kind_of(native.stop)


def test_numpy_kernels_make_the_same_remarks(fitted, by_numpy):
    native = [said for fit in FITS for said in fitted(fit, "apart", "csv")[1]]
    assert by_numpy("apart")["remarks"] == native != []
