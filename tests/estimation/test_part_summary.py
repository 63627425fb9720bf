"""The first look at records that are read part by part: sums, and which values occur together."""

import warnings
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from small_records import random_records

import rejoint as rj
from rejoint.estimation import estimate, part_summary
from rejoint.estimation.data import InMemory
from rejoint.estimation.part_summary import add_up, summarize_part

FULL = random_records(0, (2, 2, 2, 2), 400, rank=2)
REMARK = "No record contains both of: x0 and x3"


def split_forms(complete=()):
    """Half of the records lack x0, the others x3, but for some that are complete."""
    codes = np.array(FULL.codes)
    codes[:200, 0] = -1
    codes[200:, 3] = -1
    codes[list(complete)] = FULL.codes[list(complete)]
    return rj.Records(FULL.domain, codes)


def write_csv(path, records):
    lines = [",".join(records.names)]
    lines += [
        ",".join("" if value is None else str(value) for value in row.values())
        for row in records.rows()
    ]
    path.write_text("\n".join(lines) + "\n")


def sources(folder, records):
    """The same records from everywhere."""
    write_csv(folder / "all.csv", records)
    (folder / "parts").mkdir()
    halves = [rj.Records(records.domain, records.codes[at : at + 200]) for at in (0, 200)]
    for k, half in enumerate(halves):
        write_csv(folder / "parts" / f"{k}.csv", half)
    many = rj.scan(records, size=7, memory=0)
    return {
        "records": records,
        "a file": rj.read(folder / "all.csv"),
        "a scan of a file": rj.scan(folder / "all.csv"),
        "a scan of a folder": rj.scan(folder / "parts"),
        "a scan of a file beyond memory": rj.scan(folder / "all.csv", memory=0),
        "a scan of a folder beyond memory": rj.scan(folder / "parts", memory=0),
        "many parts beyond memory": many,
    }


def remarks(data, **options):
    """What a fit warns of, and its choice."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = estimate(data, 2, "ml", n_init=1, random_state=0, **options)
    return [str(w.message) for w in caught if issubclass(w.category, rj.Remark)], result.choice


def test_the_same_remark_from_every_source(tmp_path):
    found = {name: remarks(data) for name, data in sources(tmp_path, split_forms()).items()}
    for name, (said, choice) in found.items():
        assert len(said) == 1, name
        assert said[0].startswith(REMARK), name
        assert choice.endswith(said[0]), name
        assert (said, choice) == found["records"], name


@pytest.mark.parametrize("row", [0, 199, 200, 399])
def test_a_complete_record_anywhere_silences_it(tmp_path, row):
    for name, data in sources(tmp_path, split_forms([row])).items():
        said, choice = remarks(data)
        assert said == [], name
        assert "No record" not in choice, name


def test_records_that_together_hold_all_pairs_are_no_concern():
    codes = np.array(FULL.codes)
    for k in range(4):
        codes[k::4, k] = -1
    records = rj.Records(FULL.domain, codes)
    assert remarks(records)[0] == remarks(rj.scan(records, size=7, memory=0))[0] == []


def test_a_resumed_fit_gives_the_same_remark(tmp_path):
    scan, path = rj.scan(split_forms(), size=50, memory=0), tmp_path / "fit.checkpoint"
    first, again = (remarks(scan, checkpoint=path) for _ in range(2))
    assert first == again
    assert first[0][0].startswith(REMARK)


def test_beyond_too_many_patterns_nothing_is_said(monkeypatch):
    monkeypatch.setattr(part_summary, "MOST_PATTERNS", 1)
    assert remarks(rj.scan(split_forms(), size=50, memory=0))[0] == []


def test_parts_without_any_value():
    """Or with records of no weight only: they add nothing."""
    records = split_forms()
    codes = np.vstack([np.full((50, 4), -1), records.codes, np.full((75, 4), -1)])
    weight = np.repeat([1.0, 1.0, 0.0], [50, 400, 75])
    padded = rj.Records(records.domain, codes, weight)
    found = add_up(
        rj.scan(padded, size=25).map(partial(summarize_part, seed=0, size=1000, budget=0))
    )
    assert found.rows == 525
    assert found.mass == 400
    assert found.patterns.tolist() == [[False, True, True, True], [True, True, True, False]]
    assert len(found.sample) == 400


def test_summaries_add_up_in_any_order():
    parts = [part for part in split_forms([399]).chunks(150)]
    looks = [summarize_part(part, seed=0, size=60, budget=0) for part in parts]
    sums = [add_up(looks[k] for k in order) for order in permutations(range(3))]
    for found in sums:
        assert found.rows == 400
        assert sorted(found.keys) == sorted(sums[0].keys)
        np.testing.assert_array_equal(found.totals, InMemory.of(split_forms([399])).level_totals)
        assert found.patterns.tolist() == [[True] * 4]
