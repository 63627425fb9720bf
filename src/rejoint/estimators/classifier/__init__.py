"""Prediction of labels from features that may have missing values.

joint_classifier   JointClassifier
classifier_policy  ClassifierPolicy: its tuned numbers
features           X, its columns of numbers binned, and y: one column of labels or several
design             how features enter scores: smooth columns, straight lines, bins of a member
label_likelihood   likelihood of labels given features and of both, maximized
fit_classifier     the parts of the classifier, their paths, their weights, the joint
label_ensemble     LabelEnsemble: probabilities of labels, averaged over models
label_explanation  LabelExplanation: what each feature contributes to a prediction
"""
