"""Data sets from the data folder, the cache and the network; the network is a server in here."""

import doctest
import gzip
import hashlib
import io
import os
import threading
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import rejoint as rj
from rejoint.datasets import FetchError, public_sets
from rejoint.datasets import catalog as parsing
from rejoint.datasets import fetch as fetching
from rejoint.datasets.catalog import CATALOG, CatalogEntry, load_columns

DATA = os.environ.get("REJOINT_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="REJOINT_DATA names no folder with data sets")

ORIGINAL = b"red, 1\n?, 2\n\n"
PACKED = gzip.compress(b"colour,size\nblue,7\n", mtime=0)


def sha(content):
    return hashlib.sha256(content).hexdigest()


class Server(ThreadingHTTPServer):
    """Answers with what ``files`` holds; ``promised`` is the length that it announces."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.promised, self.asked = {}, None, []
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.promised or len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch, server):
    """No data folder, an empty cache, the server in the place of both sources."""
    monkeypatch.delenv("REJOINT_DATA", raising=False)
    monkeypatch.setenv("REJOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("REJOINT_UCI_URL", server.url + "uci/")
    monkeypatch.setenv("REJOINT_GROUPLENS_URL", server.url + "movielens")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def toys(content=ORIGINAL):
    origin = fetching.SourceFile("toys/toys.data", sha(content), "http://x/", "REJOINT_UCI_URL")
    read = partial(parsing.read_lines, header=["colour", "size"])
    return {"toys": CatalogEntry(sha(PACKED), (origin,), read)}


def kept(tmp_path):
    return sorted(path.name for path in tmp_path.glob("cache/*"))


def test_downloads_once(server, tmp_path):
    server.files["/uci/toys/toys.data"] = ORIGINAL
    expected = {"colour": ["red", None], "size": [1, 2]}
    assert load_columns("toys", toys()) == expected
    assert kept(tmp_path) == ["toys.data"]
    server.files.clear()
    assert load_columns("toys", toys()) == expected
    assert server.asked == ["/uci/toys/toys.data"]


def test_data_folder_comes_first(server, tmp_path, monkeypatch):
    (tmp_path / "toys.csv.gz").write_bytes(PACKED)
    monkeypatch.setenv("REJOINT_DATA", str(tmp_path))
    assert load_columns("toys", toys()) == {"colour": ["blue"], "size": [7]}
    assert server.asked == []
    assert kept(tmp_path) == []


def test_wrong_file_in_the_data_folder(tmp_path, monkeypatch):
    (tmp_path / "toys.csv.gz").write_bytes(PACKED + b"\0")
    monkeypatch.setenv("REJOINT_DATA", str(tmp_path))
    with pytest.raises(FetchError, match=r"toys\.csv\.gz' is not the file it should be: its SHA"):
        load_columns("toys", toys())


@pytest.mark.parametrize("content", [ORIGINAL[:-4], ORIGINAL + b"more", b"<html>sorry</html>"])
def test_wrong_content_is_an_error_and_not_kept(server, tmp_path, content):
    server.files["/uci/toys/toys.data"] = content
    words = rf"answered with {len(content)} bytes .* SHA-256 is {sha(content)}, not {sha(ORIGINAL)}"
    with pytest.raises(FetchError, match=words + r".*Nothing was kept.*REJOINT_DATA"):
        load_columns("toys", toys())
    assert kept(tmp_path) == []


def test_connection_that_breaks_off(server, tmp_path):
    server.files["/uci/toys/toys.data"], server.promised = ORIGINAL[:5], len(ORIGINAL)
    with pytest.raises(FetchError, match=rf"{len(ORIGINAL) - 5} more did not arrive"):
        load_columns("toys", toys())
    assert kept(tmp_path) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "nowhere"])
def test_offline_names_the_way_out(url, monkeypatch):
    monkeypatch.setenv("REJOINT_UCI_URL", url)
    with pytest.raises(FetchError, match=r"put 'car\.csv\.gz' into a folder and name it by the"):
        rj.datasets.car()


def test_interrupted_while_writing_leaves_nothing(server, tmp_path, monkeypatch):
    server.files["/uci/toys/toys.data"] = ORIGINAL

    def interrupted(descriptor):
        assert len(kept(tmp_path)) == 1  # the file that is written aside
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_columns("toys", toys())
    assert kept(tmp_path) == []


def test_spoilt_cache_is_fetched_anew(server, tmp_path):
    server.files["/uci/toys/toys.data"] = ORIGINAL
    load_columns("toys", toys())
    (tmp_path / "cache" / "toys.data").write_bytes(b"spoilt")
    assert load_columns("toys", toys())["colour"] == ["red", None]
    assert (tmp_path / "cache" / "toys.data").read_bytes() == ORIGINAL
    assert len(server.asked) == 2


def test_only_in_the_data_folder():
    with pytest.raises(FetchError, match=r"no public source of its own.*'movielens_action_list20"):
        rj.datasets.movielens("action_list20")


def test_words_for_unknown_names():
    with pytest.raises(
        ValueError, match=r"no table 'action_list', only.*Did you mean 'action_list20'"
    ):
        rj.datasets.movielens("action_list")
    with pytest.raises(ValueError, match=r"no set 'vote', only 'income'.*Did you mean 'votes'"):
        rj.datasets.paper_set("vote")
    with pytest.raises(ValueError, match="which must be one of 'cleveland', 'statlog', not 'x'"):
        rj.datasets.heart("x")


def test_frames_of_every_kind():
    columns = {"a": ["x", None], "b": [1, None], "c": [1.5, 2.0]}
    assert parsing.as_frame(columns, "dict") is columns
    pandas = parsing.as_frame(columns, "pandas")
    assert pandas["a"].isna().tolist() == [False, True]
    assert pandas["b"].dtype == float
    assert parsing.as_frame(columns, "polars").rows() == [("x", 1, 1.5), (None, None, 2.0)]
    assert parsing.as_frame(columns, "pyarrow").column("b").to_pylist() == [1, None]
    with pytest.raises(ValueError, match="backend must be"):
        parsing.as_frame(columns, "excel")


def original(name):
    """The public files of a set, written from its packed one: their checksums say if rightly."""
    columns = parsing.read_packed(Path(DATA, f"{name}.csv.gz").read_bytes())
    text = gzip.decompress(Path(DATA, f"{name}.csv.gz").read_bytes()).decode()
    rows = [[cell or "?" for cell in line.split(",")] for line in text.splitlines()[1:]]
    if name == "adult":
        train = [", ".join(row[:-1]) for row in rows if row[-1] == "train"]
        test = [", ".join(row[:-1]) + "." for row in rows if row[-1] == "test"]
        files = ["\n".join([*train, "", ""]), "\n".join(["|1x3 Cross validator", *test, "", ""])]
    else:
        separator = " " if name in ("credit_australian", "heart_statlog") else ","
        last = ["", ""] if name == "nursery" else [""]
        files = ["\n".join([*map(separator.join, rows), *last])]
    return columns, [file.encode() for file in files]


@needs_data
@pytest.mark.parametrize("name", [name for name in CATALOG if not name.startswith("movie")])
def test_public_files_give_the_same_table(name, server):
    columns, files = original(name)
    for origin, content in zip(CATALOG[name].sources, files, strict=True):
        assert sha(content) == origin.sha256
        server.files[f"/uci/{origin.path}"] = content
    assert load_columns(name) == columns
    assert len(server.asked) == len(files)


def test_movielens_is_read_from_its_archive(server, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ml-latest-small/ratings.csv", "userId,movieId,rating\r\n1,2,3.5\r\n")
        archive.writestr("ml-latest-small/movies.csv", 'movieId,title\r\n2,"Go, now"\r\n')
    content = packed.getvalue()
    for name in ("movielens_small2018_ratings", "movielens_small2018_movies"):
        entry = CATALOG[name]
        origin = entry.sources[0]._replace(sha256=sha(content))
        monkeypatch.setitem(CATALOG, name, entry._replace(sources=(origin,)))
    server.files["/movielens/ml-latest-small.zip"] = content
    movies = rj.datasets.movielens("small2018_movies", backend="dict")
    assert movies == {"movieId": [2], "title": ["Go, now"]}
    stars = rj.datasets.movielens(whole_stars=True, backend="dict")
    assert stars == {"userId": [1], "movieId": [2], "rating": [4]}
    assert len(server.asked) == 1
    with pytest.raises(ValueError, match="'small2018_movies' holds no ratings"):
        rj.datasets.movielens("small2018_movies", whole_stars=True)


@needs_data
@pytest.mark.parametrize(
    ("name", "rows", "features", "missing"),
    # Counts that the repository gives for each set.
    [
        ("income", 48842, 7, 2799 + 2809),
        ("credit", 690, 8, 0),
        ("heart", 303, 8, 6),
        ("mushroom", 8124, 21, 2480),
        ("votes", 435, 16, 392),
        ("car", 1728, 6, 0),
        ("nursery", 12960, 8, 0),
    ],
)
def test_paper_sets(name, rows, features, missing, monkeypatch):
    monkeypatch.setenv("REJOINT_DATA", DATA)
    X, y = rj.datasets.paper_set(name, backend="pandas")
    assert X.shape == (rows, features)
    assert y.shape == (rows,)
    assert X.isna().sum().sum() == missing
    full = rj.datasets.paper_set(name, filled=True, backend="pandas").X
    assert full.isna().sum().sum() == 0
    assert (full == X).sum().sum() == X.size - missing
    for column in X.columns[X.isna().any()]:
        assert set(full[column][X[column].isna()]) == set(X[column].mode())


@needs_data
def test_wide_tables_of_ratings(monkeypatch):
    monkeypatch.setenv("REJOINT_DATA", DATA)
    half = rj.datasets.movielens("action_list20", backend="pandas")
    whole = rj.datasets.movielens("action_list20", whole_stars=True, backend="pandas")
    assert half.shape == (4296, 21)
    assert half["userId"].equals(whole["userId"])
    gap = (whole - half).stack().dropna()
    assert set(gap) == {0.0, 0.5}


@needs_data
def test_examples(monkeypatch):
    monkeypatch.setenv("REJOINT_DATA", DATA)
    for test in doctest.DocTestFinder().find(public_sets):
        for example in test.examples:
            example.options.pop(doctest.SKIP, None)
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
        assert result.failed == 0
