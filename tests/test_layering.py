"""A module imports only from those before it in the list; the flow of data can be read off it."""

import ast
from pathlib import Path

import pytest

import rejoint

LAYERS = [
    *("kernels", "domain", "records", "marginals", "queries", "language", "io", "pmf", "metrics"),
    *("identifiability", "solver", "factorization", "estimation", "rank", "estimators"),
    *("distributed", "datasets", "plots", "explorer", "cli"),
]
ROOT = Path(rejoint.__file__).parent


def module_name(path: Path) -> str:
    parts = ["rejoint", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, package: str) -> list[str]:
    """Dotted names imported when a module is (not inside functions, not for types only)."""
    found: list[str] = []
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            found += [f"{start}.{alias.name}" for alias in node.names]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not types_only(node):
            todo += ast.iter_child_nodes(node)
    return [name for name in found if name.startswith("rejoint.")]


def types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def read(path: Path) -> list[str]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return imported(path.read_text(encoding="utf-8"), package)


IMPORTS = {module_name(path): read(path) for path in sorted(ROOT.rglob("*.py"))}
IMPORTS.pop("rejoint")


def place(module: str) -> int:
    """Position in the list; a module split off another one stands with its first importer."""
    part = module.split(".")[1]
    if part in LAYERS:
        return LAYERS.index(part)
    users = [
        user
        for user, names in IMPORTS.items()
        if user.split(".")[1] != part and any(name.split(".")[1] == part for name in names)
    ]
    assert users, f"rejoint.{part} is neither in the list of modules nor imported by one"
    return min(place(user) for user in users)


@pytest.mark.parametrize("module", IMPORTS)
def test_imports_point_up_the_list(module):
    for name in IMPORTS[module]:
        assert place(name) <= place(module), (
            f"{module} ({LAYERS[place(module)]}) imports {name} ({LAYERS[place(name)]}), "
            "which comes after it: import it inside the function, with the reason, or move it"
        )


def test_the_walk_sees_what_it_must():
    source = (
        "from typing import TYPE_CHECKING\nfrom .pmf import LowRankPMF\nimport rejoint.cli\n"
        "from rejoint import io\n"
        "if TYPE_CHECKING:\n    from rejoint.records import Records\n"
        "def later():\n    from rejoint.plots import factors\n"
    )
    assert set(imported(source, "rejoint")) == {
        "rejoint.pmf.LowRankPMF",
        "rejoint.cli",
        "rejoint.io",
    }
