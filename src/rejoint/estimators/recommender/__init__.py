"""Recommendation of items from ratings: predictions, bundles and explanations.

joint_recommender  JointRecommender
ratings            ratings in any form read into one
traits             users and items as points: how both are sampled
trait_model        what users choose and how they rate it, fitted, and asked about any user
trait_file         recommenders as contents of files
"""
