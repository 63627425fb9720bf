"""Labels predicted from features that may miss values.

joint_classifier  JointClassifier
features          X, its columns of numbers binned, and y: one column of labels or several
conditional       the solver: conditional likelihood of the labels plus the joint one; its starts
tune              settings chosen by held-out labels, and the models trained with them
"""
