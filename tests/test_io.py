"""Saved models: bit by bit, all or nothing, and errors in words for everything else."""

import json
import os
import stat
import zipfile
from io import BytesIO

import numpy as np
import pytest

import rejoint as rj
from rejoint import io
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.io.archive import ArchiveError, lists_of, read_archive, write_archive
from rejoint.io.model_file import SavedEstimator

FORMS = pytest.mark.parametrize("name", ["model.rejoint", "model.json"])


def skip_bytes(name, member):
    """Text has no members that are bytes, nor floats that JSON has no word for."""
    if name == "model.json" and (
        isinstance(member, bytes) or (isinstance(member, np.ndarray) and np.isnan(member).any())
    ):
        pytest.skip("archives alone")


def mixed_labels():
    """A domain with labels of every type that a level may have."""
    age = rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, float("inf"))), "binned", (9.0, 40.0))
    return rj.Domain(
        (
            rj.Variable("text", ("ja", "nein", "π ≈ 3", "")),
            rj.Variable("whole", (-1, 0, 10**30), "ordinal"),
            rj.Variable("real", (0.1, float("inf"), 5e-324)),
            rj.Variable("truth", (True, False)),
            age,
        )
    )


def random_pmf(domain, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for levels in domain.shape]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)


def test_models_come_back_bit_by_bit(tmp_path):
    pmf = random_pmf(mixed_labels())
    pmf.save(tmp_path / "model.rejoint")
    back = rj.load(tmp_path / "model.rejoint")
    assert back.domain == pmf.domain
    assert [type(x) for v in back.domain for x in v.levels] == [
        type(x) for v in pmf.domain for x in v.levels
    ]
    assert back.domain["age"].representatives == (9.0, 40.0)
    for a, b in zip((pmf.weights, *pmf.factors), (back.weights, *back.factors), strict=True):
        assert a.tobytes() == b.tobytes()


def test_plain_numpy_reads_the_file(tmp_path):
    pmf = random_pmf(mixed_labels())
    path = str(tmp_path / "model.rejoint")
    pmf.save(path)
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["weights"], pmf.weights)
        np.testing.assert_array_equal(file["factors"], np.vstack(pmf.factors))
        assert json.loads(file["meta.json"])["schema"] == io.SCHEMA


def test_equal_models_are_equal_bytes(tmp_path):
    pmf = random_pmf(mixed_labels())
    pmf.save(tmp_path / "a")
    pmf.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "model.rejoint"
    first = random_pmf(mixed_labels(), seed=0)
    first.save(path)

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        random_pmf(mixed_labels(), seed=1).save(path)
    assert rj.load(path) == first
    assert os.listdir(tmp_path) == ["model.rejoint"]


def test_saving_replaces_and_keeps_usual_permissions_and_links(tmp_path):
    path, link = tmp_path / "model.rejoint", tmp_path / "link"
    random_pmf(mixed_labels(), seed=0).save(path)
    other = random_pmf(mixed_labels(), seed=1)
    link.symlink_to(path)
    other.save(link)
    assert link.is_symlink()
    assert rj.load(path) == other
    (tmp_path / "plain").write_text("")
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == usual


def test_places_that_cannot_be_written(tmp_path):
    pmf = random_pmf(mixed_labels())
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*missing'"):
        pmf.save(tmp_path / "missing" / "model.rejoint")
    with pytest.raises(IsADirectoryError, match="it is a folder; give the name of a file"):
        pmf.save(tmp_path)


def test_missing_files_and_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No model file '.*gone.rejoint'"):
        rj.load(tmp_path / "gone.rejoint")
    for content in (b"", b"hello", b"\x93NUMPY"):
        (tmp_path / "notes").write_bytes(content)
        with pytest.raises(ValueError, match="is not a rejoint model: it does not start like one"):
            rj.load(tmp_path / "notes")
    np.savez(tmp_path / "arrays.npz", weights=np.ones(1))
    with pytest.raises(ValueError, match=r"is an archive but not a rejoint model.*meta\.json"):
        rj.load(tmp_path / "arrays.npz")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
