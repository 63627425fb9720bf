"""Missing values filled in the caller's own frame.

joint_imputer        JointImputer
cell_model           what a missing cell holds: the joint's answer, or that of a learner
class_members        latent class models, each fitted without some of the cells
incomplete_gaussian  a normal distribution from rows that miss values
kernel_ridge         a number from other columns
level_logistic       the levels of a category from other columns
number_spread        the distribution of a number around its prediction
fill                 missing cells filled by expectation, mode, joint mode or draw
patch                the frame with these values, dtypes and categories kept
pool                 estimates from several completed tables as one
"""
