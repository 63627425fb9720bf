"""Code blocks of README and docs: run in order, and held to the output that is printed below."""

import contextlib
import io
import re
import textwrap
import warnings
from pathlib import Path
from typing import NamedTuple

#: Shares that depend on posterior draws differ between kinds of BLAS; so much is let pass.
TOLERANCE = 0.03
DECIMAL = re.compile(r"\d*\.\d+(?![.\d])")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(
    r"^( *)\.\. code-block:: (\S+)\n((?:\1    ?:.*\n)*)\n((?:(?:\1   .*)?\n)+)", re.MULTILINE
)


class Block(NamedTuple):
    """A block of code or of output, and the line where it begins."""

    language: str
    text: str
    line: int


def blocks(path: Path) -> list[Block]:
    """Blocks of a page in Markdown or reStructuredText, without those of class ``no-run``."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        parts = [(m[1], m[2], m.start(2)) for m in FENCE.finditer(text)]
    else:
        shown = [m for m in DIRECTIVE.finditer(text) if "no-run" not in m[3]]
        parts = [(m[2], textwrap.dedent(m[4]), m.start(4)) for m in shown]
    return [Block(language, body, text.count("\n", 0, at) + 1) for language, body, at in parts]


def run(path: Path) -> int:
    """Run the Python blocks of a page in one namespace; return how many there are.

    A block of text that follows must be what the code prints, up to ``...``, white space, and a
    small difference of decimals.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    printed, count = None, 0
    for language, text, line in blocks(path):
        if language == "python":
            code = compile("\n" * (line - 1) + text, str(path), "exec")
            out = io.StringIO()
            with contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks on the data
                exec(code, names)
            printed, count = out.getvalue(), count + 1
        elif language == "text" and printed is not None:
            place = f"{path.name}, line {line}"
            assert agree(text, printed), f"{place}: the code above prints\n{printed}"
            printed = None
        else:
            printed = None
    return count


def agree(shown: str, printed: str) -> bool:
    """Whether an output is as shown; ``...`` stands for anything, decimals may differ a bit."""
    decimals = [float(number) for number in DECIMAL.findall(shown)]
    parts = [re.escape(part) for part in DECIMAL.sub("\0", shown).split()]
    pattern = r"\s+".join(parts).replace(re.escape("..."), ".*?").replace("\0", r"(\d*\.\d+)")
    match = re.fullmatch(rf"\s*{pattern}\s*", printed, re.DOTALL)
    return match is not None and all(
        abs(float(number) - decimal) <= max(TOLERANCE, TOLERANCE * decimal)
        for number, decimal in zip(match.groups(), decimals, strict=True)
    )