def test_truncated_files(tmp_path, share):
    path = tmp_path / "model.rejoint"
    random_pmf(mixed_labels(), rank=50).save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match=r"is truncated or corrupt .*: copy or save it again"):
        rj.load(path)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "model.rejoint"
    pmf = random_pmf(rj.Domain.of({"a": ["x", "y"]}), rank=2)
    pmf.save(path)
    data = path.read_bytes()
    for place in range(len(data)):
        spoilt = bytearray(data)
        spoilt[place] ^= 0x10
        path.write_bytes(bytes(spoilt))
        try:
            back = rj.load(path)
        except ValueError as error:
            assert "rejoint model" in str(error) or "truncated or corrupt" in str(error)  # noqa: PT017
        else:
            assert back == pmf  # a byte of the archive's bookkeeping that is not read


def test_json_comes_back_bit_by_bit_and_is_plain(tmp_path):
    pmf = random_pmf(mixed_labels())
    path = tmp_path / "model.json"
    pmf.save(path)
    back = rj.load(path)
    assert back.domain == pmf.domain
    for a, b in zip((pmf.weights, *pmf.factors), (back.weights, *back.factors), strict=True):
        assert a.tobytes() == b.tobytes()
    plain = json.loads(path.read_text(encoding="utf-8"))
    assert plain["format"] == "rejoint.LowRankPMF"
    # Anybody can compute a probability from it: a sum over classes of products.
    weights, rows = (plain["arrays"][name]["values"] for name in ("weights", "factors"))
    starts = np.cumsum([0, *pmf.domain.shape[:-1]])
    cell = sum(
        weight * np.prod([rows[start + 1][f] for start in starts])
        for f, weight in enumerate(weights)
    )
    levels = {v.name: v.levels[1] for v in pmf.domain}
    assert pmf.prob(levels) == pytest.approx(cell, rel=1e-12)  # the same sum, in another order


def test_both_forms_are_one_tree(tmp_path):
    """Whatever a file has, text is the JSON of the archive and its arrays as lists."""
    pmf = drawn_pmf(mixed_labels())
    shape = (4, 3, 3, 2, 2)
    cells = {tuple(pmf.domain.names): np.ones(shape), ("whole",): [48.0, np.nan, 48.0]}
    tables = rj.Marginals.from_tables(cells, domain=pmf.domain, suppressed=(1, np.inf))
    saved = pmf.with_tables(tables).to_saved({"source": "here"})
    ensemble = saved_classifier().ensemble
    arrays = {"codes": np.arange(6, dtype="i1").reshape(2, 3), "none": np.empty((0, 2), "f4")}
    estimator = SavedEstimator("other", {"a": [1]}, arrays | {"flag": np.array([True])})
    saved = saved._replace(ensemble=ensemble, estimator=estimator, draw_weights=np.arange(12) / 66)
    for name in ("a.rejoint", "a.json"):
        io.write_model(tmp_path / name, saved)
    plain = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    lists = plain.pop("arrays")
    with np.load(tmp_path / "a.rejoint") as file:
        assert json.loads(file["meta.json"]) == plain
        assert {*file.files} == {"meta.json", *lists}
        for name, of_text in lists.items():
            assert (of_text["type"], of_text["shape"]) == (
                file[name].dtype.str,
                [*file[name].shape],
            )
    for name in ("a.rejoint", "a.json"):
        back = io.read_saved(tmp_path / name)
        io.write_model(tmp_path / "again.rejoint", back)
        assert (tmp_path / "again.rejoint").read_bytes() == (tmp_path / "a.rejoint").read_bytes()
        for key, array in estimator.arrays.items():
            found = back.estimator.arrays[key]
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found, array)


