"""Figures of the source tree: ``make architecture``, and what ``tests/test_layering.py`` holds.

``python -m tools.architecture [folder]`` prints files, import chains, knots, names used twice,
single places and lines of code; with ``--trace`` also what one fit runs through.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "rejoint"

#: Packages that are built on the core.
OUTER = ("estimators", "identifiability", "population", "datasets", "explorer", "cli")

#: Public names that offer what a later layer does, and import it when called.
LATER = {
    ("rejoint.io.load", "load"),
    ("rejoint.marginals.marginals", "Marginals.read"),
    ("rejoint.pmf.pmf", "LowRankPMF.reduce"),
    ("rejoint.pmf.pmf", "LowRankPMF.ambiguity"),
    ("rejoint.solver.result", "FitResult.ambiguity"),
}

#: Nouns of the field that end in -ing.
NOUNS = {"sampling", "raking", "smoothing", "unfolding"}

#: Packages with their goal of code lines, and what they may have until then: a commit that needs
#: more raises the second number and says why; one that takes lines away lowers it.
BUDGETS = {
    "marginals": (2_900, 3_857),
    "factorization": (3_500, 3_910),
    "records domain": (3_000, 4_116),
    "cli": (1_900, 2_752),
    "estimation rank": (2_700, 3_607),
    "pmf model queries": (3_200, 4_055),
    "identifiability": (1_400, 2_425),
    "estimators": (3_700, 4_515),
    "kernels solver io": (2_000, 2_716),
    "": (2_600, 3_397),
}

#: What builds a FitResult: its name, or ``cls`` with a model.
_CATCHES = r"(?m)^ *except[^\n]*KeyboardInterrupt"
_RESULT = r"FitResult\(|(?<!\w)cls\(\n\s+pmf="


@dataclass(frozen=True)
class Import:
    """One import of a module of the package."""

    module: str
    target: str
    line: int
    inside: str  # the function it stands in; empty at the top of a file

    @property
    def is_later(self) -> bool:
        """Whether it is one of the listed methods."""
        return (self.module, self.inside) in LATER


@dataclass(frozen=True)
class Tree:
    """Parsed modules of a package by name."""

    root: Path
    files: Mapping[str, Path]
    modules: Mapping[str, ast.Module]

    @classmethod
    def read(cls, root: Path = ROOT) -> "Tree":
        """Parse all modules below a folder."""
        files = {}
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        modules = {name: ast.parse(path.read_text("utf-8")) for name, path in files.items()}
        return cls(root, files, modules)

    def imports(self) -> Iterator[Import]:
        """All imports of modules of the package, those for types only left out."""
        for name, module in self.modules.items():
            for node, inside in _walk(module, ""):
                for target in self._targets(node, name):
                    yield Import(name, target, getattr(node, "lineno", 0), inside)

    def _targets(self, node: ast.AST, module: str) -> set[str]:
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found = {name for name in names if name in self.files and name != module}
        return {a for a in found if not any(b.startswith(f"{a}.") for b in found)}


def _walk(node: ast.AST, inside: str) -> Iterator[tuple[ast.AST, str]]:
    """Nodes with the function that they stand in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        within = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            within = f"{inside}.{child.name}" if inside else child.name
        yield child, inside
        yield from _walk(child, within)


def graph(tree: Tree, *, inner: bool) -> dict[str, set[str]]:
    """What each module imports; ``inner`` counts imports inside functions, but for listed ones."""
    found: dict[str, set[str]] = {name: set() for name in tree.files}
    for each in tree.imports():
        if not is_in_function(tree, each) or (inner and not each.is_later):
            found[each.module].add(each.target)
    return found


def is_in_function(tree: Tree, each: Import) -> bool:
    """Whether an import stands in a function, and not just in the body of a class."""
    return bool(each.inside) and not _is_class(tree.modules[each.module], each.inside)


def _is_class(module: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in module.body)


