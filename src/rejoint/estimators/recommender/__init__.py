"""Ratings of items by users: predicted, recommended, bundled and explained.

joint_recommender  JointRecommender
ratings            ratings in any form, read into one
feature_table      features of users and items, as numbers
traits             users and items as points: how both are sampled
choice_model       what users choose
rating_model       how they rate it
trait_model        both, fitted, and asked about any user
trait_file         recommenders as contents of files
best_set           the items that are most probably liked all together
"""
