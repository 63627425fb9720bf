"""Estimators for scikit-learn.

joint_pmf   JointPMF: the joint of all columns
judgements  what a fitted estimator says of rows
reading     X as scikit-learn's users pass it, to records
tables      the fit from counted tables, and the order they need
streaming   one chunk of records after another, in bounded memory
profiles    what each class looks like, as a frame
predictive  the model that predictions are made with
classification  JointClassifier
imputation      JointImputer
recommendation  JointRecommender
"""

from rejoint.estimators.classifier import Conditional, JointClassifier
from rejoint.estimators.imputer import JointImputer
from rejoint.estimators.joint_pmf import JointPMF
from rejoint.estimators.recommender import JointRecommender, Traits

__all__ = [
    "Conditional",
    "JointClassifier",
    "JointImputer",
    "JointPMF",
    "JointRecommender",
    "Traits",
]