@FORMS
def test_an_earlier_schema_is_refused_by_its_version(tmp_path, name):
    random_pmf(mixed_labels(), rank=2).save(tmp_path / name)
    rewrite(tmp_path / name, meta={"schema": 5})
    with pytest.raises(ValueError, match="schema version 5; this rejoint reads version 6: fit and"):
        rj.load(tmp_path / name)


@FORMS
def test_notes_are_kept(tmp_path, name):
    pmf = random_pmf(mixed_labels(), rank=2)
    notes = {"class_names": ["old", "younger"], "records": 1200, "choice": {"why": "BIC"}}
    pmf.save(tmp_path / name, notes=notes)
    assert io.read_saved(tmp_path / name).notes == notes
    assert rj.load(tmp_path / name) == pmf
    with pytest.raises(ValueError, match="1 class names for a model of 2 classes"):
        pmf.save(tmp_path / name, notes={"class_names": ["one"]})
    with pytest.raises(ValueError, match="notes cannot be written as JSON"):
        pmf.save(tmp_path / name, notes={"seen": {1, 2}})


def plain_model(tmp_path):
    random_pmf(mixed_labels(), rank=2).save(tmp_path / "model.json")
    return json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "holds 'other', not a rejoint.LowRankPMF"),
        ({"schema": 7}, "schema version 7; this rejoint reads version 6: update rejoint"),
        ({"schema": "1"}, "truncated or corrupt .its schema version is .1., expected a whole"),
        ({"notes": []}, "its notes are not an object"),
        ({"domain": None}, "its domain cannot be read"),
        ({"domain": {"variables": ["a"]}}, "its domain cannot be read"),
        ({"domain": {"variables": [{"name": "a", "kind": "x", "levels": [[]]}]}}, "domain cannot"),
        ({"arrays": None}, "'arrays' of it is null, expected an object"),
        ({"arrays": {}}, "it has no array 'weights'"),
        ({"arrays": {"weights": []}}, r"'weights' of 'arrays' of it is \[\], expected an object"),
    ],
)
def test_what_json_holds_is_checked(tmp_path, change, words):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**plain_model(tmp_path), **change}))
    with pytest.raises(ValueError, match=words):
        rj.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"values": None}, "'weights' does not have the size that it claims"),
        ({"values": [0.5, "0.5"]}, "array 'weights' is not of numbers of type <f8"),
        ({"values": [0.5, 10**400]}, "array 'weights'"),
        ({"values": [True, False]}, "array 'weights' is not of numbers of type <f8"),
        ({"values": [0.5, [0.5]]}, "array 'weights': "),
        ({"values": [0.5, {}]}, "array 'weights' is not of numbers of type <f8"),
        ({"values": [0.5, None]}, "weights holds inf"),
        ({"values": [0.9, 0.9]}, "the weights sum to 1.8"),
        ({"values": []}, "'weights' does not have the size that it claims"),
        ({"shape": [3]}, "'weights' does not have the size that it claims"),
        ({"shape": [-1]}, "is -1, expected a whole number of at least 0"),
        ({"type": "<f4"}, "'weights' is '<f4', not '<f8'"),
        ({"type": "<i2"}, "'weights' is '<i2', not '<f8'"),
        ({"type": 3}, "'type' of 'weights' of 'arrays' of it is 3, expected text"),
    ],
)
def test_arrays_in_json_are_checked(tmp_path, change, words):
    path = tmp_path / "model.json"
    plain = plain_model(tmp_path)
    plain["arrays"]["weights"] |= change
    path.write_text(json.dumps(plain))
    with pytest.raises(ValueError, match=words):
        rj.load(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "its JSON cannot be read"),
        ("{" * 100_000, "its JSON cannot be read"),
        ('{"a": ' * 100_000, "its JSON cannot be read"),
        ('{"weights": [NaN]}', "NaN is not a number"),
        ("{}", "is not a rejoint model"),
    ],
)
def test_json_that_is_no_model(tmp_path, text, words):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        rj.load(tmp_path / "model.json")


