"""The page on the command line: its sessions are what the commands print."""

import difflib
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import click
import pytest

from rejoint.cli import main

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def recorded(world):
    spec = importlib.util.spec_from_file_location("cli_sessions", DOCS / "cli_sessions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make_data(world)
    return module.SESSIONS


def parts(text):
    """What is printed below each command."""
    found = re.split(r"(?m)^\$ (.*)\n", text)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def masked(text):
    return [re.sub(r"-?\d[\d,.]*(e[+-]\d+)?|inf", "#", line).split() for line in text.splitlines()]


def test_sessions(recorded, run):
    """In the order of the page: one goes on with the files of another."""
    for title in ("first", "tables", "data", "target"):
        told = parts((DOCS / "_static" / f"cli-{title}.txt").read_text(encoding="utf-8"))
        assert list(told) == recorded[title]
        for line, text in told.items():
            if line.startswith("rejoint"):
                check(line, text, run)


def check(line, text, run):
    result = run(*shlex.split(line)[1:])
    assert ("exit code" in text) == (result.exit_code != 0)
    now = masked(result.stderr + result.stdout)
    then = [words for words in masked(text) if words and words[0] != "[exit"]
    words = [[word for row in rows for word in row] for rows in (now, then)]
    # Numbers are left out, and rows that are nearly equal may change places elsewhere.
    assert difflib.SequenceMatcher(None, *words, autojunk=False).ratio() > 0.9, line


def test_the_page_names_every_command_and_exit_code():
    text = (DOCS / "reference" / "cli.rst").read_text(encoding="utf-8")
    for name in main.list_commands(click.Context(main)):
        assert f"``{name}" in text
    for code in (0, 1, 2, 3, 4, 130):
        assert f"\n    * - {code}\n" in text


def test_the_page_tells_every_note():

    notes = sys.modules["rejoint.io.fit_notes"]
    told = re.findall(r"(?m)^``(\w+)``", notes.__doc__)
    text = (DOCS / "reference" / "cli.rst").read_text(encoding="utf-8")
    assert len(told) > 10
    for name in told:
        assert f"``{name}``" in text
