"""Latent class models in print: counts, and the maxima of the likelihood that were published.

The counts are those of the books and papers named; every maximum has been found again by the
plain EM of ``test_golden``, which shares no code with the package.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

import rejoint as rj


@dataclass(frozen=True)
class Maximum:
    """What was published of a model; ``unit`` is that of the last digit of the likelihood."""

    log_likelihood: float
    unit: float
    deviance: float | None = None  # G^2 or L^2, twice the log of the likelihood ratio
    weights: tuple[float, ...] | None = None  # in decreasing order
    profile: tuple[tuple[float, ...], ...] | None = None  # share of the last level, (item, class)


@dataclass(frozen=True)
class Example:
    """A table of counts and the published maxima by number of classes."""

    source: str
    levels: dict[str, int]
    cells: np.ndarray  # (C, N), levels from 0
    counts: np.ndarray  # (C,)
    maxima: dict[int, Maximum]
    local: tuple[float, ...] = ()  # published likelihoods of local maxima, three classes

    @property
    def records(self) -> rj.Records:
        """One record for each cell, counting as often as it was seen."""
        domain = rj.Domain.of(self.levels)
        codes = self.cells.astype(np.int16)
        return rj.Records(domain, codes, self.counts.astype(np.float64))


def every_cell(*levels: int) -> np.ndarray:
    """All cells of a table, the last variable changing first."""
    return np.array(list(product(*map(range, levels))))


def seven_digits(*rows: int) -> np.ndarray:
    """Rows of seven levels, each written as a number."""
    return np.array([list(map(int, f"{row:07}")) for row in rows])


VALUES = Example(
    source=(
        "Role conflict: 216 respondents, four situations, answers particularistic (0) or "
        "universalistic (1). Counts: S. A. Stouffer and J. Toby (1951), American Journal of "
        "Sociology 56, 395-406; models: L. A. Goodman (1974), Biometrika 61, 215-231 "
        "(independence: L^2 = 81.08, 11 df; two classes: L^2 = 2.72, 6 df). Log-likelihoods: "
        "example 'values' of the R package poLCA (D. A. Linzer and J. B. Lewis (2011), Journal of "
        "Statistical Software 42(10))."
    ),
    levels={"A": 2, "B": 2, "C": 2, "D": 2},
    cells=every_cell(2, 2, 2, 2),
    counts=np.array([20, 2, 9, 2, 6, 1, 4, 1, 38, 7, 24, 6, 25, 6, 23, 42]),
    maxima={
        1: Maximum(-543.6498, 1e-4, deviance=81.08),
        2: Maximum(-504.4677, 1e-4, deviance=2.72),
        3: Maximum(-503.3011, 1e-4),
    },
)

CARCINOMA = Example(
    source=(
        "Seven pathologists, 118 slides of the uterine cervix, carcinoma seen (1) or not (0): A. "
        "Agresti (2002), Categorical Data Analysis, 2nd ed., Table 13.1, after J. R. Landis and "
        "G. G. Koch (1977), Biometrics 33, 363-374. Log-likelihoods: example 'carcinoma' of "
        "poLCA; three classes with G^2, sizes and profiles: its manual (version 1.4), section "
        "6.1."
    ),
    levels=dict.fromkeys("ABCDEFG", 2),
    cells=seven_digits(
        *(0, 100, 100000, 100001, 100100, 100101, 1000000, 1010101, 1100000, 1100001),
        *(1100100, 1100101, 1100111, 1101001, 1101101, 1101111, 1110101, 1110111, 1111101, 1111111),
    ),
    counts=np.array([34, 2, 6, 1, 4, 5, 2, 1, 2, 1, 2, 7, 1, 1, 2, 3, 13, 5, 10, 16]),
    maxima={
        2: Maximum(-317.2568, 1e-4),
        3: Maximum(
            -293.705,
            1e-3,
            deviance=15.26171,
            weights=(0.4447, 0.3736, 0.1817),
            profile=(
                (1.0000, 0.0573, 0.5128),
                (0.9809, 0.1379, 1.0000),
                (0.8575, 0.0000, 0.0000),
                (0.5862, 0.0000, 0.0576),
                (1.0000, 0.0551, 0.7506),
                (0.4764, 0.0000, 0.0000),
                (1.0000, 0.0000, 0.6307),
            ),
        ),
        4: Maximum(-289.2858, 1e-4),
    },
)

SURVEYS = Example(
    source=(
        "Attitudes to surveys, 1,202 white respondents of the General Social Survey of 1982: "
        "purpose (good, depends, waste), accuracy (mostly true, not true), understanding (good, "
        "fair or poor), cooperation (interested, cooperative, impatient or hostile). A. L. "
        "McCutcheon (1987), Latent Class Analysis, Tables 3.1 and 3.2. Log-likelihoods: example "
        "'gss82' of poLCA; the five maxima of three classes and the sizes at the highest: its "
        "manual (version 1.4), Table 1, where the highest is reached from 258 of 500 random "
        "starts."
    ),
    levels={"purpose": 3, "accuracy": 2, "understanding": 2, "cooperation": 3},
    cells=every_cell(3, 2, 2, 3),
    counts=np.array(
        [
            *(419, 35, 2, 71, 25, 5, 270, 25, 4, 42, 16, 5),
            *(23, 4, 1, 6, 2, 0, 43, 9, 2, 9, 3, 2),
            *(26, 3, 0, 1, 2, 0, 85, 23, 6, 13, 12, 8),
        ]
    ),
    maxima={
        1: Maximum(-2872.230, 1e-3, deviance=257.260),
        2: Maximum(-2783.268, 1e-3),
        3: Maximum(-2754.545, 1e-3, weights=(0.621, 0.207, 0.172)),
        4: Maximum(-2746.621, 1e-3),
    },
    local=(-2755.617, -2755.739, -2762.005, -2762.231),
)

EXAMPLES = {"values": VALUES, "carcinoma": CARCINOMA, "surveys": SURVEYS}
