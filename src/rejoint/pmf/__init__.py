"""LowRankPMF: the joint of many discrete variables as one small immutable object.

pmf             LowRankPMF: from and to dense, parts of it, save, load
mixture         its state: weights, factors, domain; validated once
draws           posterior draws that a model carries, compact
credible        bounds over draws
evidence        names and levels into classes and factors
answers         questions by name and level: marginal, prob, expect, mode, table
record_answers  questions about whole records: log_prob, classes, sample
asking          questions in the query language
replies         Answer: what such a question came to
rendering       answers as text and HTML
information     entropies and mutual information
labelled        answers with labels: Mode, frames
dense           any dense joint as an exact mixture; exact joining of classes
reduction       a smaller model for the same joint
"""

from rejoint.pmf.answer import Answer
from rejoint.pmf.draws import Draws
from rejoint.pmf.pmf import LowRankPMF, load
from rejoint.pmf.reduce import Reduction
from rejoint.pmf.to_frame import Mode

__all__ = ["Answer", "Draws", "LowRankPMF", "Mode", "Reduction", "load"]
