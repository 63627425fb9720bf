"""Labels told from features that may have holes.

classifier   JointClassifier
features     X, its columns of numbers cut into bins
targets      y: one column of labels or several
labelled     records with labels: the problem, and its prior
conditional  the solver: conditional likelihood of the labels, the joint one beside it
starts       where it begins: naive Bayes, several classes for each label
tuning       settings judged by what is held out
fits         settings chosen, models trained, one of them for the joint
shares       probabilities of labels, averaged over models
"""

from rejoint.estimators.classifier.conditional import Conditional
from rejoint.estimators.classifier.joint_classifier import JointClassifier

__all__ = ["Conditional", "JointClassifier"]
