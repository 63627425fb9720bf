"""Which of scikit-learn's checks are part of all tests; ``make sklearn`` runs all of them."""

import os

ALL = os.environ.get("REJOINT_SKLEARN_CHECKS") == "all"


def checked(first, *others):
    """Estimators to check: one of each kind, and its other settings where all checks run."""
    return [first, *others] if ALL else [first]
