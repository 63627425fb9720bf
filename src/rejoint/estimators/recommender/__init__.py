"""Ratings of items by users: predicted, recommended, bundled and explained.

recommender  JointRecommender
advice       what it says to one user
ratings      ratings in any form, to cells
levels       which ratings there are, and their order
fits         from cells to a model
traits       users as points of a space of traits; trait_steps has the Newton steps of the items
model        predictions of a fitted model
fold_in      what a user's ratings say of the others
bundles      the items that are most probably liked all together
scores       how good predictions are
"""

from rejoint.estimators.recommender.joint_recommender import JointRecommender
from rejoint.estimators.recommender.traits import Traits

__all__ = ["JointRecommender", "Traits"]
