"""Figures of ``benchmarks/figures.json``: looked up, held to what is printed, and how old they are.

``python -m tools.stored_figures`` lists the groups whose code has changed since they were measured.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STORE = ROOT / "benchmarks" / "figures.json"

FITS = ("estimation", "rank", "pmf", "queries", "kernels", "solver", "records", "domain")

#: Packages whose change makes a group of figures old.
MEASURES = {
    "fits": FITS,
    "models": FITS,
    "raw": FITS,
    "surveys": FITS,
    "classifier": ("estimators/classifier", *FITS),
    "imputer": ("estimators/imputer", *FITS),
    "recommender": ("estimators/recommender", "kernels"),
    "speed": ("kernels", "records", "__init__.py"),
}


def stored() -> dict[str, Any]:
    """Groups of figures, each with its commit and date."""
    loaded: dict[str, Any] = json.loads(STORE.read_text(encoding="utf-8"))
    return loaded


def look_up(target: str) -> float:
    """Return the figure ``group/name``."""
    group, _, name = target.partition("/")
    try:
        return float(stored()[group]["figures"][name])
    except KeyError:
        raise ValueError(f"benchmarks/figures.json has no figure {target!r}.") from None


def shown(text: str) -> str:
    """Return the text of a role; raise ValueError where it prints what is not stored.

    ``group/name`` prints the figure, ``0.90 <group/name>`` the number before it.
    """
    given = re.fullmatch(r"(.+?)\s*<(.+)>", text)
    if given is None:
        return f"{look_up(text):.3g}"
    printed, value = given[1], look_up(given[2])
    digits = len(printed.partition(".")[2])
    if round(value, digits) != float(printed):
        raise ValueError(f"{given[2]} is {value:g}, and {printed} is printed.")
    return printed


def commits_since(group: str) -> int | None:
    """Count the commits to what a group measures since it was measured; None without history."""
    paths = [f"src/rejoint/{package}" for package in MEASURES[group]]
    git = ["git", "-C", str(ROOT), "rev-list", "--count", f"{stored()[group]['commit']}..HEAD"]
    done = subprocess.run([*git, "--", *paths], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


def main() -> None:
    """Print the age of each group."""
    for group, run in stored().items():
        count = commits_since(group)
        age = "unknown history" if count is None else f"{count} commits since"
        print(f"{group:12s} {run['commit']}  {run['date']}  {age}")


if __name__ == "__main__":
    main()
