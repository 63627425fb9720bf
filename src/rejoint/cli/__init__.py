"""The command line: data on stdout, remarks and progress on stderr, one file per command.

group     commands that are imported when they are asked for; errors and remarks in words
wording   errors and remarks, which speak of Python, in the terms of the command line
options   options that several commands share, and what they make of files
output    rows and models written to a file or to stdout, whole or not at all
display   tables and numbers for people
forecast  what a fit will take
sections  what the HTML report says; page and pictures make it
raw       data files as they are written, beside what a model makes of them
"""

import click

from rejoint import __version__
from rejoint.cli.group import LazyGroup

COMMANDS = {
    "Learn a model": ["fit", "fit-tables", "tables", "rank"],
    "Ask it": ["ask", "sample", "inspect", "compare", "identify"],
    "Use it on data": ["predict", "impute", "score", "recommend", "population", "rake"],
    "Show it": ["report", "explore", "export", "demo"],
}

EPILOG = """\b
Start here:
  rejoint fit patients.csv -o patients.rejoint
  rejoint ask patients.rejoint "P(lung | smoke = yes)"

\b
Exit codes: 0 done; 1 failed (the last line on stderr says why); 2 not understood; 3 ended by
Ctrl-C, the best model so far is written; 4 a limit given by --within is not kept; 130 ended by
Ctrl-C, nothing is written."""


@click.group(
    cls=LazyGroup,
    sections=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="rejoint")
def main() -> None:
    """Recover the joint probability of many discrete variables from pieces.

    The pieces are records with holes (CSV, Parquet, ...) or published tables. Data go to stdout or
    to -o, remarks and progress to stderr; - stands for stdin and stdout.
    """