def test_packed_members_are_refused_before_they_unpack(tmp_path):
    """A file of kilobytes that unpacks to gigabytes takes no memory."""
    path = tmp_path / "model.rejoint"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("meta.json", "w", force_zip64=True) as member:
            for _ in range(64):
                member.write(b" " * 2**20)
        archive.writestr("weights.npy", b"")
    assert path.stat().st_size < 2**20
    with pytest.raises(ValueError, match=r"'meta\.json' is compressed, which is not allowed"):
        rj.load(path)


def test_a_header_that_lies_about_its_size(tmp_path):
    """The directory of the archive claims another size than the file has bytes."""
    path = tmp_path / "model.rejoint"
    random_pmf(mixed_labels()).save(path)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 20 : entry + 28] = b"\xff\xff\xff\x7f" * 2  # two gigabytes, stored
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="truncated or corrupt"):
        rj.load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_twice_are_refused_and_strange_ones_left_alone(tmp_path):
    path = tmp_path / "model.rejoint"
    pmf = random_pmf(mixed_labels())
    pmf.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../escape.txt", "no")
        archive.writestr("more.npy", b"for later versions")
    before = sorted(os.listdir(tmp_path))
    assert rj.load(path) == pmf
    assert sorted(os.listdir(tmp_path)) == before
    assert not (tmp_path.parent.parent / "escape.txt").exists()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("weights.npy", b"")
    with pytest.raises(ValueError, match=r"it has two members 'weights\.npy'"):
        rj.load(path)


def drawn_pmf(domain, rank=3, count=12):
    """A model that carries draws of its own rank and of a larger one."""
    draws = [random_pmf(domain, rank + seed % 2, seed) for seed in range(count)]
    pmf = random_pmf(domain, rank)
    return rj.LowRankPMF(pmf.weights, pmf.factors, domain, draws)


@FORMS
def test_draws_come_back_bit_by_bit(tmp_path, name):
    pmf = drawn_pmf(mixed_labels())
    pmf.save(tmp_path / name)
    back = rj.load(tmp_path / name)
    assert back == pmf
    assert back.draws.block.tobytes() == pmf.draws.block.tobytes()
    assert [draw.rank for draw in back.draws] == [3, 4] * 6
    found = back.interval("text", given={"truth": True})
    wanted = pmf.interval("text", given={"truth": True})
    np.testing.assert_array_equal(found, wanted)
    back.save(tmp_path / f"again_{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"again_{name}").read_bytes()
    again = rj.load(tmp_path / f"again_{name}")
    np.testing.assert_array_equal(again.interval("text", given={"truth": True}), found)
    pmf.save(tmp_path / name, draws=False)
    bare = rj.load(tmp_path / name)
    assert len(bare.draws) == 0
    np.testing.assert_array_equal(bare.marginal("text"), pmf.marginal("text"))


@FORMS
def test_weights_of_draws_come_back_bit_by_bit(tmp_path, name):
    pmf = drawn_pmf(mixed_labels()).condition({"truth": True})
    assert np.ptp(pmf.draws.weights) > 0
    pmf.save(tmp_path / name)
    back = rj.load(tmp_path / name)
    assert back == pmf
    np.testing.assert_array_equal(back.draws.weights, pmf.draws.weights)
    np.testing.assert_array_equal(back.interval("text"), pmf.interval("text"))


def test_files_of_fits_are_small_and_others_as_before(tmp_path):
    pmf = drawn_pmf(rj.Domain.of_shape([4] * 10), rank=5, count=200)
    carried = rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, pmf.draws.to_carry(), pmf.mixture)
    carried.save(tmp_path / "drawn.rejoint")
    carried.save(tmp_path / "plain.rejoint", draws=False)
    numbers = 40 * (1 + 40) * 6  # forty draws are kept, in four bytes a number
    more = (tmp_path / "drawn.rejoint").stat().st_size - (tmp_path / "plain.rejoint").stat().st_size
    assert 4 * numbers < more < 4 * numbers + 500
    with np.load(tmp_path / "plain.rejoint", allow_pickle=False) as file:
        assert sorted(file.files) == ["factors", "meta.json", "mixture", "weights"]
    pmf.representative.save(tmp_path / "alone.rejoint")
    with np.load(tmp_path / "alone.rejoint", allow_pickle=False) as file:
        assert sorted(file.files) == ["factors", "meta.json", "weights"]


