"""One writer: files and folders whole or not at all."""

import errno
import os
import signal
import stat
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main
from rejoint.io.atomic import atomic_file, atomic_folder
from rejoint.marginals.folder import MANIFEST


def write(path, text, **options):
    with atomic_file(path, **options) as file:
        file.write(text.encode())


def pairs(seed, variables=4):
    rng = np.random.default_rng(seed)
    records = rj.Records.of({f"v{n}": rng.integers(0, 3, 200).tolist() for n in range(variables)})
    return rj.Marginals.count(records, order=2)


def test_folders_are_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "made"
    with pytest.raises(FileNotFoundError), atomic_folder(target) as folder:
        (folder / "none" / "b.txt").write_text("third")
    assert os.listdir(tmp_path) == []
    target.mkdir(mode=0o750)
    with atomic_folder(target) as folder:
        (folder / "a.txt").write_text("first")
        assert os.listdir(target) == []
    assert (target / "a.txt").read_text() == "first"
    assert stat.S_IMODE(target.stat().st_mode) == 0o750
    with pytest.raises(FileExistsError, match="contains other files"), atomic_folder(target):
        pass
    assert os.listdir(tmp_path) == ["made"]


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_mode_of_a_replaced_file_is_kept(tmp_path):
    path = tmp_path / "model.rejoint"
    pmf = rj.datasets.asia()
    pmf.save(path)
    for mode in (0o600, 0o640, 0o666):
        path.chmod(mode)
        pmf.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    path, link = tmp_path / "real" / "a.txt", tmp_path / "link.txt"
    write(path, "old")
    link.symlink_to(path)
    write(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_long_names_in_any_alphabet(tmp_path):
    path = tmp_path / ("π" * 120 + ".csv")  # 244 bytes
    write(path, "all of it")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_only_a_model_is_replaced_by_a_model(tmp_path):
    pmf = rj.datasets.asia()
    data = tmp_path / "patients.csv"
    data.write_text("a,b\nx,y\n")
    with pytest.raises(FileExistsError, match="another kind of file"):
        pmf.save(data)
    assert data.read_text() == "a,b\nx,y\n"
    for name in ("model.rejoint", "model.json", "empty"):
        path = tmp_path / name
        path.touch()
        pmf.save(path)
        pmf.save(path)
        assert rj.load(path).rank == pmf.rank


@pytest.mark.parametrize(
    ("words", "name"), [(["report"], "model.html"), (["sample", "-n", "3"], "model.csv")]
)
def test_a_model_is_replaced_by_a_model_only(tmp_path, words, name):
    path = str(tmp_path / name)
    rj.datasets.asia().save(path)
    done = CliRunner().invoke(main, [words[0], path, *words[1:], "-o", path])
    assert done.exit_code == 1
    assert "it is another kind of file" in done.output
    assert rj.load(path).rank == rj.datasets.asia().rank


def test_checkpoints_replace_checkpoints_only(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(ValueError, match="not a checkpoint"):
        rj.estimate({"a": [0, 1, 1], "b": [1, 0, 1]}, rank=1, checkpoint=path)
    assert path.read_text() == "my notes"


def test_the_error_of_a_full_disk_names_the_file(tmp_path):
    def fill(path):
        with atomic_file(path) as file:
            file.write(b"some")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: .*model\.rejoint"):
        fill(tmp_path / "model.rejoint")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_stdout_is_named(tmp_path):
    path = tmp_path / "asia.rejoint"
    rj.datasets.asia().save(path)
    words = [sys.executable, "-m", "rejoint.cli", "ask", str(path), "P(smoke)", "--json"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert "'standard output': No space left on device." in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


needs_locks = pytest.mark.skipif(os.name == "nt", reason="files are locked by flock")


def test_tables_keep_the_files_of_others(tmp_path):
    target = tmp_path / "tables"
    pairs(0).write(target)
    (target / "report.docx").write_text("mine")
    (target / "0_v0-00000000.csv").write_text("mine too, by its name almost not")
    before = set(os.listdir(target))
    pairs(1, variables=3).write(target)
    kept = set(os.listdir(target)) & before
    assert kept == {"report.docx", "0_v0-00000000.csv", MANIFEST}
    assert len(rj.Marginals.read(target)) == 3


def test_a_listed_table_that_is_gone_is_an_error(tmp_path):
    target = tmp_path / "tables"
    pairs(0).write(target)
    next(target.glob("*.csv")).unlink()
    with pytest.raises(ValueError, match="lists a file that is not there"):
        rj.Marginals.read(target)


def rewrite(target, seed, times):
    for _ in range(times):
        pairs(seed).write(target)


@needs_locks
def test_readers_see_old_or_new_tables_and_no_mixture(tmp_path):
    target = tmp_path / "tables"
    known = [pairs(seed).flat.tolist() for seed in range(4)]
    pairs(0).write(target)
    fork = get_context("fork")
    writers = [fork.Process(target=rewrite, args=(target, seed, 12)) for seed in range(4)]
    for writer in writers:
        writer.start()
    reads = 0
    while reads < 20 or any(writer.is_alive() for writer in writers):
        assert rj.Marginals.read(target).flat.tolist() in known
        reads += 1
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(os.listdir(target)) == 7
    assert os.listdir(tmp_path) == ["tables"]


# Forks children that write again and again; each is killed at another moment.
KILLS = """
import os, random, signal, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
from test_atomic import WRITERS
folder, kills = sys.argv[2], int(sys.argv[3])
rng = random.Random(0)
for name, (write, check) in WRITERS.items():
    write(folder, 0)
    for kill in range(kills):
        child = os.fork()
        if not child:
            while True:
                kill += 1
                write(folder, kill % 5)
        time.sleep(rng.uniform(0.0005, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check(folder)
    write(folder, 0)
    check(folder)
print(sum(name.startswith(".rejoint-") for name in os.listdir(folder)))
"""


def model_of(version):
    rng = np.random.default_rng(version)
    return rj.LowRankPMF([1.0], [rng.dirichlet(np.ones(300), 1).T for _ in range(5)])


def check_model(path):
    known = [model_of(version).factors[0].tolist() for version in range(5)]
    assert rj.load(path).factors[0].tolist() in known


def write_checkpoint(folder, version):
    from rejoint.solver.checkpoint import Checkpoint

    checkpoint = Checkpoint(Path(folder, "fit.checkpoint"), {"rank": "3"})
    checkpoint.put("a", {"state": np.full(20_000, float(version))})
    checkpoint.save()


def check_checkpoint(folder):
    from rejoint.solver.checkpoint import Checkpoint

    checkpoint = Checkpoint(Path(folder, "fit.checkpoint"), {"rank": "3"})
    entry = checkpoint.parse("a", lambda content: content)
    assert len(set(entry["state"].tolist())) == 1


def write_pack(folder, version):
    for path in Path(folder).glob("pack*"):
        (path / "meta.json").unlink(missing_ok=True)  # first: what is left of it is no pack
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    data = rj.scan(lambda: iter([{"a": [0, 1, 2] * 500}] * 3))
    data.pack(Path(folder, f"pack{version}"))


def check_pack(folder):
    for path in Path(folder).glob("pack*"):
        if (path / "meta.json").exists():
            assert sum(len(part) for part in rj.scan(path)) == 4500


def write_page(folder, version):
    from rejoint.explorer.page import write_page

    write_page(Path(folder, "page.html"), PAGE)


def check_page(folder):
    assert Path(folder, "page.html").read_text().rstrip().endswith("</html>")


def write_csv(folder, version):
    from rejoint.cli.output import write_rows

    write_rows(str(Path(folder, "rows.csv")), ["a", "b"], [(version, n) for n in range(20_000)])


def check_csv(folder):
    lines = Path(folder, "rows.csv").read_text().splitlines()
    assert len(lines) == 20_001
    assert len({line.split(",")[0] for line in lines[1:]}) == 1


PAGE = {"title": "x" * 200_000}
KNOWN = [pairs(version).flat.tolist() for version in range(5)]

WRITERS = {
    "archive": (
        lambda folder, version: model_of(version).save(Path(folder, "a.rejoint")),
        lambda folder: check_model(Path(folder, "a.rejoint")),
    ),
    "text": (
        lambda folder, version: model_of(version).save(Path(folder, "a.json")),
        lambda folder: check_model(Path(folder, "a.json")),
    ),
    "tables": (
        lambda folder, version: pairs(version).write(Path(folder, "tables")),
        lambda folder: KNOWN.index(rj.Marginals.read(Path(folder, "tables")).flat.tolist()),
    ),
    "checkpoint": (write_checkpoint, check_checkpoint),
    "page": (write_page, check_page),
    "rows": (write_csv, check_csv),
    "pack": (write_pack, check_pack),
}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
def test_kills_leave_whole_files(tmp_path):
    """``REJOINT_KILLS=150 pytest -k kills`` kills each of the seven writers 150 times."""
    kills = os.environ.get("REJOINT_KILLS", "6")
    words = [sys.executable, "-c", KILLS, __file__, str(tmp_path), kills]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0  # some were killed in the middle
