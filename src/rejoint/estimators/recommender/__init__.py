"""Ratings of items by users: predicted, recommended, bundled and explained.

joint_recommender  JointRecommender
ratings            ratings in any form, read into one
fit_ratings        from ratings to a model
traits             the solver: users as points in a space of traits
rating_model       predictions from what users have rated, and their scores
best_set           the items that are most probably liked all together
"""
