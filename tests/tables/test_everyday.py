"""Everyday files in the style of thirty countries, and numbers that do not add up.

Each file of everyday.json is to be read ("read": with these labels and numbers), or to be refused
("refuse": means, rates, different measures). Workbooks are given as the rows of their sheets.
Numbers that are null are not known.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from workbook import ods, xlsx

from rejoint.marginals import Marginals

FILES = json.loads(Path(__file__).with_name("everyday.json").read_text(encoding="utf-8"))


def read(folder, file):
    path = folder / file["file"]
    if "text" in file:
        path.write_text(file["text"], encoding="utf-8")
    else:
        made = ods if path.suffix == ".ods" else xlsx
        merged = [[tuple(each) for each in file["merged"]]] if "merged" in file else []
        path.write_bytes(made(file["sheets"], *merged))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Marginals.read(path)


def check(m, labels, values):
    (subset,) = m.subsets
    levels = [list(map(str, m.domain[name].levels)) for name in subset]
    axes = []
    for known in labels:
        same = [i for i, x in enumerate(levels) if sorted(x) == sorted(known) and i not in axes]
        assert same, (known, levels)
        axes.append(same[0])
    table = np.asarray(m[subset]).transpose(axes)
    for axis, (own, known) in enumerate(zip(axes, labels, strict=True)):
        table = np.take(table, [levels[own].index(label) for label in known], axis)
    values = np.array(values, dtype=float)
    there = ~np.isnan(values)
    if not m.counted[0]:
        table = table / table[there].sum() * values[there].sum()
    np.testing.assert_allclose(table[there], values[there], rtol=1e-6)


@pytest.mark.parametrize("file", FILES, ids=[file["file"] for file in FILES])
def test_an_everyday_file(tmp_path, file):
    m, words = None, ""
    try:
        m = read(tmp_path, file)
    except ValueError as error:
        words = str(error)
    if m is None:
        assert file["read"] == "refuse", words
        assert file["file"] in words  # it says where
        return
    assert file["read"] == "read"
    check(m, file["labels"], file["values"])
