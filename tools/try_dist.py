"""Try what ``make dist`` has built: install each file into an empty environment, and use it.

The sdist is tried twice, with a compiler and without. ``--metadata`` only looks into the files.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

SMOKE = """
import sys, warnings
import rejoint as rj
from rejoint import kernels
warnings.simplefilter("ignore")
assert "site-packages" in rj.__file__, rj.__file__
result = rj.estimate(rj.datasets.youth_survey(), rank=3, solver="map", random_state=0)
value = result.pmf.ask("P(helmet = never | gender = male)").value
assert 0.5 < value < 0.7, value
town = rj.factorize(rj.Marginals.read(rj.datasets.town_downloads())).pmf
assert town.prob({"Home": "Rented"}) > 0
print(f"rejoint {rj.__version__}, kernels: {kernels.backend}")
assert kernels.backend == sys.argv[1], f"{sys.argv[1]} expected"
"""

#: Files that must be in an archive, and parts of names that must not.
NEEDED = ("py.typed", "datasets/bundled/youth_survey.csv.gz", "explorer/static")
UNWANTED = (".ci/", ".github/", "__pycache__", ".pyc")


def names_in(path: Path) -> list[str]:
    """List the files of a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def check_content(path: Path) -> None:
    """Fail where something is missing or superfluous."""
    names = names_in(path)
    missing = [needed for needed in NEEDED if not any(needed in name for name in names)]
    unwanted = [name for name in names if any(part in name for part in UNWANTED)]
    sources = [name for name in names if path.suffix == ".whl" and name.endswith((".cpp", ".hpp"))]
    if missing or unwanted or sources:
        raise SystemExit(f"{path.name}: missing {missing}, unwanted {unwanted + sources}")
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(names)} files")


def try_file(path: Path, backend: str) -> None:
    """Install a file into an empty environment and use it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        if backend == "numpy":
            environment |= {"CC": "/nonexistent", "CXX": "/nonexistent"}
        for command in (["-m", "pip", "install", "-qq", str(path)], ["-c", SMOKE, backend]):
            subprocess.run([python, *command], cwd=folder, env=environment, check=True)
        script = python.with_name("rejoint")
        subprocess.run([script, "--version"], cwd=folder, env=environment, check=True)


def main() -> None:
    """Check or try all files of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metadata", action="store_true", help="do not install")
    options = parser.parse_args()
    folder = options.folder.resolve()
    files = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    if not files:
        raise SystemExit(f"{options.folder} has no wheel and no sdist")
    for path in files:
        check_content(path)
        if options.metadata:
            continue
        sys.stdout.flush()
        if path.suffix == ".whl":
            try_file(path, "numpy" if "-py3-none-" in path.name else "native")
        else:
            try_file(path, "native")
            try_file(path, "numpy")


if __name__ == "__main__":
    main()
