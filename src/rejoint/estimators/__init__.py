"""Estimators with scikit-learn's interface, loaded when first used because scikit-learn is slow.

joint_pmf      JointPMF: the joint probability of all columns
partial_fit    one chunk of records after another, in bounded memory
classifier/    JointClassifier: labels from features that may miss values
imputer/       JointImputer: missing values filled in the caller's own frame
recommender/   JointRecommender: ratings predicted, recommended, bundled and explained
sklearn_input  X as users of scikit-learn pass it, read into records
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rejoint.text import cite

if TYPE_CHECKING:
    from rejoint.estimators.classifier.classifier_policy import ClassifierPolicy as ClassifierPolicy
    from rejoint.estimators.classifier.joint_classifier import JointClassifier as JointClassifier
    from rejoint.estimators.imputer.joint_imputer import JointImputer as JointImputer
    from rejoint.estimators.imputer.pool import PooledEstimate as PooledEstimate
    from rejoint.estimators.imputer.pool import pool as pool
    from rejoint.estimators.joint_pmf import JointPMF as JointPMF
    from rejoint.estimators.recommender.joint_recommender import (
        JointRecommender as JointRecommender,
    )
    from rejoint.estimators.recommender.traits import TraitPolicy as TraitPolicy

_HOMES = {
    "ClassifierPolicy": "classifier.classifier_policy",
    "JointClassifier": "classifier.joint_classifier",
    "JointImputer": "imputer.joint_imputer",
    "JointPMF": "joint_pmf",
    "JointRecommender": "recommender.joint_recommender",
    "PooledEstimate": "imputer.pool",
    "TraitPolicy": "recommender.traits",
    "pool": "imputer.pool",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rejoint.estimators' has no attribute {cite(name)}")
    return getattr(import_module(f"rejoint.estimators.{_HOMES[name]}"), name)
