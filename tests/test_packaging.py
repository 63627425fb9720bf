"""Workflows, templates, versions, the changelog and the snapshot of public names."""

import re
import tomllib
from pathlib import Path

import pytest
from tools import changelog, floors, public_api

import rejoint as rj

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_public_names_are_those_of_the_snapshot():
    stored = public_api.SNAPSHOT.read_text(encoding="utf-8").splitlines()
    now = public_api.public_api()
    changed = sorted(set(stored) ^ set(now))
    assert changed == [], "python -m tools.public_api --write, and a fragment in changes/"


def test_there_is_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == rj.__version__


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_that_exist(path):
    text = path.read_text()
    targets = set(re.findall(r"run: make ([a-z-]+)", text))
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    modules = re.findall(r"python -m tools\.(\w+)", text)
    assert targets <= made
    assert all((ROOT / "tools" / f"{module}.py").exists() for module in modules)
    assert "timeout-minutes" in text


def test_every_requirement_has_a_floor():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = floors.floors(project)
    assert {"numpy", "scipy", "scikit-learn", "pandas"} <= {line.split("==")[0] for line in lines}


def test_fragments_are_named_by_kind():
    changelog.read_fragments(ROOT / "changes")


def test_a_release_moves_fragments_below_unreleased(tmp_path):
    (tmp_path / "one.added.md").write_text("New\nthing.\n")
    (tmp_path / "two.fixed.md").write_text("Mended thing.\n")
    before = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Old thing.\n\n## [0.1]\n\n- First.\n"
    after = changelog.released(before, "1.0", changelog.read_fragments(tmp_path), "2030-01-02")
    assert changelog.section(after, "Unreleased").strip() == ""
    assert changelog.section(after, "1.0") == (
        "### Added\n\n- New thing.\n- Old thing.\n\n### Fixed\n\n- Mended thing.\n"
    )
    assert changelog.section(after, "0.1") == "- First.\n"


@pytest.mark.parametrize("name", ["thing.md", "thing.new.md", ".added.md"])
def test_a_fragment_without_kind_is_refused(tmp_path, name):
    (tmp_path / name).write_text("Thing.\n")
    with pytest.raises(SystemExit, match="name it"):
        changelog.read_fragments(tmp_path)
