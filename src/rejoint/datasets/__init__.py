"""Small worlds with a known joint, ways to spoil data, and data sets that the field knows.

worlds     joints that are known exactly
holes      cells knocked out at random
uci        sets of the UCI Machine Learning Repository
ratings    MovieLens
protocol   seven UCI sets as the paper takes them
catalogue  where every file comes from, and its checksum
fetching   the data folder, the cache, the network
parsing    files to columns, columns to frames

A set is looked for, in this order, in the folder that the environment variable ``REJOINT_DATA``
names (``car.csv.gz`` and so on), in the cache (``REJOINT_CACHE``, or the user's cache folder) and
at its public source, from which it goes into the cache. Checksums are always compared.
``REJOINT_UCI_URL`` and ``REJOINT_GROUPLENS_URL`` name mirrors of the sources.
"""

from rejoint.datasets.fetch import FetchError
from rejoint.datasets.movielens import movielens
from rejoint.datasets.paper_set import PAPER_SETS, PaperSet, paper_set
from rejoint.datasets.simulate import asia, remove_cells
from rejoint.datasets.uci import adult, car, credit, heart, mushroom, nursery, votes

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
    "votes",
]
