"""What the scripts share: cells that are kept once done, and the parts of a report.

cells       one result of one setting; the file they are kept in; running those that lack
experiment  a table or figure of the paper: its cells, what is expected of them, how it is shown
parts       sections of text, tables and figures
runs        how long a run from nothing took
rendering   sections as Markdown, HTML and reStructuredText
"""

from paper.framework.cells import Cell, Done
from paper.framework.experiment import Expected, Experiment, Unavailable
from paper.framework.parts import Figure, Glance, Section, Table, Text, save_figure, spread

__all__ = [
    "Cell",
    "Done",
    "Expected",
    "Experiment",
    "Figure",
    "Glance",
    "Section",
    "Table",
    "Text",
    "Unavailable",
    "save_figure",
    "spread",
]
