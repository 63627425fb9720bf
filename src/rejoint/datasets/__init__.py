"""Data sets: joints that are known exactly, and public sets that are downloaded once.

simulate   asia: an exact joint; remove_cells: values removed at random; town_tables: six tables
uci        sets of the UCI Machine Learning Repository
movielens  MovieLens ratings
paper_set  seven UCI sets as the paper uses them
catalog    where every file comes from, its checksums, how it is read
fetch      the data folder, the cache, the download
parse      files to columns, columns to frames

A set is looked for in the folder that the environment variable ``REJOINT_DATA`` names (as
``car.csv.gz`` and so on), then in the cache (``REJOINT_CACHE``, or the user's cache folder), then
at its public source, from which it goes into the cache. Checksums are always compared.
``REJOINT_UCI_URL`` and ``REJOINT_GROUPLENS_URL`` name mirrors of the sources.
"""

from rejoint.datasets.fetch import FetchError
from rejoint.datasets.paper_set import PAPER_SETS, PaperSet, paper_set
from rejoint.datasets.public_sets import (
    adult,
    car,
    credit,
    heart,
    movielens,
    mushroom,
    nursery,
    votes,
)
from rejoint.datasets.simulate import asia, remove_cells, town_downloads, town_tables

__all__ = [
    "PAPER_SETS",
    "FetchError",
    "PaperSet",
    "adult",
    "asia",
    "car",
    "credit",
    "heart",
    "movielens",
    "mushroom",
    "nursery",
    "paper_set",
    "remove_cells",
    "town_downloads",
    "town_tables",
    "votes",
]
