"""Estimators for scikit-learn.

joint_pmf   JointPMF: the joint of all columns
judgements  what a fitted estimator says of rows
reading     X as scikit-learn's users pass it, to records
tables      the fit from counted tables, and the order they need
streaming   one chunk of records after another, in bounded memory
profiles    what each class looks like, as a frame
classifier  JointClassifier: features reads X and targets y; classifier_fits, tuning choose and fit,
            discriminative is the solver, label_starts where it begins, label_shares predicts
imputer     JointImputer: missing cells filled; cells reads them, filling and completing fill them
predictive  the model that predictions are made with
recommender JointRecommender: users x items; advice for one user is in advice
ratings     ratings in any form, to cells; rating_levels, rating_fits, rating_model, rating_scores
traits      users as points in a space; trait_steps has the Newton steps of the items
fold_in     what a user's ratings say of the others
bundles     the items that are most probably liked all together
"""

from rejoint.estimators.classifier import JointClassifier
from rejoint.estimators.discriminative import Conditional
from rejoint.estimators.imputer import JointImputer
from rejoint.estimators.joint_pmf import JointPMF
from rejoint.estimators.recommender import JointRecommender
from rejoint.estimators.traits import Traits

__all__ = [
    "Conditional",
    "JointClassifier",
    "JointImputer",
    "JointPMF",
    "JointRecommender",
    "Traits",
]
