"""Sets of the UCI Machine Learning Repository; each says its terms and how to cite it.

The examples need the files: the tests run them where ``REJOINT_DATA`` is set.
"""

from typing import Any, Literal

from rejoint.datasets.catalog import load_columns
from rejoint.datasets.parse import Backend, as_frame


def adult(*, backend: Backend | None = None) -> Any:
    """Adult, or "Census Income": 48,842 persons, 15 columns, and which ``split`` a row is of.

    Missing: 6,465 cells of ``workclass``, ``occupation`` and ``native-country``. CC BY 4.0.
    B. Becker, R. Kohavi, "Adult", UCI Machine Learning Repository, 1996,
    https://doi.org/10.24432/C5XW20.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        By default the first of the libraries that is installed; "dict" is a dict of lists with
        None where missing.

    Returns
    -------
    frame or dict of columns
        Rows in the order of the original files, train before test.

    Examples
    --------
    >>> import rejoint as rj
    >>> adult = rj.datasets.adult(backend="pandas")  # doctest: +SKIP
    >>> adult.shape, int((adult["income"] == ">50K").sum())  # doctest: +SKIP
    ((48842, 16), 11687)
    """
    return as_frame(load_columns("adult"), backend)


def car(*, backend: Backend | None = None) -> Any:
    """Car Evaluation: the complete grid of six properties, and how acceptable the car is.

    CC BY 4.0. M. Bohanec, "Car Evaluation", UCI Machine Learning Repository, 1988,
    https://doi.org/10.24432/C5JP48.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.car(backend="pandas").shape  # doctest: +SKIP
    (1728, 7)
    """
    return as_frame(load_columns("car"), backend)


def credit(
    which: Literal["australian", "crx"] = "australian", *, backend: Backend | None = None
) -> Any:
    """Credit approval: 690 applications for credit cards, names and values disguised.

    CC BY 4.0. R. Quinlan, "Statlog (Australian Credit Approval)", UCI Machine Learning
    Repository, https://doi.org/10.24432/C59012; R. Quinlan, "Credit Approval", UCI Machine
    Learning Repository, 1987, https://doi.org/10.24432/C5FS30.

    Parameters
    ----------
    which : {"australian", "crx"}
        The Statlog form, codes only, missing values filled by the donor (class ``A15``); or the
        original one with 67 missing cells (class ``A16``).
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> crx = rj.datasets.credit("crx", backend="pandas")  # doctest: +SKIP
    >>> crx.shape, int(crx.isna().sum().sum())  # doctest: +SKIP
    ((690, 16), 67)
    """
    return as_frame(load_columns(f"credit_{_one_of(which, ('australian', 'crx'))}"), backend)


def heart(
    which: Literal["cleveland", "statlog"] = "cleveland", *, backend: Backend | None = None
) -> Any:
    """Heart disease: 13 findings of patients, and what was found in the end.

    CC BY 4.0. A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano, "Heart Disease", UCI Machine
    Learning Repository, 1989, https://doi.org/10.24432/C52P4X; "Statlog (Heart)", UCI Machine
    Learning Repository, https://doi.org/10.24432/C57303.

    Parameters
    ----------
    which : {"cleveland", "statlog"}
        303 patients, six cells missing, ``num`` 0 (none) to 4; or 270 of them, ``class`` 1
        (absent) or 2 (present).
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.heart(backend="pandas").shape  # doctest: +SKIP
    (303, 14)
    """
    return as_frame(load_columns(f"heart_{_one_of(which, ('cleveland', 'statlog'))}"), backend)


def mushroom(*, backend: Backend | None = None) -> Any:
    """Mushroom: 8,124 descriptions of gilled mushrooms, edible (e) or poisonous (p).

    Missing: 2,480 cells of ``stalk-root``; ``veil-type`` is constant. CC BY 4.0. "Mushroom", UCI
    Machine Learning Repository, 1987, https://doi.org/10.24432/C5959T.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.mushroom(backend="pandas").shape  # doctest: +SKIP
    (8124, 23)
    """
    return as_frame(load_columns("mushroom"), backend)


def nursery(*, backend: Backend | None = None) -> Any:
    """Nursery: the complete grid of eight properties of applicants, and their ranking.

    CC BY 4.0. V. Rajkovic, "Nursery", UCI Machine Learning Repository, 1997,
    https://doi.org/10.24432/C5P88W.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.nursery(backend="pandas").shape  # doctest: +SKIP
    (12960, 9)
    """
    return as_frame(load_columns("nursery"), backend)


def votes(*, backend: Backend | None = None) -> Any:
    """Congressional Voting Records of 1984: 16 votes of 435 representatives, and their party.

    Missing: 392 votes where neither yea nor nay was recorded. CC BY 4.0. "Congressional Voting
    Records", UCI Machine Learning Repository, 1987, https://doi.org/10.24432/C5C01P.

    Parameters
    ----------
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.votes(backend="pandas").shape  # doctest: +SKIP
    (435, 17)
    """
    return as_frame(load_columns("votes84"), backend)


def _one_of(which: str, names: tuple[str, ...]) -> str:
    if which not in names:
        raise ValueError(f"which must be one of {', '.join(map(repr, names))}, not {which!r}.")
    return which
