"""Errors and remarks speak of Python's arguments: here they become options."""

import re

__all__ = ["in_options"]

_SWAPS = [
    (r"bins=\{'([^']*)': (\d+)\}", r"--bins '\1=\2'"),
    (r"bins=\{'([^']*)': \[\.\.\.\]\}", r"--bins '\1=0,10,20'"),
    (r"bins=\{'([^']*)': None\}", r"--bins '\1=none'"),
    (r"\bheader=\[\.\.\.\]", "--names"),
    (r"\bkinds, levels or bins speak\b", "--ordinal, --levels or --bins speak"),
    (
        r"\b(delimiter|encoding|format|missing|rank|order|subsets|sample|solver)=(?=[ ),.;?]|$)",
        r"--\1",
    ),
    (r"\bsolver='(\w+)' was asked for", r"--solver \1 was asked for"),
    (r"\bm\.disagreements\(\) lists all\. ", "rejoint inspect shows more. "),
    (
        r"\bidentifiability\.jacobian decides it locally",
        "rejoint identify --local decides it locally",
    ),
    (r"\(identifiability\.plan says which\)", "(rejoint identify --plan says which)"),
    (r"; pmf\.reduce\(\)", ""),
    (r" Models are written by LowRankPMF\.save\.", " Models are written by rejoint fit."),
    (r"; give a domain to encode an empty table", ""),
    (r"; align the model with pmf\.align\([^)]*\)", ""),
]


def in_options(text: str) -> str:
    """The same in the terms of the command line.

    Examples
    --------
    >>> in_options("Say bins={'age': 5} for another number of bins.")
    "Say --bins 'age=5' for another number of bins."
    >>> in_options("or say delimiter=.")
    'or say --delimiter.'
    """
    for pattern, words in _SWAPS:
        text = re.sub(pattern, words, text)
    return text
