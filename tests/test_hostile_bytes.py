"""Altered notes, checkpoints and packs: refused in words, before memory is taken."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rejoint as rj
from rejoint.cli import main
from rejoint.io.archive import write_archive
from rejoint.solver.checkpoint import Checkpoint
from rejoint.solver.solver import Run

STRANGE = [None, True, -1, 10**400, "x", [], {}, [None], {"a": {}}, [[]], 1e308]
NOTES = (
    "records", "survey_design", "missing", "source", "choice", "stop", "agreement", "interrupted",
    "seed", "log_likelihood", "tables", "fit", "rank_curve", "ratings", "target", "class_names",
    "classes_are_groups", "gaps",
)  # fmt: skip


def altered(path, key, value):
    """A model as text with one note that is strange."""
    plain = json.loads(path.read_text())
    plain["notes"] = {**plain.get("notes", {}), key: value}
    path.write_text(json.dumps(plain))


@pytest.mark.parametrize("key", NOTES)
def test_altered_notes_are_refused_or_shown(tmp_path, key, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    for value in STRANGE:
        rj.datasets.asia().save("a.json")
        altered(tmp_path / "a.json", key, value)
        try:
            rj.load("a.json")
        except ValueError:
            continue
        words = ["report", "a.json", "-o", "out.html"] if value == "x" else ["inspect", "a.json"]
        done = CliRunner().invoke(main, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), (key, value)


def test_notes_that_could_not_be_read_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="'records' of its notes is \"many\", expected a number"):
        rj.datasets.asia().save(tmp_path / "a.rejoint", notes={"records": "many"})
    assert list(tmp_path.iterdir()) == []


HEAD = {"format": "rejoint checkpoint", "version": 2, "identity": {}, "entries": {}}


def put_checkpoint(path, head=HEAD, arrays=None, packing=zipfile.ZIP_STORED):
    file = io.BytesIO()
    write_archive(file, head, arrays or {}, allow_nan=True)
    if packing != zipfile.ZIP_STORED:
        packed = io.BytesIO()
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w", packing) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        file = packed
    path.write_bytes(file.getvalue())


ENTRY = {"a": {"stop": "x", "levels": [2], "stacked": {"array": 0}, "objective": 0.0}}


@pytest.mark.parametrize(
    "change",
    [
        {"identity": None},
        {"identity": {"rank": 3}},
        {"entries": []},
        {"entries": {"a": []}},
        {"entries": {"a": {"b": {"c": {}}}}},
        {"entries": {"a": {"b": {"array": 7}}}},
        {"entries": {"a": {"b": {"array": -1}}}},
        {"entries": {"a": {"b": [[1]]}}},
        {"version": "2"},
    ],
)
def test_strange_checkpoints_are_refused(tmp_path, change):
    path = tmp_path / "fit.checkpoint"
    put_checkpoint(path, {**HEAD, **change})
    with pytest.raises(ValueError, match=r"not a checkpoint that can be read|of another fit"):
        Checkpoint(path, {"rank": "3"})


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_device_without_end_is_no_checkpoint():
    with pytest.raises(ValueError, match=r"not a checkpoint that can be read \(File is not a zip"):
        Checkpoint(Path("/dev/zero"))


def test_bombs_are_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "fit.checkpoint"
    head = {**HEAD, "entries": {"a": {"b": {"array": 0}}}}
    put_checkpoint(path, head, {"0": np.zeros(2_000_000)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="is compressed, which is not allowed"):
        Checkpoint(path)
    put_checkpoint(path, head, {"0": np.zeros(2)})
    path.write_bytes(
        path.read_bytes().replace(b"'shape': (2,), }  ", b"'shape': (2000000000,)"[:18])
    )
    with pytest.raises(ValueError, match="not a checkpoint that can be read"):
        Checkpoint(path)
    path.write_bytes(b"PK\x03\x04" + b"[" * 100_000)
    with pytest.raises(ValueError, match="not a checkpoint that can be read"):
        Checkpoint(path)


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY["a"],
        {**ENTRY["a"], "residual": 0.0, "error": 0.0},
        {**ENTRY["a"], "residual": 0.0, "error": 0.0, "stop": "tolerance", "levels": [9]},
        {**ENTRY["a"], "residual": "x", "error": 0.0, "history": 3, "solver": ""},
    ],
)
def test_entries_that_are_no_runs_are_refused(tmp_path, entry):
    path = tmp_path / "fit.checkpoint"
    put_checkpoint(path, {**HEAD, "entries": {"a": entry}}, {"0": np.ones((3, 2))})
    with pytest.raises(ValueError, match="not a checkpoint that can be read"):
        Checkpoint(path).parse("a", Run.thaw)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": "3"}, "'rows' of meta.json"),
        ({"rows": 10**18}, "does not have"),
        ({"type": "O"}, "'type' of meta.json"),
        ({"domain": {}}, "its domain cannot be read"),
        ({"weighted": True}, r"weight\.bin"),
        ({"design": {"records": []}}, "'records' of 'survey_design'"),
    ],
)
def test_strange_packs_are_refused(tmp_path, change, words):
    place = tmp_path / "pack"
    rj.scan(lambda: iter([{"a": [0, 1, 2]}])).pack(place)
    head = json.loads((place / "meta.json").read_text())
    (place / "meta.json").write_text(json.dumps({**head, **change}))
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        list(rj.scan(place))


def test_codes_of_a_pack_must_be_levels(tmp_path):
    place = tmp_path / "pack"
    rj.scan(lambda: iter([{"a": [0, 1, 2]}])).pack(place)
    (place / "codes.bin").write_bytes(b"\x00\x01\x7f")
    with pytest.raises(ValueError, match="codes that are no levels"):
        list(rj.scan(place))
