"""Random files of many layouts: none is read wrongly in silence, nearly all are read."""

import os
import warnings

import numpy as np
import pytest
from grammar import make

from rejoint.marginals import Marginals
from rejoint.marginals.vocabulary import plain_text

#: All 500 by ``make tables``; a part of them in the quick suite.
FILES = int(os.environ.get("REJOINT_TABLE_FILES", "120"))


def judge(made, folder):
    """Return "read", "refused" or what is wrong."""
    path = folder / made.name
    path.write_bytes(made.content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = Marginals.read(path)
    except ValueError as error:
        return "refused", str(error)
    finally:
        path.unlink()
    found = {plain_text(name): name for name in m.domain.names}
    for name, known in zip(made.names, made.labels, strict=True):  # named by its labels
        said = [n for n in m.domain.names if n.split("/")[:2] == list(known[:2])]
        if plain_text(name) not in found and said:
            found[plain_text(name)] = found.pop(plain_text(said[0]))
    if len(m) != 1 or set(found) != set(map(plain_text, made.names)):
        return "wrong", f"subsets {m.subsets} of {made.names}"
    own = [found[plain_text(name)] for name in made.names]
    table = m[tuple(own)]
    for axis, (name, known) in enumerate(zip(own, made.labels, strict=True)):
        levels = [str(level) for level in m.domain[name].levels]
        if sorted(levels) != sorted(known):
            return "wrong", f"levels of {name}: {levels}"
        table = np.take(table, [levels.index(label) for label in known], axis)
    there = ~np.isnan(made.values)
    slack = made.tolerance * max(float(made.values[there].max()), 1e-12)
    if not np.allclose(table[there], made.values[there], rtol=made.tolerance, atol=slack):
        return "wrong", f"numbers {table.ravel()[:6]} for {made.values.ravel()[:6]}"
    if bool(m.counted[0]) is made.shares:
        return "wrong", "counts for shares"
    return "read", ""


@pytest.mark.filterwarnings("ignore")
def test_random_files(tmp_path):
    verdicts = []
    for seed in range(FILES):
        made = make(seed)
        verdict, why = judge(made, tmp_path)
        assert verdict != "wrong", f"file {seed}: {why} ({made.story})"
        verdicts.append(verdict)
    assert verdicts.count("read") >= 0.9 * FILES
