"""Everyday files in the style of twenty countries, and numbers that do not add up.

Each file of everyday.json is to be read ("read": with these names, labels and numbers), to be
refused ("refuse": means, rates, different measures), or either, but never wrongly ("either").
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from rejoint.marginals import Marginals

FILES = json.loads(Path(__file__).with_name("everyday.json").read_text(encoding="utf-8"))


def read(folder, file):
    path = folder / file["file"]
    path.write_text(file["text"], encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Marginals.read(path)


def check(m, labels, values):
    (subset,) = m.subsets
    levels = [list(map(str, m.domain[name].levels)) for name in subset]
    axes = [next(i for i, x in enumerate(levels) if sorted(x) == sorted(k)) for k in labels]
    table = np.asarray(m[subset]).transpose(axes)
    for axis, (own, known) in enumerate(zip(axes, labels, strict=True)):
        table = np.take(table, [levels[own].index(label) for label in known], axis)
    if not m.counted[0]:
        table = table * np.sum(values)
    np.testing.assert_allclose(table, values, rtol=1e-6)


@pytest.mark.parametrize("file", FILES, ids=[file["file"] for file in FILES])
def test_an_everyday_file(tmp_path, file):
    m, words = None, ""
    try:
        m = read(tmp_path, file)
    except ValueError as error:
        words = str(error)
    if m is None:
        assert file["read"] != "read", words
        assert file["file"] in words or "Table" in words  # it says where
        return
    assert file["read"] != "refuse"
    check(m, file["labels"], file["values"])
    if "names" in file:
        assert sorted(m.domain.names) == sorted(file["names"])
