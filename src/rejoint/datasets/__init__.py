"""Data sets: joints that are known exactly, and public sets, most of them downloaded once.

simulate     asia: an exact joint; remove_cells: values removed at random; town_tables: six tables
public_sets  youth_survey, penguins: public sets in the package; adult, car, ...: public sets;
             paper_set: seven of them as the paper has them
catalog      where every file comes from, its checksums, and how it is read
fetch        the data folder, the cache, the download

A set is looked for in the folder that the environment variable ``REJOINT_DATA`` names (as
``car.csv.gz`` and so on), then in the cache (``REJOINT_CACHE``, or the user's cache folder), then
at its public source, from which it goes into the cache. Checksums are always compared.
``REJOINT_UCI_URL`` and ``REJOINT_GROUPLENS_URL`` name mirrors of the sources.
"""

from rejoint.datasets.fetch import FetchError
from rejoint.datasets.public_sets import (
    PAPER_SETS,
    PaperSet,
    adult,
    car,
    credit,
    heart,
    movielens,
    mushroom,
    nursery,
    paper_set,
    penguins,
    votes,
    youth_survey,
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
    "penguins",
    "remove_cells",
    "town_downloads",
    "town_tables",
    "votes",
    "youth_survey",
]
