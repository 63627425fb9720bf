"""JointClassifier: scikit-learn's contract, what it learns, what it says of rows."""

from dataclasses import replace

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import rejoint as rj
from rejoint.estimators import Conditional
from rejoint.solver import Limits

# Every check passes: there is no exemption to give a reason for.
EXEMPTIONS: dict[str, str] = {}
QUICK = Conditional(joint=0.1, strength=1.0, limits=Limits(max_steps=30, exact=-1.0))


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers as levels, unknown ones as holes
@parametrize_with_checks(
    [
        rj.JointClassifier(rank=6, solver=QUICK, n_init=1),
        rj.JointClassifier(rank=4, solver="map", n_init=1),
        rj.JointClassifier(solver=replace(QUICK, joint=0.0), n_init=1),
    ],
    expected_failed_checks=lambda estimator: EXEMPTIONS,
)
def test_scikit_learn(estimator, check):
    check(estimator)
