"""Exact joints, records with values removed at random, and tables made for examples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import Records


def remove_cells(
    data: Any,
    share: float,
    *,
    kinds: Mapping[Any, Kind] | None = None,
    levels: Mapping[Any, Sequence[Level]] | None = None,
    bins: Bins = None,
    not_applicable: NotApplicable = "auto",
    missing_level: Sequence[Any] = (),
    random_state: int | np.random.Generator | None = None,
) -> Records:
    """Remove values of records completely at random.

    Parameters
    ----------
    data : Records or anything that :meth:`Records.of` takes
        The records; they are not changed.
    share : float
        Probability that a value is removed, between 0 and 1.
    kinds, levels, bins, not_applicable, missing_level
        What is declared about columns; see :meth:`Records.of`.
    random_state : int, Generator or None
        Seed or source of the randomness.

    Returns
    -------
    Records
        The same records with missing values.

    Examples
    --------
    >>> import rejoint as rj
    >>> records = rj.Records.of({"a": ["x", "y"] * 500, "b": ["u", "v"] * 500})
    >>> fewer = rj.datasets.remove_cells(records, 0.3, random_state=0)
    >>> round(float((fewer.codes < 0).mean()), 2)
    0.3
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share is the probability that a cell is removed, 0 to 1; got {share}.")
    declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
    declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
    records = Records.of(data, **declared)
    rng = np.random.default_rng(random_state)
    gone = rng.random(records.codes.shape) < share
    return replace(records, codes=np.where(gone, records.codes.dtype.type(-1), records.codes))


_ASIA = ("asia", "smoke", "tub", "lung", "bronc", "either", "xray", "dysp")


def asia() -> LowRankPMF:
    """Exact joint of the Asia network of Lauritzen and Spiegelhalter (1988).

    Eight yes/no variables: a visit to Asia, smoking, tuberculosis, lung cancer, bronchitis,
    "tuberculosis or lung cancer" (``either``), a positive X-ray, and dyspnoea. All other
    variables are independent once ``tub``, ``lung`` and ``bronc`` are known, so the joint
    has rank 8 at most; the classes of the model are those eight states.

    Returns
    -------
    LowRankPMF
        The joint, with weights and factors computed from the published tables.

    References
    ----------
    S. L. Lauritzen, D. J. Spiegelhalter, "Local computations with probabilities on graphical
    structures and their application to expert systems", Journal of the Royal Statistical
    Society B 50 (2), 1988.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> p.rank
    8
    >>> round(p.prob({"lung": "yes"}, given={"smoke": "yes", "xray": "yes"}), 3)
    0.646
    """
    table = _asia_table()
    order = [_ASIA.index(name) for name in ("tub", "lung", "bronc")]
    rest = [axis for axis in range(len(_ASIA)) if axis not in order]
    slices = table.transpose(order + rest).reshape(8, *[2] * len(rest))
    weights = slices.reshape(8, -1).sum(axis=1)
    factors = []
    for axis in range(len(_ASIA)):
        if axis in order:
            states = np.unravel_index(np.arange(8), (2, 2, 2))[order.index(axis)]
            factors.append(np.eye(2)[:, states])
        else:
            others = tuple(1 + other for other, name in enumerate(rest) if name != axis)
            factors.append((slices.sum(axis=others) / weights[:, None]).T)
    return LowRankPMF(weights, factors, Domain.of({name: ["yes", "no"] for name in _ASIA}))


def _asia_table() -> NDArray[np.float64]:
    """Product of the published conditional tables; axes as in ``_ASIA``, levels yes, no."""
    a = _yes(0.01)
    s = _yes(0.5)
    t_a = _yes([0.05, 0.01])
    l_s = _yes([0.1, 0.01])
    b_s = _yes([0.6, 0.3])
    e_tl = _yes([[1.0, 1.0], [1.0, 0.0]])
    x_e = _yes([0.98, 0.05])
    d_eb = _yes([[0.9, 0.7], [0.8, 0.1]])
    return np.asarray(
        np.einsum("a,s,at,sl,sb,tle,ex,ebd->astlbexd", a, s, t_a, l_s, b_s, e_tl, x_e, d_eb)
    )


def _yes(probability: Any) -> NDArray[np.float64]:
    """Conditional table from the probabilities of "yes": the variable itself is the last axis."""
    yes = np.asarray(probability, dtype=np.float64)
    return np.stack([yes, 1.0 - yes], axis=-1)


def town_tables() -> Path:
    """Return the folder of six small tables, as a town might publish them.

    The town, its 21,500 adults and all numbers are invented. The tables agree with each other.
    Those of passes and ways of travel have multiples of 5, as if they were rounded. Education and
    work, for instance, are in no table together.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.read(rj.datasets.town_tables())
    >>> tables
    Marginals(6 tables of order 2, 3 over 7 variables, 21,500 records each)
    >>> tables["Work", "Pass"][2]
    array([210., 175., 920.])
    """
    return Path(str(files("rejoint.datasets") / "town"))


def town_downloads() -> Path:
    """Return the folder of the town's six tables as they might be downloaded.

    The numbers are those of :func:`town_tables`, in six formats: with titles, notes, flags, totals
    and percentages, as SDMX-CSV, PC-Axis and JSON-stat. Four cells are held back.

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.Marginals.read(rj.datasets.town_downloads())
    Marginals(6 tables of order 2, 3 over 7 variables, about 21,500 records each, 4 cells not known)
    """
    return Path(str(files("rejoint.datasets") / "town_downloads"))
