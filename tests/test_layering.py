"""The tree is the design: no other top-level names, imports point up the list, no cycles."""

import ast
from collections.abc import Container, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rejoint

LAYERS = [
    *(
        "check",
        "messages",
        "progress",
        "model",
        "kernels",
        "domain",
        "records",
        "marginals",
        "queries",
        "language",
        "io",
        "pmf",
    ),
    *("metrics", "identifiability", "solver", "factorization", "estimation", "rank", "estimators"),
    *("population", "distributed", "datasets", "plots", "explorer", "cli"),
]
ROOT = Path(rejoint.__file__).parent


def module_name(path: Path) -> str:
    parts = ["rejoint", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(source: str, package: str, modules: Container[str]) -> set[str]:
    """Modules of rejoint imported when a file is (not inside functions, not for types only)."""
    return {module_of(name, modules) for name in names(ast.parse(source), package)} - {"rejoint"}


def names(tree: ast.AST, package: str) -> Iterator[str]:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not types_only(node):
            todo += ast.iter_child_nodes(node)


def types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def module_of(name: str, modules: Container[str]) -> str:
    """The module that holds a dotted name; rejoint for what is not of this package."""
    if name.split(".")[0] != "rejoint":
        return "rejoint"
    while name not in modules:
        name = name.rpartition(".")[0]
    return name


def read(module: str) -> set[str]:
    path = FILES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return imported(path.read_text(encoding="utf-8"), package, FILES)


IMPORTS = {module: read(module) for module in FILES if module != "rejoint"}


def layer(module: str) -> str:
    return module.split(".")[1]


def strays(entries: Iterable[str]) -> set[str]:
    return {entry.removesuffix(".py") for entry in entries} - {*LAYERS, "__init__"}


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_every_top_level_name_is_in_the_design():
    entries = [path.name for path in ROOT.glob("*.py")]
    entries += [path.parent.name for path in ROOT.glob("*/__init__.py")]
    assert not strays(entries), "put it into the package of the layer it belongs to"


def test_packages_are_flat():
    # Each estimator has more parts than a flat folder of all of them would show.
    deepest = {"estimators": 3}
    deep = [m for m in FILES if m != "rejoint" and m.count(".") > deepest.get(layer(m), 2)]
    assert not deep, "rejoint/<layer>/<file>.py is as deep as it goes"


@pytest.mark.parametrize("module", IMPORTS)
def test_imports_point_up_the_list(module):
    for name in IMPORTS[module]:
        assert LAYERS.index(layer(name)) <= LAYERS.index(layer(module)), (
            f"{module} imports {name}, which comes after it: import it inside the function, with "
            "the reason, or move it"
        )


def test_no_import_cycles():
    # Layers are in order, so that a cycle can only be within a package; a file of it that imports
    # from its own front is part of one.
    assert cycle(IMPORTS) == []


def test_the_walk_sees_what_it_must():
    source = (
        "from typing import TYPE_CHECKING\nfrom .pmf import LowRankPMF\nimport rejoint.cli\n"
        "from rejoint import io, __version__\nimport numpy as np\n"
        "from rejoint.queries import modes\nfrom rejoint.domain import Domain\n"
        "if TYPE_CHECKING:\n    from rejoint.records import Records\n"
        "def later():\n    from rejoint.plots import factors\n"
    )
    assert imported(source, "rejoint", {*FILES}) == {
        "rejoint.pmf",
        "rejoint.cli",
        "rejoint.io",
        "rejoint.queries.modes",
        "rejoint.domain",
    }


def test_the_checks_can_fail():
    assert strays(["pmf", "io.py", "__init__.py", "_helpers.py"]) == {"_helpers"}
    front = {"rejoint.pmf": {"rejoint.pmf.pmf"}, "rejoint.pmf.pmf": {"rejoint.pmf"}}
    assert set(cycle(front)) == {"rejoint.pmf", "rejoint.pmf.pmf"}