@FORMS
@pytest.mark.parametrize(
    ("mixture", "words"),
    [
        (np.ones((5, 2)), r"levels but mixture of shape \(5, 2\)"),
        (np.ones(15), r"levels but mixture of shape \(15,\)"),
        (np.full((15, 2), np.nan), "weights holds nan"),
        (np.ones((15, 2)), "the weights sum to 2"),
        (np.ones((15, 2), dtype=np.float32), "'mixture' is '<f4', not '<f8'"),
    ],
)
def test_mixtures_are_checked(tmp_path, name, mixture, words):
    skip_bytes(name, mixture)
    path = tmp_path / name
    drawn_pmf(mixed_labels()).save(path)
    rewrite(path, mixture=mixture)
    with pytest.raises(ValueError, match=words):
        rj.load(path)


def test_draws_in_double_precision_must_sum_to_one(tmp_path):
    """They are not divided by their sums, as those in single precision are."""
    path = tmp_path / "model.rejoint"
    pmf = drawn_pmf(mixed_labels())
    pmf.save(path)
    block = np.array(pmf.draws.block)
    block[0, 1:, 0] *= 1 + 2e-6
    rewrite(path, draws=block)
    with pytest.raises(ValueError, match="Posterior draw 0: its weights, or a column"):
        rj.load(path)


@FORMS
@pytest.mark.parametrize(
    "weights", [np.ones(11) / 11, np.full(12, np.nan), np.full(12, 1.0), np.linspace(-1, 1, 12)]
)
def test_weights_of_draws_are_checked(tmp_path, name, weights):
    skip_bytes(name, weights)
    path = tmp_path / name
    drawn_pmf(mixed_labels()).condition({"truth": True}).save(path)
    rewrite(path, draw_weights=weights)
    with pytest.raises(ValueError, match="Weights of 12 posterior draws must be as many numbers"):
        rj.load(path)


@FORMS
@pytest.mark.parametrize("room", [0, 100, 2000])
def test_a_full_disk_leaves_no_half_file(tmp_path, monkeypatch, name, room):
    """Writing fails after some bytes, as on a disk that is full."""
    real = os.open
    written = 0

    class Disk:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, key):
            return getattr(self.file, key)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            nonlocal written
            written += len(data)
            if written > room:
                raise OSError(28, "No space left on device")
            return self.file.write(data)

    monkeypatch.setattr("builtins.open", lambda target, mode, _open=open: Disk(_open(target, mode)))
    with pytest.raises(OSError, match="No space left on device"):
        random_pmf(mixed_labels(), rank=30).save(tmp_path / name)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []
    assert real is os.open


