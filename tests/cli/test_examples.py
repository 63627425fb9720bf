"""The examples of every command's help, as they stand there."""

import shlex
import subprocess
import sys

import click
import pytest

from rejoint.cli import main

SERVED = "rejoint explore"  # which waits for Ctrl-C: tests/explorer has it


def examples():
    with click.Context(main) as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            for line in (command.epilog or "").splitlines():
                if line.startswith("  rejoint ") and not line.startswith(f"  {SERVED}"):
                    yield line.strip()


@pytest.mark.parametrize("line", list(examples()))
def test_example_runs(line, run, world):
    if "<" in line.replace("<5", ""):
        shell = line.replace("rejoint", f"{shlex.quote(sys.executable)} -m rejoint.cli", 1)
        done = subprocess.run(shell, shell=True, cwd=world, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return
    _, *words = shlex.split(line)
    result = run(*words)
    assert result.exit_code == 0, result.output
    if "-o" in words and "--dry-run" not in words:
        assert (world / words[words.index("-o") + 1]).exists()


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_every_command_has_help_with_examples(name, run):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert len(result.stdout.splitlines()) < 110


def test_group_help_lists_every_command_and_the_exit_codes(run):
    text = run("--help").stdout
    assert "..." not in text.partition("Learn a model:")[2].replace("P(...)", "")
    for name in main.list_commands(click.Context(main)):
        assert f"  {name} " in text
    for code in ("0 done", "1 failed", "2 invalid usage", "3 ended", "4 the limit", "130"):
        assert code in text
