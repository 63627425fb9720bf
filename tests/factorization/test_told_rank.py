"""A rank that is told is kept: what it misses is said, and nothing that tables have is excluded."""

import sys
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main
from rejoint.factorization.fit_tables import lacks_mass


def shares_of(joint, order):
    names = [f"x{n}" for n in range(joint.ndim)]
    return {
        tuple(names[n] for n in s): joint.sum(axis=tuple(set(range(joint.ndim)) - set(s)))
        for s in combinations(range(joint.ndim), order)
    }


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_a_rank_that_misses_says_by_how_much_and_what_meets_the_tables():
    tables = rj.Marginals.from_tables({("smoke", "lung"): [[90, 110], [10, 790]]})
    result = rj.factorize(tables, rank=1, random_state=0)
    assert result.pmf.rank == 1
    distance = result.misfits["smoke", "lung"]
    assert (
        f"Rank 1 misses the tables: {distance:.2g} of the mass of (smoke, lung) is in other "
        "cells. Leave out rank= to meet them with more classes." in str(result.stop)
    )
    met = rj.factorize(tables, random_state=0)
    assert max(met.misfits.values()) <= 1e-6
    assert "misses" not in str(met.stop)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_a_rank_that_meets_the_tables_says_nothing():
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    result = rj.factorize(rj.Marginals.from_pmf(truth, order=3), rank=2, random_state=0)
    assert "misses" not in str(result.stop)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_noise_alone_is_no_miss_but_a_low_rank_is():
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    counts = rj.Marginals.count(truth.sample(2000, random_state=0), order=3)
    assert "misses" not in str(rj.factorize(counts, rank=2, random_state=0).stop)
    said = str(rj.factorize(counts, rank=1, random_state=0).stop)
    assert "Rank 1 misses the tables" in said
    assert "come closer to them" in said


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_rounding_is_no_miss():
    truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    tables = {
        names: 5 * np.round(10_000 * truth.marginal(names) / 5)
        for names in combinations(truth.domain.names, 3)
    }
    marginals = rj.Marginals.from_tables(tables, rounded="nearest 5")
    assert "misses" not in str(rj.factorize(marginals, rank=2, random_state=0).stop)
    assert "misses" in str(rj.factorize(marginals, rank=1, random_state=0).stop)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
@pytest.mark.parametrize(("seed", "order"), [(2, 2), (8, 2), (8, 3), (9, 2), (11, 2)])
def test_shares_that_are_missed_keep_their_mass(monkeypatch, seed, order):
    joint = np.random.default_rng(seed).dirichlet(np.full(81, 0.15)).reshape(3, 3, 3, 3)
    marginals = rj.Marginals.from_tables(shares_of(joint, order))
    result = rj.factorize(marginals, rank=2, random_state=0)
    monkeypatch.setattr(
        sys.modules["rejoint.factorization.factorize"], "lift_seen", lambda found, *_: found
    )
    before = rj.factorize(marginals, rank=2, random_state=0)
    assert lacks_mass(before.pmf, marginals)
    assert not lacks_mass(result.pmf, marginals)
    assert result.pmf.rank == 2
    assert max(result.misfits.values()) <= max(before.misfits.values()) + 1e-4
    assert "Leave out rank=" in str(result.stop)


def test_the_command_line_speaks_of_its_option(tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("smoke,lung,n\nyes,yes,90\nyes,no,110\nno,yes,10\nno,no,790\n")
    output = str(tmp_path / "two.rejoint")
    done = CliRunner().invoke(main, ["fit-tables", str(file), "-o", output, "--rank", "1"])
    assert done.exit_code == 0, done.output
    assert "Leave out --rank to meet them" in " ".join(done.output.split())
