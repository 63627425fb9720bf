"""LowRankPMF, the joint distribution of many discrete variables.

pmf                LowRankPMF
draws              Draws, Interval: posterior draws and credible intervals
compact            classes of many models merged into the few of one
table_gap          TableGap: a table in which model and records differ beyond chance
ask                answers to questions in the query language
counts             Counts: records of a fit, or small tables of them
composite          count and model together: composite answers
answer             Answer, and its text and HTML
answer_basis       what an answer of a model from tables rests on, and its range
given_tables       GivenTables: the tables that a model was fitted to
to_frame           Mode; tables as frames
entropy            entropies and mutual information
from_dense         an exact model of any dense joint; exact joins of classes
"""

from rejoint.pmf.answer import Answer
from rejoint.pmf.draws import Draws, Interval
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.to_frame import Mode

__all__ = [
    "Answer",
    "Draws",
    "Interval",
    "LowRankPMF",
    "Mode",
]
