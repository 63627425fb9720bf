"""LowRankPMF, the joint distribution of many discrete variables.

pmf             LowRankPMF
target_model    TargetModel: a joint, and an ensemble that predicts some variables; load
label_ensemble  LabelEnsemble: probabilities of labels, averaged over models
label_explanation  LabelExplanation: what each feature contributes to a prediction
draws           Draws, Posterior, Interval: posterior draws and credible intervals
ask             answers to questions in the query language
answer          Answer, and its text and HTML
to_frame        Mode; tables as frames
entropy         entropies and mutual information
from_dense      an exact model of any dense joint; exact joins of classes
"""

from rejoint.pmf.answer import Answer
from rejoint.pmf.draws import Draws, Interval, Posterior
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.target_model import TargetModel, load
from rejoint.pmf.to_frame import Mode

__all__ = [
    "Answer",
    "Draws",
    "Interval",
    "LowRankPMF",
    "Mode",
    "Posterior",
    "TargetModel",
    "load",
]
