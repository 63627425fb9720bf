"""scikit-learn takes a second to import: it is loaded when an estimator is used, not before."""

import subprocess
import sys

import pytest

COMMANDS = ("ask", "fit", "fit_target", "fit_ratings", "impute", "predict", "recommend", "sample")
STEPS = [
    "import rejoint",
    "import rejoint.estimators; rejoint.estimate",
    "from rejoint.estimators import ClassifierPolicy, TraitPolicy",
    # What the commands impute and recommend use of estimators.
    "from rejoint.estimators.imputer.fill import fill",
    *(f"import rejoint.cli.{command}" for command in COMMANDS),
]


def loaded_by(steps):
    """The first step that loads scikit-learn, in a process of its own; nothing where none does."""
    checked = (f"{step}\nif 'sklearn' in sys.modules: sys.exit({step!r})" for step in steps)
    code = "\n".join(["import sys", *checked])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stderr.strip()


def test_not_loaded():
    assert loaded_by(STEPS) == ""


def test_loaded_with_an_estimator():
    assert loaded_by(["import rejoint", "rejoint.JointPMF"]) == "rejoint.JointPMF"


def test_names_that_do_not_exist():
    import rejoint.estimators

    with pytest.raises(AttributeError, match=r"'rejoint\.estimators' has no attribute 'JointPDF'"):
        rejoint.estimators.JointPDF  # noqa: B018
