"""The catalog: where every data set comes from, its checksums, and how it is read."""

import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, get_args

from rejoint.datasets.fetch import (
    FetchError,
    SourceFile,
    fetch_file,
    offline_advice,
    read_data_folder,
)
from rejoint.pmf.to_frame import columns_to_frame
from rejoint.records.frames import choose_backend

Columns = dict[str, list[Any]]
Backend = Literal["pandas", "polars", "pyarrow", "dict"]
Rows = list[list[str]]


def read_packed(content: bytes) -> Columns:
    r"""Columns of a compressed CSV file with a header; empty fields are missing.

    Examples
    --------
    >>> import gzip
    >>> read_packed(gzip.compress(b"a,b\nx,1\n,2\n"))
    {'a': ['x', None], 'b': [1, 2]}
    """
    return _read_csv(gzip.decompress(content).decode())


def read_member(content: bytes, member: str) -> Columns:
    """Columns of one CSV file with a header within a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return _read_csv(archive.read(member).decode())


def read_lines(content: bytes, header: Sequence[str], separator: str | None = ",") -> Columns:
    r"""Columns of a file without a header, one row in each line; ``?`` is missing.

    Examples
    --------
    >>> read_lines(b"x, 1\n?, 2\n\n", ["a", "b"])
    {'a': ['x', None], 'b': [1, 2]}
    """
    return _to_columns(header, _split_lines(content, separator))


def read_adult(train: bytes, test: bytes, header: Sequence[str]) -> Columns:
    """Both parts of Adult: the test part has a comment in its first line and dots after labels."""
    rows = [[*row, "train"] for row in _split_lines(train, ",")]
    rows += [[*row[:-1], row[-1].rstrip("."), "test"] for row in _split_lines(test, ",")]
    return _to_columns(header, rows)


def _parse_cells(cells: Iterable[str]) -> list[Any]:
    """Cells as integers if all are, as numbers if all are, else as text; empty is None.

    Examples
    --------
    >>> _parse_cells(["1", "", "3"]), _parse_cells(["1", "2.5"]), _parse_cells(["1", "more"])
    ([1, None, 3], [1.0, 2.5], ['1', 'more'])
    """
    cells = list(cells)
    for kind in (int, float):
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def as_frame(columns: Columns, backend: str | None) -> Any:
    """Columns as a frame of the library asked for, or as the dict itself.

    Examples
    --------
    >>> as_frame({"a": ["x", None]}, "dict")
    {'a': ['x', None]}
    """
    if backend == "dict" or (backend is None and not any(map(find_spec, get_args(Backend)[:3]))):
        return columns
    return columns_to_frame(columns, choose_backend(backend))


def _read_csv(text: str) -> Columns:
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return _to_columns(header, rows)


def _split_lines(content: bytes, separator: str | None) -> Rows:
    lines = [line for line in content.decode().splitlines() if line and not line.startswith("|")]
    rows = [[cell.strip() for cell in line.split(separator)] for line in lines]
    return [["" if cell == "?" else cell for cell in row] for row in rows]


def _to_columns(header: Sequence[str], rows: Rows) -> Columns:
    return dict(zip(header, map(_parse_cells, zip(*rows, strict=True)), strict=True))


class CatalogEntry(NamedTuple):
    """A table: the checksum of its packed file, its public files, and how those are read.

    Examples
    --------
    >>> CATALOG["car"].sources[0].name
    'car.data'
    """

    sha256: str
    sources: tuple[SourceFile, ...] = ()
    read: Callable[..., Columns] = read_packed


def load_columns(name: str, catalog: Mapping[str, CatalogEntry] | None = None) -> Columns:
    """Columns of a table: from the data folder, the cache or the public source.

    Parameters
    ----------
    name : str
        Name of the packed file without its ending.
    catalog : mapping, optional
        Where the name is looked up.
    """
    entry = (CATALOG if catalog is None else catalog)[name]
    file = f"{name}.csv.gz"
    packed = read_data_folder(file, entry.sha256)
    if packed is not None:
        return read_packed(packed)
    if not entry.sources:
        raise FetchError(
            f"'{file}' was put together from several releases and has no public source of its "
            f"own. {offline_advice(file)}"
        )
    return entry.read(*(fetch_file(source, file) for source in entry.sources))


def _uci(sha256: str, read: Callable[..., Columns], *files: str) -> CatalogEntry:
    """A set of the UCI repository; ``files`` are the path and checksum of each file in turn."""
    root = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
    pairs = zip(files[::2], files[1::2], strict=True)
    sources = (SourceFile(path, checksum, root, "REJOINT_UCI_URL") for path, checksum in pairs)
    return CatalogEntry(sha256, tuple(sources), read)


_MOVIELENS_SMALL = SourceFile(
    "ml-latest-small.zip",
    "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
    "https://files.grouplens.org/datasets/movielens/",
    "REJOINT_GROUPLENS_URL",
)

_ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income", "split"),
)
_CAR = ("buying", "maint", "doors", "persons", "lug_boot", "safety", "class")
_HEART = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"),
    *("slope", "ca", "thal"),
)
_MUSHROOM = (
    *("class", "cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-attachment"),
    *("gill-spacing", "gill-size", "gill-color", "stalk-shape", "stalk-root"),
    *("stalk-surface-above-ring", "stalk-surface-below-ring", "stalk-color-above-ring"),
    *("stalk-color-below-ring", "veil-type", "veil-color", "ring-number", "ring-type"),
    *("spore-print-color", "population", "habitat"),
)
_NURSERY = (
    *("parents", "has_nurs", "form", "children", "housing", "finance", "social", "health"),
    "class",
)
_VOTES = (
    *("class", "handicapped-infants", "water-project-cost-sharing"),
    *("adoption-of-the-budget-resolution", "physician-fee-freeze", "el-salvador-aid"),
    *("religious-groups-in-schools", "anti-satellite-test-ban", "aid-to-nicaraguan-contras"),
    *("mx-missile", "immigration", "synfuels-corporation-cutback", "education-spending"),
    *("superfund-right-to-sue", "crime", "duty-free-exports"),
    "export-administration-act-south-africa",
)

CATALOG: dict[str, CatalogEntry] = {
    "adult": _uci(
        "cb5366ec4b668ce7fb7ac6e348827d5ded4b5cef4eb5682393e0976f61aaa888",
        partial(read_adult, header=_ADULT),
        "adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
    "credit_crx": _uci(
        "fdc5152f4b3a8f987a10c16061da43b83064ff13b30b6f9f865d01af4443eb9d",
        partial(read_lines, header=[f"A{n}" for n in range(1, 17)]),
        "credit-screening/crx.data",
        "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d",
    ),
    "credit_australian": _uci(
        "86c796a8c04b3a6232a482708cb427e17bc1ebd16e155041be808a22ddff5e31",
        partial(read_lines, header=[f"A{n}" for n in range(1, 16)], separator=None),
        "statlog/australian/australian.dat",
        "3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c",
    ),
    "heart_cleveland": _uci(
        "756dd011a0d33a646685d588d2af6dd3475e24522acf00f1fde264a1dd741ce9",
        partial(read_lines, header=(*_HEART, "num")),
        "heart-disease/processed.cleveland.data",
        "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    ),
    "heart_statlog": _uci(
        "ea2cba484e7d947708ebbca1371a1997e2171f99643f5d59dc958efab13116c4",
        partial(read_lines, header=(*_HEART, "class"), separator=None),
        "statlog/heart/heart.dat",
        "f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9",
    ),
    "mushroom": _uci(
        "c98a7434b918a9b4bc80bee30d34780d92e36c67d5d62ecc75a15bc045317c4c",
        partial(read_lines, header=_MUSHROOM),
        "mushroom/agaricus-lepiota.data",
        "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
    ),
    "votes84": _uci(
        "ae812349278219c948fdd5b6cfcf1011af191be77c8ccb3d804de60401fc0cb2",
        partial(read_lines, header=_VOTES),
        "voting-records/house-votes-84.data",
        "c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e",
    ),
    "car": _uci(
        "e078cdcd0cf330bcd73e587c95e8f10bf333e2426c6eee8b64f9860b0cb8249a",
        partial(read_lines, header=_CAR),
        "car/car.data",
        "b703a9ac69f11e64ce8c223c0a40de4d2e9d769f7fb20be5f8f2e8a619893d83",
    ),
    "nursery": _uci(
        "223573db9cbfbfc85eca62b337eb73c7d1a3f6ef496b6f82ae46fdd8c3cb359a",
        partial(read_lines, header=_NURSERY),
        "nursery/nursery.data",
        "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d",
    ),
    "movielens_small2018_ratings": CatalogEntry(
        "ca1ae26ddea68098001fd96d211d6eca0595c72ab039446ba595a8ea3ed9f1fc",
        (_MOVIELENS_SMALL,),
        partial(read_member, member="ml-latest-small/ratings.csv"),
    ),
    "movielens_small2018_movies": CatalogEntry(
        "77bbc325e67ecbf1b92bfb38bbf48d2c68f6cdd896889bf1163d59a9a9db48eb",
        (_MOVIELENS_SMALL,),
        partial(read_member, member="ml-latest-small/movies.csv"),
    ),
}

# Cut from a pool of six releases: these are only in a data folder.
CATALOG |= {
    f"movielens_{name}": CatalogEntry(sha256)
    for name, sha256 in {
        "pool_ratings": "e2bd4a00412af891c25fc10ac8e51739ef782e42623c504390ea54a9825615a9",
        "pool_users": "e439fc9c264d9a3c0b19398b0a06f520ad6e7c182061ce44890d3cc9be690a23",
        "pool_movies": "3a04d3f75e10ec236fa45b0a660a95e96c0a0850fdad4bf338d159b9c778a2d1",
        "action_list20": "a2855d9a8ceaf6012dcc9b31174550400c68a76049f090984ea0f3649ab6f72b",
        "action_top20": "96063b3103ede1710cfc23d19f3b42f9a192d13059c11500fe5fa6becf5cf3b7",
        "animation_list20": "e08e44b3f8125c3ac17c32894d34f8aab2aefba6f05955802bcde908ff6c45bb",
        "animation_top20": "e08e44b3f8125c3ac17c32894d34f8aab2aefba6f05955802bcde908ff6c45bb",
        "romance_list20": "9db900cd0921e75dfa2a25a7b1d31c5e64e503c0a4c3ad0c8a8021cf1b4969d3",
        "romance_top20": "ca02e6e64994c828e8c16016e99acab99e0e0815902f723ee4ed3abce7f485bb",
    }.items()
}

MOVIELENS = tuple(
    name.removeprefix("movielens_") for name in CATALOG if name.startswith("movielens_")
)
