"""scikit-learn takes a second to import: it is loaded when an estimator is used, not before."""

import subprocess
import sys

import pytest

LOADED = "; import sys; sys.exit('sklearn' in sys.modules)"


def is_loaded_after(code):
    return subprocess.run([sys.executable, "-c", code + LOADED], check=False).returncode == 1


@pytest.mark.parametrize(
    "code",
    [
        "import rejoint",
        "import rejoint.estimators; rejoint.estimate",
        "from rejoint.estimators import ClassifierPolicy, TraitPolicy",
        # What the commands impute and recommend use of estimators.
        "from rejoint.estimators.imputer.fill import fill",
        "from rejoint.estimators.recommender.best_set import best_set",
    ],
)
def test_not_loaded(code):
    assert not is_loaded_after(code)


@pytest.mark.parametrize(
    "command",
    ["ask", "fit", "fit_target", "fit_ratings", "impute", "predict", "recommend", "sample"],
)
def test_not_loaded_by_commands(command):
    assert not is_loaded_after(f"import rejoint.cli, rejoint.cli.{command}")


def test_loaded_with_an_estimator():
    assert is_loaded_after("import rejoint; rejoint.JointPMF")


def test_names_that_do_not_exist():
    import rejoint.estimators

    with pytest.raises(AttributeError, match=r"'rejoint\.estimators' has no attribute 'JointPDF'"):
        rejoint.estimators.JointPDF  # noqa: B018
