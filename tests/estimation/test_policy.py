"""Policy: every tuned number is documented, used, and kept with the result."""

import inspect
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
from small_records import random_records

import rejoint as rj
from rejoint.estimation import Em, Policy, Variational, estimate

RECORDS = random_records(0, (3, 3, 3, 3), 200, rank=3, missing=0.1)
NAMES = [each.name for each in fields(Policy)]


def test_every_field_is_documented_by_the_comment_above_it():
    """Fields that belong together share one comment; headings of sections are none."""
    documented, comment = set(), False
    for line in map(str.strip, inspect.getsource(Policy).splitlines()):
        if line.startswith("#"):
            comment = not line.startswith("# --")
        elif (name := line.split(":")[0]) in NAMES:
            assert comment, f"{name} has no comment"
            documented.add(name)
        else:
            comment = False
    assert documented == set(NAMES)


def test_every_field_is_used():
    files = Path(rj.__file__).parent.rglob("*.py")
    used = set(re.findall(r"policy\.([a-z_]+)", "\n".join(map(Path.read_text, files))))
    assert [name for name in NAMES if name not in used] == []


def test_results_keep_their_policy():
    policy = Policy(growth_steps=3)
    assert estimate(RECORDS, 2, "ml", n_init=1, random_state=0, policy=policy).policy == policy
    assert estimate(RECORDS, 2, "ml", n_init=1, random_state=0).policy == Policy()
    scan = rj.scan(RECORDS, size=50, memory=0)
    assert estimate(scan, 2, "ml", n_init=1, random_state=0, policy=policy).policy == policy


def test_policies_are_values():
    assert hash(Policy(growth_steps=3)) == hash(Policy(growth_steps=3))
    assert Policy(growth_steps=3) != Policy() == Policy()
    with pytest.raises(FrozenInstanceError):
        Policy().growth_steps = 3
    lines = str(Policy(growth_steps=7)).splitlines()
    assert len(lines) == len(NAMES)
    assert "growth_steps = 7" in lines


def test_the_policy_given_is_the_one_of_named_solvers_only():
    """An object has its own."""
    policy = Policy(plain_steps=50)
    named, own = (estimate(RECORDS, 3, s, random_state=0, policy=policy) for s in ("ml", Em()))
    same = estimate(RECORDS, 3, Em(policy=policy), random_state=0, policy=policy)
    assert named.pmf == same.pmf
    assert named.stop == same.stop
    assert named.stop != own.stop


@pytest.mark.parametrize(
    ("solver", "policy"),
    [
        ("map", Policy(concentration_median=5.0)),
        ("bayes", Policy(concentration_share=1.0)),
        ("bayes", Policy(agreement=False)),
        (Variational(policy=Policy(concentration_median=5.0)), Policy()),
    ],
    ids=["map", "bayes", "agreement", "variational"],
)
def test_another_value_changes_the_fit(solver, policy):
    plain = Variational() if isinstance(solver, Variational) else solver
    one = estimate(RECORDS, 3, plain, n_init=2, random_state=0).pmf
    other = estimate(RECORDS, 3, solver, n_init=2, random_state=0, policy=policy).pmf
    assert not one.equals(other, tol=1e-9)