def rewrite(path, **members):
    """Replace members of a file: a dict is JSON, an array an array, None removes."""
    if path.suffix == ".json":
        plain = json.loads(path.read_text(encoding="utf-8"))
        plain |= members.pop("meta", {})
        plain["arrays"] |= {
            name: array
            if array is None
            else {"type": array.dtype.str, "shape": array.shape, "values": lists_of(array)}
            for name, array in members.items()
        }
        arrays = {name: array for name, array in plain["arrays"].items() if array is not None}
        path.write_text(json.dumps(plain | {"arrays": arrays}))
        return
    with zipfile.ZipFile(path) as archive:
        old = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in old.items():
            new = members.get(name.partition(".")[0], data)
            if isinstance(new, dict):
                new = json.dumps({**json.loads(data), **new})
            if isinstance(new, np.ndarray):
                with archive.open(name, "w") as member:
                    np.lib.format.write_array(member, new)
            elif new is not None:
                archive.writestr(name, new)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"meta": {"schema": 7}}, "schema version 7; this rejoint reads version 6: update"),
        ({"meta": {"format": "other"}}, "holds 'other', not a rejoint.LowRankPMF"),
        ({"meta": {"domain": {}}}, r"truncated or corrupt \(its domain cannot be read"),
        ({"meta": b"{"}, "no readable meta.json"),
        ({"meta": b"[" * 100_000}, "no readable meta.json"),
        ({"meta": b"[]"}, "is not a rejoint model"),
        ({"weights": np.ones((0,))}, "'weights' does not have the size that it claims"),
        ({"weights": np.array([np.nan, 0.5, 0.5])}, r"weights holds nan at \(0,\)"),
        ({"weights": np.array([-0.5, 0.5, 1.0])}, r"weights holds -0.5 at \(0,\)"),
        ({"weights": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{"}, "truncated or corrupt"),
        ({"weights": b"\x93NUMPY\x01\x00\x50\x00" + b"(" * 80}, "truncated or corrupt"),
        ({"weights": None}, r"truncated or corrupt \(it has no array 'weights'\)"),
        ({"factors": np.ones((2, 2))}, r"levels but factors of shape \(2, 2\)"),
        ({"weights": np.ones(3, dtype=np.float32)}, "'weights' is '<f4', not '<f8'"),
        ({"weights": np.array(["x", None], dtype=object)}, r"'weights' is '\|O', not '<f8'"),
    ],
)
def test_what_is_inside_is_checked(tmp_path, members, words):
    path = tmp_path / "model.rejoint"
    random_pmf(mixed_labels()).save(path)
    rewrite(path, **members)
    with pytest.raises(ValueError, match=words):
        rj.load(path)


def saved_classifier():
    """The file of a classifier of one member over the domain of the other models."""
    pmf = random_pmf(mixed_labels())
    ensemble = LabelEnsemble([pmf], 2, np.ones((3, 1)), np.array([0, 2]), [0.5])
    return pmf.to_saved()._replace(ensemble=ensemble.to_saved())


WRONG_ENSEMBLES = [
    ([], r"its ensemble is \[\], expected an object"),
    ({"targets": None}, "'targets' of its ensemble is null, expected a list"),
    ({"targets": []}, "the targets of its ensemble are not its last variables"),
    ({"targets": ["text"]}, "the targets of its ensemble are not its last variables"),
    ({"targets": [[], {}]}, "item 1 of 'targets' of its ensemble is .*, expected text"),
    ({"always_there": {}}, "'always_there' of its ensemble is {}, expected a list"),
    ({"always_there": [3]}, "'always_there' of its ensemble are no different positions"),
    ({"always_there": [-1]}, "is -1, expected a whole number of at least 0"),
    ({"always_there": [True]}, "is true, expected a whole number of at least 0"),
    ({"always_there": [1, 1]}, "'always_there' of its ensemble are no different positions"),
    ({"missing_limits": "a third"}, '"a third", expected a list'),
    ({"missing_limits": [2]}, "is 2, expected a number from 0 to 1"),
    ({"missing_limits": [0.5, 0.5]}, "'missing_limits' of its ensemble do not rise"),
    ({"missing_limits": [0.5, 0.6]}, "the weights of its ensemble are not 4 rows of shares"),
    ({"weights": None}, "the weights of its ensemble are not 3 rows"),
    ({"weights": [[1.0]]}, "the weights of its ensemble are not 3 rows"),
    ({"weights": [[1.0], [-1.0], [1.0]]}, "the weights of its ensemble are not 3 rows of shares"),
    ({"weights": [[1.0], [0.5], [1.0]]}, "the weights of its ensemble do not sum to one"),
    ({"weights": [[], [], []]}, "the weights of its ensemble do not sum to one"),
    ({"weights": [[1e-6] * 80_001] * 3}, "of its ensemble do not sum to one"),
    ({"weights": [[1 / 80_001] * 80_001] * 3}, "80,001 models of 5 variables are too many"),
]


@FORMS
@pytest.mark.parametrize(("change", "words"), WRONG_ENSEMBLES)
def test_an_ensemble_is_checked(tmp_path, name, change, words):
    path = tmp_path / name
    saved = saved_classifier()
    rj.io.write_model(path, saved)
    plain = {
        "targets": [*saved.ensemble.targets],
        "weights": saved.ensemble.weights.tolist(),
        "always_there": [0, 2],
        "missing_limits": [0.5],
    }
    rewrite(path, meta={"ensemble": plain | change if isinstance(change, dict) else change})
    with pytest.raises(ValueError, match=f"truncated or corrupt .*{words}"):
        rj.load(path)


@FORMS
@pytest.mark.parametrize(
    ("member", "words"),
    [
        (None, r"truncated or corrupt \(it has no array 'member_0'\)"),
        (np.ones((2, 2)), r"levels but member_0 of shape \(2, 2\)"),
        (np.ones(15), r"levels but member_0 of shape \(15,\)"),
        (np.ones((15, 3), dtype=np.float32), "'member_0' is '<f4', not '<f8'"),
        (np.ones((15, 3)), "the weights sum to 3"),
        (np.full((15, 3), np.nan), "weights holds nan"),
        (np.full((15, 3), -1.0), "weights holds -1"),
        (b"\x93NUMPY\x01\x00\x50\x00" + b"(" * 80, "truncated or corrupt"),
    ],
)
def test_members_are_checked(tmp_path, name, member, words):
    skip_bytes(name, member)
    path = tmp_path / name
    rj.io.write_model(path, saved_classifier())
    rewrite(path, member_0=member)
    with pytest.raises(ValueError, match=words):
        rj.load(path)


@FORMS
@pytest.mark.parametrize(
    ("draws", "words"),
    [
        (np.ones((2, 5, 1), dtype=np.float32), r"levels but draws of shape \(2, 5, 1\)"),
        (np.ones((2, 5), dtype=np.float32), r"levels but draws of shape \(2, 5\)"),
        (np.ones((2, 15, 1), dtype=np.float16), "array 'draws' has type <f2"),
        (np.ones((2, 15, 1), dtype=np.float32), "Posterior draw 0: its weights, or a column"),
        (
            np.full((2, 15, 1), np.nan, dtype=np.float32),
            "contain values that are not probabilities",
        ),
        (np.full((2, 15, 1), -1, dtype=np.float32), "contain values that are not probabilities"),
        (np.zeros((0, 15, 1), dtype=np.float32), "'draws' does not have the size that it claims"),
        (np.zeros((2, 15, 0), dtype=np.float32), "'draws' does not have the size that it claims"),
        (np.ones((80_001, 15, 1), dtype=np.float32), "80,001 draws of 5 variables are too many"),
        (b"\x93NUMPY\x01\x00\x50\x00" + b"(" * 80, "truncated or corrupt"),
    ],
)
def test_draws_are_checked(tmp_path, name, draws, words):
    skip_bytes(name, draws)
    path = tmp_path / name
    drawn_pmf(mixed_labels()).save(path)
    rewrite(path, draws=draws)
    with pytest.raises(ValueError, match=words):
        rj.load(path)


def test_a_header_that_claims_more_than_there_is_takes_no_memory(tmp_path):
    path = tmp_path / "model.rejoint"
    random_pmf(mixed_labels()).save(path)
    claim = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    header = b"\x93NUMPY\x01\x00v\x00" + claim
    rewrite(path, weights=header.ljust(127) + b"\n" + bytes(24))
    with pytest.raises(ValueError, match="'weights' does not have the size that it claims"):
        rj.load(path)


def test_numbers_that_are_no_model_are_refused(tmp_path):
    path = tmp_path / "model.rejoint"
    random_pmf(mixed_labels()).save(path)
    rewrite(path, weights=np.array([0.5, 0.5, 0.5]))
    with pytest.raises(ValueError, match=r"the weights sum to 1.5"):
        rj.load(path)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.zeros((0, 3)),
        np.array(2.5),
        np.array([True]),
        np.ones(2, "f4"),
    ],
)
def test_archives_give_arrays_back(array):
    file = BytesIO()
    write_archive(file, {"value": float("inf")}, {"a": array}, allow_nan=True)
    archive = read_archive(file)
    back = archive.array("a", may_be_empty=True)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert back.flags.writeable
    assert archive.meta == {"value": float("inf")}
    assert "b" not in archive
    with pytest.raises(ArchiveError, match="it has no array 'b'"):
        archive.array("b")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_archive(BytesIO(), {"value": float("nan")}, {})


