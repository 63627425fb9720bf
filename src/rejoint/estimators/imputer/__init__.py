"""Missing cells filled in the caller's own frame.

imputer     JointImputer
cells       which cells are missing, and how the columns are to be read
filling     values for them, by mode, joint mode, draw or expectation
completing  the frame with its gaps closed, dtypes and categories kept
donors      numbers that stand for bins
"""

from rejoint.estimators.imputer.joint_imputer import JointImputer

__all__ = ["JointImputer"]
