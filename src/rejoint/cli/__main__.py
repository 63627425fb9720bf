"""``python -m rejoint.cli``: the command line where its script is not on the path."""

from rejoint.cli import main

main(prog_name="rejoint")
