"""Print the minimum versions that pyproject.toml names, as constraints for ``make test-floor``."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Extras whose versions are held down; test tools are taken as they come.
EXTRAS = ("pandas", "polars", "arrow", "duckdb", "plots", "excel", "explore", "distributed")


def floors(project: dict[str, object]) -> list[str]:
    """Return ``name==minimum.*`` for each requirement of the package and of its extras."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    named = [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]  # type: ignore[misc]
    lines = []
    for requirement in named:
        match = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement)
        if match is None:
            raise SystemExit(f"{requirement!r} has no minimum version")
        lines.append(f"{match[1]}=={match[2]}.*")
    return sorted(set(lines))


def main() -> None:
    """Print them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print("\n".join(floors(project)))


if __name__ == "__main__":
    main()
