"""MovieLens: ratings of movies."""

import math
from typing import Any

from rejoint.datasets.catalog import MOVIELENS, load_columns
from rejoint.datasets.parse import Backend, as_frame
from rejoint.text import nearest


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
            f"MovieLens has no table {name!r}, only {', '.join(map(repr, MOVIELENS))}."
            + nearest(name, MOVIELENS)
        )
    columns = load_columns(f"movielens_{name}")
    if whole_stars:
        wide = name.endswith("20")  # all but the first column are movies
        for rated in list(columns)[1:] if wide else ["rating"]:
            if rated not in columns:
                raise ValueError(f"whole_stars: {name!r} holds no ratings.")
            columns[rated] = [None if x is None else math.ceil(x) for x in columns[rated]]
    return as_frame(columns, backend)
