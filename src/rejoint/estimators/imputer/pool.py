"""pool: estimates from several completed tables as one, by Rubin's rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t

from rejoint.arrays import FloatArray
from rejoint.text import cite


@dataclass(frozen=True, eq=False)
class PooledEstimate:
    """An estimate that allows for what is missing; arrays where several were pooled at once.

    Attributes
    ----------
    estimate : float or ndarray
        Mean of the estimates.
    std_error : float or ndarray
        Its standard error: that within tables, and that between them.
    low, high : float or ndarray
        Bounds of the confidence interval.
    df : float or ndarray
        Degrees of freedom of its t distribution.
    missing_information : float or ndarray
        Share of the information that is lost with the missing values.
    level : float
        Probability that the interval holds the truth.
    names : tuple of str, optional
        Names of the estimates, where they have any.

    Examples
    --------
    >>> pool([1.0, 1.2, 1.1], [0.04, 0.04, 0.04])
    1.1 ± 0.231 (90 % interval 0.709 to 1.49, 29 % of the information missing)
    """

    estimate: Any
    std_error: Any
    low: Any
    high: Any
    df: Any
    missing_information: Any
    level: float
    names: tuple[str, ...] | None = None

    def __getitem__(self, name: str) -> "PooledEstimate":
        """Return one of the estimates by its name."""
        if self.names is None or name not in self.names:
            raise KeyError(
                f"There is no estimate {cite(name)}; there are {self.names or 'no names'}."
            )
        at = self.names.index(name)
        fields = ("estimate", "std_error", "low", "high", "df", "missing_information")
        own: dict[str, Any] = {key: float(getattr(self, key)[at]) for key in fields}
        return PooledEstimate(**own, level=self.level)

    def __repr__(self) -> str:
        rows = [np.atleast_1d(x) for x in (self.estimate, self.std_error, self.low, self.high)]
        missing = np.atleast_1d(self.missing_information)
        lines = []
        for k in range(len(rows[0])):
            mean, error, low, high = (float(row[k]) for row in rows)
            name = f"{self.names[k]}: " if self.names else ""
            lines.append(
                f"{name}{mean:.4g} ± {error:.3g} ({self.level:.0%} interval {low:.3g} to "
                f"{high:.3g}, {missing[k]:.0%} of the information missing)".replace("%", " %")
            )
        return "\n".join(lines)


def pool(
    estimates: Sequence[Any], variances: Sequence[Any], *, level: float = 0.9, df: float = np.inf
) -> PooledEstimate:
    """Pool estimates from several completed tables by Rubin's rules.

    Parameters
    ----------
    estimates : sequence of floats, arrays, dicts or series
        What was computed on each table of ``JointImputer.impute(X, n_draws=...)``.
    variances : the same
        The squared standard error of each estimate, as if its table were complete.
    level : float
        Probability that the interval holds the truth.
    df : float
        Degrees of freedom of the estimate on a complete table, such as rows less coefficients;
        unlimited by default. With it the degrees of freedom are those of Barnard and Rubin (1999).

    Returns
    -------
    PooledEstimate
        With ``estimate``, ``std_error``, ``low``, ``high``, ``df`` and ``missing_information``.

    Examples
    --------
    The variance is the mean of the variances (0.04) and (1 + 1/3) times the variance of the
    estimates (0.01):

    >>> import rejoint as rj
    >>> pooled = rj.pool([1.0, 1.2, 1.1], [0.04, 0.04, 0.04])
    >>> round(pooled.std_error**2, 4), round(pooled.df, 1)
    (0.0533, 32.0)
    >>> rj.pool([{"slope": 2.0}, {"slope": 2.2}], [{"slope": 0.1}, {"slope": 0.1}])[
    ...     "slope"
    ... ].estimate
    2.1
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {cite(level)}.")
    names, values = _read("estimates", estimates)
    named, within = _read("variances", variances)
    if names != named or values.shape != within.shape:
        raise ValueError(
            f"There must be one variance for each estimate; got estimates of shape {values.shape} "
            f"and variances of shape {within.shape}" + (f", {names} and {named}." if names else ".")
        )
    if len(values) < 2:
        raise ValueError("pool needs estimates from two tables or more: impute(X, n_draws=20).")
    if not (np.isfinite(values).all() and np.isfinite(within).all() and (within >= 0).all()):
        raise ValueError("Estimates must be finite, and variances finite and not negative.")
    count = len(values)
    estimate, inside = values.mean(axis=0), within.mean(axis=0)
    between = (1.0 + 1.0 / count) * values.var(axis=0, ddof=1)
    total = inside + between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, between / total, 0.0)
        own = (count - 1) / np.maximum(share, 1e-150) ** 2
        if np.isfinite(df):
            observed = (df + 1.0) / (df + 3.0) * df * (1.0 - share)
            own = 1.0 / (1.0 / own + 1.0 / np.maximum(observed, 1e-150))
        missing = np.where(total > 0, share + (1.0 - share) * 2.0 / (own + 3.0), 0.0)
    error = np.sqrt(total)
    reach = t.ppf(0.5 + level / 2.0, own) * error
    parts: dict[str, Any] = {
        "estimate": estimate,
        "std_error": error,
        "low": estimate - reach,
        "high": estimate + reach,
        "df": own,
        "missing_information": missing,
    }
    if values.ndim == 1:
        parts = {key: float(value) for key, value in parts.items()}
    return PooledEstimate(**parts, level=level, names=names)


def _read(what: str, given: Sequence[Any]) -> tuple[tuple[str, ...] | None, FloatArray]:
    """Return names, if there are any, and numbers: one row for each table."""
    rows = list(given)
    if rows and all(isinstance(row, Mapping) for row in rows):
        keys = list(rows[0])
        if any(set(row) != set(keys) for row in rows):
            raise ValueError(f"The {what} of all tables must have the same names.")
        return tuple(map(str, keys)), np.array([[float(row[k]) for k in keys] for row in rows])
    names = None
    if rows and hasattr(rows[0], "index") and hasattr(rows[0], "to_numpy"):
        names = tuple(map(str, rows[0].index))
        rows = [row.reindex(rows[0].index).to_numpy() for row in rows]
    return names, np.asarray(rows, dtype=np.float64)
