"""Saved models: bit by bit, all or nothing, and errors in words for everything else."""

import json
import os
import stat
import zipfile

import numpy as np
import pytest

import rejoint as rj
from rejoint import io


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
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file"):
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


def rewrite(path, **members):
    """Replace members of the archive: a dict is JSON, an array an array, None removes."""
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
        ({"meta": {"schema": 2}}, "schema version 2; this rejoint reads versions up to 1: update"),
        ({"meta": {"format": "other"}}, "holds 'other', not a rejoint.LowRankPMF"),
        ({"meta": {"domain": {}}}, r"truncated or corrupt \(its domain cannot be read"),
        ({"meta": b"{"}, "no readable meta.json"),
        ({"weights": None}, r"truncated or corrupt \(it has no array 'weights'\)"),
        ({"factors": np.ones((2, 2))}, r"levels but factors of shape \(2, 2\)"),
        ({"weights": np.ones(3, dtype=np.float32)}, "'weights' is float32, not float64 in C order"),
        ({"weights": np.array(["x", None], dtype=object)}, "'weights' is object, not float64"),
    ],
)
def test_what_is_inside_is_checked(tmp_path, members, words):
    path = tmp_path / "model.rejoint"
    random_pmf(mixed_labels()).save(path)
    rewrite(path, **members)
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
