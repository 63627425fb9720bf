"""The command line: data on stdout, remarks and progress on stderr, one file per command.

group      commands that are imported when they run; errors, remarks and Ctrl-C
options    options that several commands share, and the files they name
output     rows, tables, pictures and models written to a file or to stdout
raw_table  data files as they are written, beside what a model makes of them
"""

import click

from rejoint import __version__
from rejoint.cli.group import LazyGroup, echo

#: Commands by section, each with its line in ``rejoint --help``, which imports none of them.
COMMANDS = {
    "Learn a model": {
        "fit": "Learn a model from records with missing values.",
        "fit-target": "Learn to predict a column from the others.",
        "fit-ratings": "Learn what users like from ratings.",
        "check-tables": "Show how published tables are understood.",
        "fit-tables": "Learn a model from published tables.",
        "tables": "Count records into cross-tables.",
        "rank": "Compare numbers of classes.",
    },
    "Ask it": {
        "ask": "Answer questions in the query language.",
        "sample": "Draw records from a model.",
        "inspect": "Show classes, profiles and fit of a model.",
        "compare": "Measure how far apart two models are, and where.",
        "identify": "Show which models the tables determine.",
    },
    "Use it on data": {
        "predict": "Predict a column from the others.",
        "impute": "Fill empty cells.",
        "score": "Compute how probable records are.",
        "recommend": "Recommend items by a model of ratings.",
        "population": "Make synthetic records that meet tables.",
        "rake": "Weight a survey so that it meets tables.",
    },
    "Show it": {
        "report": "Write a one-page report about a model.",
        "explore": "Open a model in the browser.",
        "export": "Write the explorer, or the model, as one file.",
        "demo": "Recover the Asia network from records with missing values.",
    },
}

EPILOG = """\b
Start here:
  rejoint fit patients.csv -o patients.rejoint
  rejoint ask patients.rejoint "P(lung | smoke = yes)"

\b
Exit codes: 0 done; 1 failed (the last line on stderr says why); 2 invalid usage; 3 ended by
Ctrl-C, the best model so far is written; 4 the limit of --within is exceeded; 130 ended by
Ctrl-C, nothing is written."""


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from rejoint.kernels import backend  # other calls need no kernels yet

        echo(f"rejoint, version {__version__} ({backend} kernels)")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    sections=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version, and which kernels run.",
)
def main() -> None:
    """Recover the joint probability of many discrete variables from pieces.

    The pieces are records with missing values (CSV, Parquet, ...) or published tables. Data go to
    stdout or to -o, remarks and progress to stderr; - stands for stdin and stdout.
    """
