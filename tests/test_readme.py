"""README: its code prints what stands below it, its links lead somewhere, and it is short."""

import re
import shlex
from pathlib import Path

import snippets
from click.testing import CliRunner

from rejoint.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_code_prints_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert snippets.run(README) == 2
    commands = re.findall(r"^rejoint .*survey.rejoint.*$", TEXT, re.MULTILINE)
    assert len(commands) == 2
    for line in commands:  # they go on with the file that the code has saved
        result = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
        assert result.exit_code == 0, result.output
    assert Path("survey.html").stat().st_size > 1e5


def test_the_first_page_is_short():
    lines = TEXT.splitlines()
    assert len(lines) <= 120
    assert any("pip install ." in line for line in lines[:25])


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []
