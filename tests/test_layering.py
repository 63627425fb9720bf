"""The tree is the design: imports point up the list of layers, inside functions too; no knots."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tools import architecture
from tools.architecture import Tree, graph, knots_and_chain, names_twice

#: Later ones may import earlier ones. The two verbs that use a rank come after the rank.
LAYERS = [
    *("text", "check", "arrays", "messages", "cost", "model", "kernels", "domain", "io", "records"),
    *("marginals", "queries", "language", "pmf", "metrics", "identifiability", "solver"),
    *("factorization",),
    *("estimation", "rank", "factorization.factorize", "estimation.estimate", "estimators"),
    *("population", "distributed", "datasets", "plots", "explorer", "cli"),
]

measure = cache(architecture.measure)


@pytest.fixture(scope="module")
def tree():
    return Tree.read()


@pytest.fixture(scope="module")
def imports(tree):
    return [each for each in tree.imports() if not each.is_later]


def layer(tree: Tree, module: str) -> int:
    """The layer that a module is of; the front of a package is of the last of its modules."""
    name = module.removeprefix("rejoint.")
    if tree.files.get(module, Path()).name == "__init__.py":
        return max(k for k, entry in enumerate(LAYERS) if entry.split(".")[0] == name.split(".")[0])
    parts = name.split(".")
    known = [".".join(parts[:size]) for size in range(len(parts), 0, -1)]
    return next(LAYERS.index(entry) for entry in known if entry in LAYERS)


def tree_of(tmp_path: Path, **sources: str) -> Tree:
    """A package of a few modules."""
    root = tmp_path / "rejoint"
    for name, source in {"__init__": "", **sources}.items():
        path = root.joinpath(*name.split("__")) if "__" in name.strip("_") else root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(source)
    return Tree.read(root)


def test_every_top_level_name_is_in_the_design(tree):
    names = {module.split(".")[1] for module in tree.files if module != "rejoint"}
    assert names <= {entry.split(".")[0] for entry in LAYERS}, "put it into the layer it is of"


def test_packages_are_flat(tree):
    # Each estimator, and the reader of tables, has more parts than a flat folder would show.
    inner = ("rejoint.estim", "rejoint.marginals.read")
    deep = [m for m in tree.files if m.count(".") > (3 if m.startswith(inner) else 2)]
    assert not deep, "rejoint/<layer>/<file>.py is as deep as it goes"


def test_imports_point_up_the_list(tree, imports):
    found = [
        f"{each.module} imports {each.target} in line {each.line}, which comes after it: move one"
        for each in imports
        if "rejoint" not in (each.module, each.target)
        and layer(tree, each.target) > layer(tree, each.module)
    ]
    assert found == []


def test_no_modules_import_each_other(tree):
    knots, _ = knots_and_chain(graph(tree, inner=True))
    assert knots == []


def test_chains_of_imports_are_short():
    figures = measure()
    assert figures["longest import chain, top of files"] <= 22
    assert figures["longest import chain, all imports"] <= 30


def test_names_are_used_once(tree):
    assert names_twice(tree) == ([], [])


def test_files_are_named_by_what_they_define():
    assert measure()["file names in -ing"] == []


def test_each_package_lists_its_modules(tree, tmp_path):
    assert architecture.unlisted(tree) == {}
    tree = tree_of(tmp_path, a__model="", a__new="")
    front = '"""Words.\n\nmodel  what it is\ngone  what it was\n"""\n'
    (tree.root / "a" / "__init__.py").write_text(front)
    assert architecture.unlisted(Tree.read(tree.root)) == {"rejoint.a": {"gone", "new"}}


def test_the_page_on_the_design_names_files_that_exist(tree):
    page = (tree.root.parents[1] / "docs" / "design.rst").read_text("utf-8")
    named = set(re.findall(r"``([a-z_/]+[.]py)``", page))
    paths = [Path(__file__).as_posix(), *(path.as_posix() for path in tree.files.values())]
    assert len(named) > 20
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in paths)]


def test_packages_keep_to_their_budgets_of_lines(tree):
    lines = architecture.lines_by_budget(tree)
    above = {name: n for name, n in lines.items() if n > architecture.BUDGETS[name][1]}
    assert above == {}, "take lines away, or raise the limit in tools/architecture.py and say why"


def test_single_places():
    figures = measure()
    assert figures["modules that build a FitResult"] == ["rejoint.solver.result"]
    assert figures["modules that catch KeyboardInterrupt"] == [
        "rejoint.cli.group",
        "rejoint.solver.run",
        "rejoint.solver.search",
    ]


def test_each_import_inside_a_function_has_a_reason(tree, imports):
    for each in imports:
        if architecture.is_in_function(tree, each):
            lines = tree.files[each.module].read_text("utf-8").splitlines()
            near = " ".join(lines[max(each.line - 3, 0) : each.line + 6])
            assert "#" in near, f"{each.module}, line {each.line}: say why it is not at the top"


def test_the_walk_sees_what_it_must(tmp_path):
    source = (
        "from typing import TYPE_CHECKING\nfrom rejoint.b import name\nimport numpy as np\n"
        "if TYPE_CHECKING:\n    from rejoint.c import Types\n"
        "def later():\n    from rejoint import d\n"
        "class A:\n    def method(self):\n        import rejoint.e\n"
    )
    tree = tree_of(tmp_path, a=source, b="", c="", d="", e="")
    found = {(each.target, each.inside) for each in tree.imports()}
    assert found == {
        ("rejoint.b", ""),
        ("rejoint.d", "later"),
        ("rejoint.e", "A.method"),
    }
    assert graph(tree, inner=False)["rejoint.a"] == {"rejoint.b"}


def test_knots_and_chains_are_found(tmp_path):
    tree = tree_of(
        tmp_path,
        a="from rejoint import b\n",
        b="def f():\n    from rejoint import a\n",
        c="from rejoint import a\n",
    )
    assert knots_and_chain(graph(tree, inner=False)) == ([], 3)
    knots, chain = knots_and_chain(graph(tree, inner=True))
    assert [sorted(knot) for knot in knots] == [["rejoint.a", "rejoint.b"]]
    assert chain == 3


def test_lines_of_code_are_counted_without_words(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""Words."""\n\n# more\nx = 1\n\n\ndef f():\n    """Words."""\n    return x\n')
    assert architecture.code_lines(path, ast.parse(path.read_text())) == 3
