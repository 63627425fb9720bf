"""Public data sets, each with its terms and citation, and the seven UCI sets of the paper."""

import math
from collections import Counter
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.datasets.catalog import (
    MOVIELENS,
    PAPER_RECIPES,
    Backend,
    Columns,
    as_frame,
    load_columns,
    read_packed,
)
from rejoint.text import cite, nearest


def adult(*, backend: Backend | None = None) -> Any:
    """Adult, or "Census Income": 48,842 persons, 15 columns, and the ``split`` of each row.

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
    """Heart disease: 13 findings of patients, and their diagnosis.

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


def youth_survey(*, backend: Backend | None = None) -> Any:
    """Youth Risk Behavior Survey: 13 answers of 2,500 pupils of US high schools, 5 % missing.

    A random sample of 2,500 of 13,583 rows; it comes with the package. ``texting`` counts days
    with texting at the wheel in 30 days, ``active`` and ``strength`` days with exercise and
    strength training in a week, ``tv`` hours on a school day (5: five or more), ``sleep`` hours in
    a school night (4: less than five, 10: ten or more). Some labels are shortened.

    Public domain (work of the US government). Centers for Disease Control and Prevention, 2013,
    in the form of the R package openintro.

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
    >>> rj.datasets.youth_survey(backend="pandas").shape
    (2500, 13)
    """
    return as_frame(_bundled("youth_survey"), backend)


def penguins(*, backend: Backend | None = None) -> Any:
    """Palmer penguins: species, island, four measures, sex and year of 344 penguins.

    Some measures and sexes are missing. It comes with the package. CC0. A. M. Horst, A. P. Hill,
    K. B. Gorman, "palmerpenguins", 2020, https://doi.org/10.5281/zenodo.3960218.

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
    >>> rj.datasets.penguins(backend="pandas").shape
    (344, 8)
    """
    return as_frame(_bundled("penguins"), backend)


def _bundled(name: str) -> Columns:
    """Columns of a file within the package."""
    return read_packed((files("rejoint.datasets") / "bundled" / f"{name}.csv.gz").read_bytes())


def _one_of(which: str, names: tuple[str, ...]) -> str:
    if which not in names:
        raise ValueError(f"which must be one of {', '.join(map(repr, names))}, not {cite(which)}.")
    return which


def movielens(
    name: str = "small2018_ratings", *, whole_stars: bool = False, backend: Backend | None = None
) -> Any:
    """Ratings of movies, half a star to five.

    GroupLens terms: any research use; acknowledge it in publications; may be handed on under
    the same terms; no commercial use without permission; no endorsement may be implied. Cite
    F. M. Harper, J. A. Konstan, "The MovieLens Datasets: History and Context", ACM Transactions
    on Interactive Intelligent Systems 5 (4), 2015, https://doi.org/10.1145/2827872.

    Parameters
    ----------
    name : str
        ``"small2018_ratings"`` (userId, movieId, rating, timestamp: 100,836 ratings) and
        ``"small2018_movies"`` (movieId, title, genres) are those of ``ml-latest-small``, release
        of September 2018. The others are only read from the folder of ``REJOINT_DATA``:
        ``"pool_ratings"``, ``"pool_users"`` and ``"pool_movies"`` of six releases put together,
        and user x movie tables cut from it, ``"action_list20"``, ``"animation_list20"`` and
        ``"romance_list20"``, or ``"action_top20"`` and so on.
    whole_stars : bool
        Round half stars up, as the paper does.
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    frame or dict of columns

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.datasets.movielens(backend="pandas").shape  # doctest: +SKIP
    (100836, 4)
    """
    if name not in MOVIELENS:
        raise ValueError(
            f"MovieLens has no table {cite(name)}, only {', '.join(map(repr, MOVIELENS))}."
            + nearest(name, MOVIELENS)
        )
    columns = load_columns(f"movielens_{name}")
    if whole_stars:
        wide = name.endswith("20")  # all but the first column are movies
        for rated in list(columns)[1:] if wide else ["rating"]:
            if rated not in columns:
                raise ValueError(f"whole_stars: {cite(name)} holds no ratings.")
            columns[rated] = [None if x is None else math.ceil(x) for x in columns[rated]]
    return as_frame(columns, backend)


# As public loaders of the same line of work have them. INCOME has seven of the eight categorical
# columns of Adult; which one is left out is not said: it is taken to be native-country.
PAPER_SETS = tuple(PAPER_RECIPES)
"""Names that :func:`paper_set` takes, in the order of the paper's table."""


class PaperSet(NamedTuple):
    """Features and labels of one of the paper's sets.

    Attributes
    ----------
    X : frame or dict of columns
        Discrete features.
    y : ndarray
        Labels.

    Examples
    --------
    >>> PaperSet({"a": ["x"]}, np.array(["yes"])).y
    array(['yes'], dtype='<U3')
    """

    X: Any
    y: NDArray[Any]


def paper_set(name: str, *, filled: bool = False, backend: Backend | None = None) -> PaperSet:
    """One of the seven sets of the paper's classification task.

    Parameters
    ----------
    name : {"income", "credit", "heart", "mushroom", "votes", "car", "nursery"}
        INCOME is Adult (both parts) without ``native-country`` and the columns of numbers;
        CREDIT is Statlog Australian, its eight discrete columns; HEART is Cleveland, its eight
        discrete columns, the label being 1 if ``num > 0``, else 0; MUSHROOM lacks
        ``veil-type``, which is constant.
    filled : bool
        Fill missing cells with the most frequent value of the column, as loaders of the same
        line of work do. By default they are left missing.
    backend : {"pandas", "polars", "pyarrow", "dict"}, optional
        As for :func:`adult`.

    Returns
    -------
    PaperSet
        ``X`` and ``y``. Terms and citations: see :func:`adult`, :func:`credit`, :func:`heart`,
        :func:`mushroom`, :func:`votes`, :func:`car`, :func:`nursery`.

    Examples
    --------
    >>> import rejoint as rj
    >>> X, y = rj.datasets.paper_set("heart", backend="pandas")  # doctest: +SKIP
    >>> X.shape, int(y.sum())  # doctest: +SKIP
    ((303, 8), 139)
    """
    if name not in PAPER_RECIPES:
        raise ValueError(
            f"The paper has no set {cite(name)}, only {', '.join(map(repr, PAPER_SETS))}."
            + nearest(name, PAPER_SETS)
        )
    recipe = PAPER_RECIPES[name]
    columns = load_columns(recipe["table"])
    y = np.array(columns.pop(recipe["label"]))
    if name == "heart":
        y = (y > 0).astype(int)
    dropped = recipe.get("dropped", ())
    chosen = recipe.get("columns") or [name for name in columns if name not in dropped]
    X = {column: columns[column] for column in chosen}
    return PaperSet(as_frame(_fill_with_modes(X) if filled else X, backend), y)


def _fill_with_modes(columns: Columns) -> Columns:
    modes = {name: Counter(x for x in cells if x is not None) for name, cells in columns.items()}
    return {
        name: [modes[name].most_common(1)[0][0] if x is None else x for x in cells]
        for name, cells in columns.items()
    }
