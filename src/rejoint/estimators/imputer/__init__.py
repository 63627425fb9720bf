"""Missing values filled in the caller's own frame.

joint_imputer  JointImputer
fill           levels for missing cells, by mode, joint mode, draw or expectation
patch          the frame with these values, dtypes and categories kept
"""