def test_archives_refuse_what_is_no_number():
    file = BytesIO()
    write_archive(file, {}, {"a": np.array(["text"])})
    with pytest.raises(ArchiveError, match="array 'a' is '<U4', not numeric"):
        read_archive(file).array("a")
    with pytest.raises(ArchiveError, match="not a zip file"):
        read_archive(BytesIO(b"hello"))


def certain_pmf(rank=600, seed=0):
    """A model of many classes, of which two variables have one level each, as completions have."""
    rng = np.random.default_rng(seed)
    domain = mixed_labels()
    factors = [rng.dirichlet(np.ones(len(v)), rank).T for v in domain]
    for n in (0, 2):
        factors[n] = np.eye(len(domain[n]))[:, rng.integers(len(domain[n]), size=rank)]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)


def test_certain_variables_come_back_bit_by_bit_from_a_smaller_file(tmp_path):
    pmf = certain_pmf()
    pmf.save(tmp_path / "model.rejoint")
    back = rj.load(tmp_path / "model.rejoint")
    for a, b in zip((pmf.weights, *pmf.factors), (back.weights, *back.factors), strict=True):
        assert a.tobytes() == b.tobytes()
    with np.load(tmp_path / "model.rejoint") as file:
        assert json.loads(file["meta.json"])["certain"] == [0, 2]
        left = sum(pmf.domain.shape) - len(pmf.domain[0]) - len(pmf.domain[2])
        assert file["factors"].shape == (left, 600)
    pmf.save(tmp_path / "model.json")
    text = rj.load(tmp_path / "model.json")
    assert all(map(np.array_equal, text.factors, pmf.factors))


