import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from operator import attrgetter
from pathlib import Path

import pytest

import rejoint as rj


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_is_cheap():
    heavy = [
        "sklearn",
        "pandas",
        "polars",
        "pyarrow",
        "scipy",
        "matplotlib",
        "dask",
        "rich",
        "click",
    ]
    code = f"import sys, rejoint; print([name for name in {heavy!r} if name in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize("name", rj.__all__)
def test_public_names_are_there(name):
    assert getattr(rj, name) is not None


#: Pages that are written, without those that Sphinx makes.
DOC_PAGES = [
    page
    for page in (Path(__file__).parents[1] / "docs").rglob("*.rst")
    if not {"_build", "gallery", "generated"} & set(page.parts)
]


def documented_names() -> set[str]:
    """Dotted names of the reference, and those that the pages use as ``rj.module.name``."""
    docs = Path(__file__).parents[1] / "docs"
    listed = re.findall(
        r"^    ([a-z_]+\.[\w.]+)$", (docs / "reference" / "api.rst").read_text(), re.MULTILINE
    )
    pages = " ".join(page.read_text() for page in DOC_PAGES)
    return {*listed, *re.findall(r"\brj\.([a-z_]+\.\w+)", pages)}


def test_documented_names_are_there_in_a_fresh_process():
    """Each alone: an import of one module makes others reachable."""
    names = documented_names()
    assert {"estimators.ClassifierPolicy", "estimation.Em", "io.fit_notes"} <= names
    modules = {name.split(".")[0]: name for name in sorted(names)}
    for name in modules.values():
        assert run(f"import rejoint as rj; print(rj.{name} is not None)") == "True", name
    for name in names:
        assert attrgetter(name)(rj) is not None


def test_every_public_name_is_in_the_reference():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.rst").read_text()
    listed = {name.partition(".")[0] for name in re.findall(r"^    ([\w.]+)$", page, re.MULTILINE)}
    assert set(rj.__all__) - listed == set()


def test_all_and_dir_agree():
    assert sorted(rj.__all__) == rj.__all__
    assert set(rj.__all__) <= set(dir(rj))
    assert set(rj._HOMES) <= set(rj.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'rejoint' has no attribute 'nothing'"):
        rj.nothing  # noqa: B018


def test_version_is_that_of_the_distribution():
    try:
        installed = metadata.version("rejoint")
    except metadata.PackageNotFoundError:
        pytest.skip("rejoint is on the path, but not installed")
    assert rj.__version__ == installed


def test_typed():
    assert (Path(rj.__file__).parent / "py.typed").exists()


def can_compile() -> bool:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None or subprocess.run([compiler, "--version"], capture_output=True).returncode:
        return False
    return Path(sysconfig.get_path("include"), "Python.h").exists()


def test_kernels_are_compiled_where_they_can_be():
    # The build falls back to NumPy on any failure, so a broken kernel would go unseen otherwise.
    kernels = importlib.import_module("rejoint.kernels")
    if os.environ.get("REJOINT_KERNELS") == "numpy" or not can_compile():
        assert kernels.backend == "numpy"
        return
    try:
        metadata.version("rejoint")
    except metadata.PackageNotFoundError:
        pytest.skip("rejoint is on the path, but not installed")
    assert kernels.backend == "native", "build errors are shown by: pip install -v -e ."
