"""Estimators for scikit-learn.

joint_pmf   JointPMF: the joint of all columns
judgements  what a fitted estimator says of rows
reading     X as scikit-learn's users pass it, to records
tables      the fit from counted tables, and the order they need
streaming   one chunk of records after another, in bounded memory
profiles    what each class looks like, as a frame
classifier  JointClassifier: features reads X and targets y; classifier_fits, tuning choose and fit,
            discriminative is the solver, label_starts where it begins, label_shares predicts
predictive  the model that predictions are made with
imputation      JointImputer
recommendation  JointRecommender
"""

from rejoint.estimators.classifier import JointClassifier
from rejoint.estimators.discriminative import Conditional
from rejoint.estimators.imputation import JointImputer
from rejoint.estimators.joint_pmf import JointPMF
from rejoint.estimators.recommendation import JointRecommender, Traits

__all__ = [
    "Conditional",
    "JointClassifier",
    "JointImputer",
    "JointPMF",
    "JointRecommender",
    "Traits",
]
