"""Load what ``save`` wrote: a joint model, or a fitted estimator."""

from os import PathLike
from typing import TYPE_CHECKING

from rejoint.io.model_file import read_saved

if TYPE_CHECKING:
    from rejoint.estimators.classifier.joint_classifier import JointClassifier
    from rejoint.estimators.imputer.joint_imputer import JointImputer
    from rejoint.estimators.recommender.joint_recommender import JointRecommender
    from rejoint.pmf.pmf import LowRankPMF


def load(
    path: str | PathLike[str],
) -> "LowRankPMF | JointClassifier | JointImputer | JointRecommender":
    """Read what ``save`` wrote; no code in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    LowRankPMF, JointClassifier, JointImputer or JointRecommender
        Equal to the saved one bit by bit, with the posterior draws in the file. That of a fit
        (:meth:`FitResult.save`, ``rejoint fit``) has counts of records, so that its ``ask`` answers
        as that of the result: ``with_counts(None)`` is the joint alone. The files of a classifier
        (:meth:`JointClassifier.save`, ``rejoint fit-target``), of an imputer
        (:meth:`JointImputer.save`, ``rejoint impute --save``) and of a recommender
        (:meth:`JointRecommender.save`, ``rejoint fit-ratings``) are fitted ones, whose ``pmf_`` is
        the joint.

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.load("no-such-file.rejoint")
    Traceback (most recent call last):
    ...
    FileNotFoundError: No model file 'no-such-file.rejoint'...
    """
    saved = read_saved(path)
    kind = None if saved.estimator is None else saved.estimator.kind
    # All of these are later layers, and scikit-learn takes a second to import.
    if kind == "imputer":
        from rejoint.estimators.imputer.joint_imputer import JointImputer

        return JointImputer.of_saved(saved)
    if kind == "recommender":
        from rejoint.estimators.recommender.joint_recommender import JointRecommender

        return JointRecommender.of_saved(saved, str(path))
    if saved.ensemble is not None:
        from rejoint.estimators.classifier.joint_classifier import JointClassifier

        return JointClassifier.of_saved(saved)
    from rejoint.pmf.pmf import LowRankPMF

    return LowRankPMF.of_saved(saved)
