"""Imputation of missing values in the caller's own frame.

joint_imputer   JointImputer
cell_model      what a missing cell holds: the joint's answer, or that of a learner
row_completion  rows completed by latent classes and by a normal distribution
column_learner  a column from others: regressions, trees, and the distribution around them
fill            missing cells filled by expectation, mode, joint mode or draw, in any kind of table
pool            estimates from several completed tables as one
"""
