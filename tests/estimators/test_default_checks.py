"""scikit-learn's checks on estimators as they are by default.

Most fits of a default take seconds, so that only checks of very small data are part of all tests;
``make sklearn`` runs all of them, at the oldest scikit-learn that is supported and at the newest.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import ALL

import rejoint as rj

#: Checks that are quick whatever the estimator.
QUICK = {
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimators_empty_data_messages",
    "check_fit1d",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
}

TABLE = "predict of a table is a table: a number for every item of a user, not one for the row"

ROWS = "the columns of a frame are user, item and rating, unless columns='items' says otherwise"

#: For each estimator the checks that it cannot pass, and why.
EXEMPTIONS = {
    "JointRecommender": {
        "check_dataframe_column_names_consistency": ROWS,
        "check_estimator_sparse_array": TABLE,
        "check_estimator_sparse_matrix": TABLE,
    }
}


def exempt(estimator):
    return EXEMPTIONS.get(type(estimator).__name__, {})


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers as levels, unknown ones as missing
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [rj.JointPMF(), rj.JointImputer(), rj.JointClassifier(), rj.JointRecommender()],
    expected_failed_checks=exempt,
)
def test_scikit_learn_by_default(estimator, check):
    if not ALL and check.func.__name__ not in QUICK:
        pytest.skip("it takes long: make sklearn")
    check(estimator)


def test_exemptions_have_reasons():
    assert all(len(why) > 20 for checks in EXEMPTIONS.values() for why in checks.values())
