"""The seven UCI sets of the paper, and its splits: 70 % to learn, 10 % to choose by, 20 % to test.

``rejoint.datasets.paper_set`` says how each set is made. Missing cells are left missing.
"""

import numpy as np
import pandas as pd

import rejoint as rj

SETS = rj.datasets.PAPER_SETS

#: Best row of the paper's own method, and of its whole table (Table V).
PRINTED_CP = dict(zip(SETS, (0.171, 0.123, 0.138, 0.002, 0.042, 0.074, 0.061), strict=True))
PRINTED_BEST = dict(zip(SETS, (0.171, 0.123, 0.138, 0.000, 0.038, 0.026, 0.006), strict=True))


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, all text with None where missing, and the labels."""
    X, y = rj.datasets.paper_set(name, backend="pandas")
    return X.astype(object).map(str, na_action="ignore").where(X.notna(), None), y


def split(rows: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from, to choose by, and to test on, of one of the splits."""
    order = np.random.default_rng(number).permutation(rows)
    first, second = round(0.7 * rows), round(0.8 * rows)
    return order[:first], order[first:second], order[second:]