def test_a_model_of_certain_variables_alone(tmp_path):
    levels = np.random.default_rng(0).integers(3, size=(2, 700))
    pmf = rj.LowRankPMF(np.full(700, 1 / 700), [np.eye(3)[:, row] for row in levels])
    pmf.save(tmp_path / "model.rejoint")
    assert all(map(np.array_equal, rj.load(tmp_path / "model.rejoint").factors, pmf.factors))


@FORMS
@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"meta": {"certain": [0]}}, "levels but factors of shape"),
        ({"meta": {"certain": [0, 99]}}, "item 2 of 'certain' of it is 99, expected"),
        ({"meta": {"certain": [2, 0]}}, "'certain' of it has no increasing positions"),
        ({"meta": {"certain": None}}, "'certain' of it is null, expected a list"),
        ({"meta": {"certain": [False, 2]}}, "item 1 of 'certain' of it is false, expected"),
        ({"indicators": np.full((7, 600), 2, np.int8)}, "sum"),
        ({"indicators": np.zeros((7, 600))}, "'indicators' is '<f8', not '|i1'"),
        ({"indicators": np.zeros((7, 599), np.int8)}, "levels but factors of shape"),
        ({"factors": np.ones((1, 600))}, r"levels but factors of shape \(1, 600\)"),
    ],
)
def test_indicators_are_checked(tmp_path, name, members, words):
    skip_bytes(name, members)
    path = tmp_path / name
    certain_pmf().save(path)
    rewrite(path, **members)
    with pytest.raises(ValueError, match=words):
        rj.load(path)
