"""Class profiles: how probable each level is overall and in each class, as a frame."""

from typing import Any

from rejoint.domain import Bin
from rejoint.pmf import LowRankPMF
from rejoint.records import Backend
from rejoint.records.export import choose_backend

__all__ = ["profile_frame"]


def profile_frame(pmf: LowRankPMF, backend: Backend | None = None) -> Any:
    """One row a level of a variable; one column for all records and one for each class.

    Examples
    --------
    >>> import rejoint as rj
    >>> domain = rj.Domain.of({"smoke": ["yes", "no"]})
    >>> profile_frame(rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]]], domain), "pandas")
                    overall  class 0  class 1
    variable level
    smoke    yes       0.41      0.9      0.2
             no        0.59      0.1      0.8
    """
    backend = choose_backend(backend)
    names, levels, shares = [], [], []
    for variable, factor in zip(pmf.domain, pmf.factors, strict=True):
        names += [variable.name] * len(variable)
        levels += [str(x) if isinstance(x, Bin) else x for x in variable.levels]
        shares += [[float(row @ pmf.weights), *row.tolist()] for row in factor]
    titles = ["overall", *(f"class {f}" for f in range(pmf.rank))]
    if backend == "pandas":
        import pandas as pd

        index = pd.MultiIndex.from_arrays([names, levels], names=["variable", "level"])
        return pd.DataFrame(shares, index=index, columns=titles)
    # Columns of these have one type: labels of several variables meet as text.
    columns = {"variable": names, "level": [str(level) for level in levels]}
    columns |= dict(zip(titles, map(list, zip(*shares, strict=True)), strict=True))
    if backend == "polars":
        import polars

        return polars.DataFrame(columns)
    import pyarrow

    return pyarrow.table(columns)
