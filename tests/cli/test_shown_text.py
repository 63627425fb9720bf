"""Labels, notes and names of files may have any characters: none of them steers what shows them."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rejoint as rj
from rejoint import cli

ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b31m\u202e"
BAD = [char for char in ESCAPE if char in "\x1b\x07\x9b\u202e"]
NAME, LEVELS = f"a{ESCAPE}", (f"x{ESCAPE}", "=cmd|' /C calc'!A0", "$\\frac{1}$", "-5")


@pytest.fixture
def hostile(world):
    domain = rj.Domain.of({NAME: list(LEVELS), "b": ["u", "v"]})
    factors = [[[0.4, 0.1], [0.3, 0.2], [0.2, 0.3], [0.1, 0.4]], [[0.5, 0.2], [0.5, 0.8]]]
    pmf = rj.LowRankPMF([0.5, 0.5], factors, domain)
    names = [f"class{ESCAPE}", "other"]
    notes = {"class_names": names, "stop": ESCAPE, "choice": ESCAPE, "source": ESCAPE}
    name = f"m{ESCAPE}.rejoint"
    pmf.save(name, notes=notes)
    rows = "".join(f'"{level}",{b}\n' for level in LEVELS for b in "uv")
    Path("hostile.csv").write_text(f"{NAME},b\n{rows}")
    return name


def in_terminal(words):
    """Run a command on a terminal of its own; return what reached it."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    code = "import sys; from rejoint.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "dumb"},
    )  # fmt: skip
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 2**16)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    process.wait()
    return b"".join(parts).decode()


COMMANDS = [
    ["ask", "{}", "P(b)", f"P(`{NAME}`)"],
    ["ask", "{}", "nonsense\x1b[31m("],
    ["inspect", "{}"],
    ["inspect", "{}", "--json"],
    ["identify", "{}"],
    ["predict", "{}", "hostile.csv", "--target", "b"],
    ["sample", "{}", "-n", "5"],
    ["score", "{}", "hostile.csv", "--classes"],
    ["compare", "{}", "{}"],
    ["impute", "{}", "hostile.csv"],
    ["fit", "hostile.csv", "-o", "again\x1b[31m.rejoint", "--rank", "1", "--solver", "ml"],
    ["fit", "no\x1b[31mfile.csv", "-o", "x.rejoint"],
    ["frobnicate\x1b[31m"],
    ["--no\x1b[31m"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:1]))
def test_no_escape_reaches_people(run, hostile, words):
    done = run(*(word.format(hostile) if word == "{}" else word for word in words))
    data = words[0] in ("predict", "sample", "score", "impute") or "--json" in words
    shown = done.stderr if data else done.output  # data in a pipe are as they are
    assert not any(char in shown for char in BAD), shown
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_no_escape_of_data_reaches_a_terminal(hostile):
    shown = in_terminal(["predict", hostile, "hostile.csv", "--target", NAME])
    assert "\ufffd" in shown
    assert "\x9b" not in shown
    assert "]0;owned\x07" not in shown


def test_only_the_gate_prints():
    """Commands print by ``echo``, ``show_table`` and ``open_output``."""
    folder, found = Path(cli.__file__).parent, []
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("click.echo", "print", "sys.stdout.write", "sys.stderr.write"):
                    found.append((path.name, called))
    assert found == [("group.py", "click.echo"), ("output.py", "click.echo")]


def test_formulas_are_disarmed_for_spreadsheets(run, hostile):
    for options in ([], ["--spreadsheet"]):
        done = run("sample", hostile, "-n", 60, *options)
        assert "=cmd" in done.stdout
        assert "\n-5," in done.stdout
        assert ("\n'=cmd" in done.stdout) == bool(options)


def test_pictures_show_any_label(hostile):
    path = Path("hostile.svg")
    pytest.importorskip("matplotlib")
    pmf = rj.load(hostile)
    rj.plots.factors(pmf).figure.savefig(path)
    assert ElementTree.parse(path).getroot().tag.endswith("svg")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
@pytest.mark.parametrize("command", ["ask asia.rejoint 'P(smoke)'", "inspect asia.rejoint"])
def test_closed_streams(world, command, closed):
    text = f"{sys.executable} -m rejoint.cli {command} {closed}"
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if ">&-" in closed.split() else 0), done.stderr
    if closed == ">&-":
        assert "'standard output': It is closed." in done.stderr