def knots_and_chain(imports: Mapping[str, set[str]]) -> tuple[list[list[str]], int]:
    """Modules that import each other (Tarjan), and the length of the longest chain of imports."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    part_of: dict[str, int] = {}
    parts: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in imports[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other not in part_of:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            for other in stack[at:]:
                part_of[other] = len(parts)
            parts.append(stack[at:])
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for name in imports:
        if name not in index:
            visit(name)
    above: defaultdict[int, set[int]] = defaultdict(set)
    for name, others in imports.items():
        above[part_of[name]] |= {part_of[other] for other in others} - {part_of[name]}
    # Tarjan's order: what a part imports has been found before it.
    length: list[int] = []
    for number, part in enumerate(parts):
        length.append(len(part) + max((length[other] for other in above[number]), default=0))
    return [part for part in parts if len(part) > 1], max(length)


def code_lines(path: Path, module: ast.Module) -> int:
    """Lines without docstrings, comments and blank ones."""
    documented: set[int] = set()
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if is_text and isinstance(first.value.value, str):
            documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type not in (*skipped, tokenize.ENDMARKER):
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def names_twice(tree: Tree) -> tuple[list[str], list[str]]:
    """Basenames and names of classes that occur more than once.

    A command of the command line may share its name with what it calls.
    """
    files: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for name, module in tree.modules.items():
        path = tree.files[name]
        if path.stem not in ("__init__", "__main__") and not is_command(path, module):
            files[path.stem.lstrip("_")] += 1
        classes.update(
            node.name
            for node in ast.walk(module)
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
    return tuple(sorted(n for n, k in found.items() if k > 1) for found in (files, classes))  # type: ignore[return-value]


def is_command(path: Path, module: ast.Module) -> bool:
    """Whether a module is a command of the command line."""
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
    return path.parent.name == "cli" and "command" in names


def unlisted(tree: Tree) -> dict[str, set[str]]:
    """Packages whose docstring does not list exactly their modules, with the names that differ.

    A line of the list is a name, two or more blanks, and what is there. The help of the command
    line lists its commands, and docs/design.rst the packages.
    """
    held: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in tree.files.items():
        package, _, last = name.rpartition(".")
        if package.count(".") and not is_command(path, tree.modules[name]):
            held[package].add(last)
    found = {}
    for package, names in held.items():
        text = ast.get_docstring(tree.modules[package]) or ""
        listed = set(re.findall(r"(?m)^ *([a-z_]+)/?  +\S", text))
        if differ := (names - {"__main__"}) ^ listed:
            found[package] = differ
    return found


def places(tree: Tree, pattern: str) -> list[str]:
    """Modules whose code has a pattern."""
    found = re.compile(pattern)
    return [name for name, path in tree.files.items() if found.search(path.read_text("utf-8"))]


def measure(root: Path = ROOT) -> dict[str, object]:
    """All figures by name."""
    tree = Tree.read(root)
    _, chain = knots_and_chain(graph(tree, inner=False))
    knots, deepest = knots_and_chain(graph(tree, inner=True))
    inside = [e for e in tree.imports() if is_in_function(tree, e) and not e.is_later]
    stems = {path.stem for path in tree.files.values()}
    files, classes = names_twice(tree)
    core = [name for name in tree.files if name.split(".")[1:2] not in ([o] for o in OUTER)]
    return {
        "Python files": len(tree.files),
        "of the core": len(core),
        "longest import chain, top of files": chain,
        "longest import chain, all imports": deepest,
        "knots": [len(knot) for knot in knots],
        "imports inside functions": len(inside),
        "basenames used twice": files,
        "class names used twice": classes,
        "file names in -ing": sorted(s for s in stems if s.endswith("ing") and s not in NOUNS),
        "modules that build a FitResult": places(
            tree, r"FitResult\((?!Protocol)|(?<!\w)cls\(\n\s+pmf="
        ),
        "modules that submit starts to an executor": places(tree, r"\.submit\(|executor\.map\("),
        "modules that catch KeyboardInterrupt": places(tree, _CATCHES),
        "code lines": sum(code_lines(tree.files[n], m) for n, m in tree.modules.items()),
    }


def lines_by_budget(tree: Tree) -> dict[str, int]:
    """Code lines of the packages of each budget; the empty one has all others."""
    owner = {package: name for name in BUDGETS for package in name.split()}
    lines: Counter[str] = Counter()
    for name, module in tree.modules.items():
        package = [*name.split("."), ""][1]
        lines[owner.get(package, "")] += code_lines(tree.files[name], module)
    return {name: lines[name] for name in BUDGETS}


def trace(run: Callable[[], object], root: Path = ROOT) -> tuple[int, int]:
    """Functions and files of the package that a call runs through."""
    seen: set[tuple[str, str, int]] = set()
    prefix = str(root)

    def profile(frame: object, event: str, argument: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        inner = code.co_name.startswith("<")
        if event == "call" and code.co_filename.startswith(prefix) and not inner:
            seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return len(seen), len({name for name, *_ in seen})


def _traces() -> Iterator[tuple[str, tuple[int, int]]]:
    import rejoint as rj  # only where a fit is asked for

    records = rj.datasets.asia().sample(2_000, random_state=0)
    frame = records.to_frame("pandas")  # made here, since it is no part of a fit

    def parts() -> Iterator[object]:
        yield frame

    def fit(memory: int | None) -> object:
        data = records
        if memory is not None:
            data = rj.scan(parts, domain=records.domain, memory=memory)
        return rj.estimate(data, rank=3, random_state=0, progress=False)

    for name, memory in (("in memory", None), ("streamed", 0)):
        fit(memory)  # modules are loaded now, and not while the fit is traced
        yield f"functions and files of one estimate, {name}", trace(lambda m=memory: fit(m))  # type: ignore[misc]


def main(arguments: list[str]) -> None:
    """Print the figures."""
    folders = [Path(each) for each in arguments if not each.startswith("-")]
    for name, value in measure(*folders).items():
        print(f"{name}: {value}")
    print(f"{'package':24s}{'lines':>7s}{'limit':>7s}{'goal':>7s}")
    for name, lines in lines_by_budget(Tree.read(*folders)).items():
        goal, limit = BUDGETS[name]
        print(f"{name or 'all others':24s}{lines:7,d}{limit:7,d}{goal:7,d}")
    if "--trace" in arguments:
        for name, (functions, files) in _traces():
            print(f"{name}: {functions} / {files}")


if __name__ == "__main__":
    main(sys.argv[1:])
