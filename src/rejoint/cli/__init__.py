"""The command line: data on stdout, remarks and progress on stderr, one file per command."""

import click

from rejoint import __version__
from rejoint.cli import demo, explore, export


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rejoint")
def main() -> None:
    """Recover the joint probability of many discrete variables from pieces."""


main.add_command(demo.command)
main.add_command(explore.command)
main.add_command(export.command)
