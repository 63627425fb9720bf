"""LowRankPMF, the joint distribution of many discrete variables.

pmf         LowRankPMF, load
draws       Draws, Posterior, Interval: posterior draws and credible intervals
ask         answers to questions in the query language
answer      Answer, and its text and HTML
to_frame    Mode; tables as frames
entropy     entropies and mutual information
from_dense  an exact model of any dense joint; exact joins of classes
"""

from rejoint.pmf.answer import Answer
from rejoint.pmf.draws import Draws, Interval, Posterior
from rejoint.pmf.pmf import LowRankPMF, load
from rejoint.pmf.to_frame import Mode

__all__ = ["Answer", "Draws", "Interval", "LowRankPMF", "Mode", "Posterior", "load"]
