"""Fits come out as they did before: what is kept of each is in ``goldens.json``.

These tests say that nothing changed, not that it is right; other tests do that. Where a result is
changed on purpose, ``python tests/goldens/record.py [name ...]`` writes it anew (see there).
"""

import json

import numpy as np
import pytest
from golden_fits import FITS, outcome
from record import PLACE, read, write

#: Relative difference that is no change. BLAS, NumPy and the compiler of another machine round
#: other sums, and the steps of a fit magnify that: with kernels of NumPy, OpenBLAS for processors
#: without AVX or NumPy without AVX, all of these fits stay below.
NEAR = 1e-6

#: Absolute difference of what is nothing but rounding, such as a probability that is zero.
NOTHING = 1e-9

#: Share by which the number of steps may differ: where no more can be gained than rounding, another
#: BLAS stops some steps sooner or later (Newton's on tables, 41 for 45) at the same model.
STEPS = 0.2


def changes(kept, found, where=""):
    """What differs, one line each: numbers by more than rounding, all else at all."""
    if isinstance(kept, dict) and isinstance(found, dict):
        lines = [f"{where}: {key!r} is missing" for key in kept.keys() - found.keys()]
        lines += [f"{where}: {key!r} is new" for key in found.keys() - kept.keys()]
        for key in kept.keys() & found.keys():
            lines += changes(kept[key], found[key], f"{where}/{key}")
        return sorted(lines)
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = enumerate(zip(kept, found, strict=True))
        return [line for n, pair in pairs for line in changes(*pair, f"{where}[{n}]")]
    if type(kept) is type(found) is float:
        alike = np.isclose(found, kept, rtol=NEAR, atol=NOTHING, equal_nan=True)
        return [] if alike else [f"{where}: {kept!r} became {found!r}"]
    if where.endswith("/stop/steps"):
        alike = abs(found - kept) <= STEPS * kept
    else:
        alike = type(kept) is type(found) and kept == found
    return [] if alike else [f"{where}: {kept!r} became {found!r}"]


@pytest.mark.parametrize("name", FITS)
def test_as_before(name, tmp_path):
    found = json.loads(json.dumps(outcome(name, tmp_path)))
    assert changes(read()[name], found) == []


def test_every_golden_belongs_to_a_fit():
    assert set(read()) == set(FITS)


@pytest.mark.parametrize("name", sorted(read()))
def test_a_change_of_any_number_is_seen(name):
    """Each golden can fail: one number a little off, one choice another, one thing gone."""
    kept = read()[name]
    for path, value in leaves(kept):
        if isinstance(value, bool):
            other = not value
        elif isinstance(value, float):
            other = value * (1 + 3 * NEAR) + 3 * NOTHING
        elif isinstance(value, int):
            other = 2 * value + 1 if path[-1] == "steps" else value + 1
        else:
            other = f"{value} "
        assert len(changes(kept, replaced(kept, path, other))) == 1, path
    first = next(iter(kept))
    assert changes(kept, {key: kept[key] for key in kept if key != first})


def leaves(kept, path=()):
    if isinstance(kept, dict | list):
        for key, value in kept.items() if isinstance(kept, dict) else enumerate(kept):
            yield from leaves(value, (*path, key))
    else:
        yield path, kept


def replaced(kept, path, value):
    if not path:
        return value
    copy = kept.copy()
    copy[path[0]] = replaced(kept[path[0]], path[1:], value)
    return copy


def test_what_is_written_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("record.PLACE", tmp_path / "goldens.json")
    write(json.loads(PLACE.read_text("utf-8")))
    assert (tmp_path / "goldens.json").read_text("utf-8") == PLACE.read_text("utf-8")
