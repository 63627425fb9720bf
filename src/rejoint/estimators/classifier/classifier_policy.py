"""ClassifierPolicy: every tuned number of JointClassifier, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassifierPolicy:
    """Tuned numbers of :class:`rejoint.JointClassifier`.

    The comment above each field gives its unit, its meaning and, where it was measured, why it has
    this value; ``benchmarks/classify`` measures what each is worth.

    Examples
    --------
    >>> ClassifierPolicy().members
    3
    >>> ClassifierPolicy().count_bins(400), ClassifierPolicy().count_bins(1e6)
    (20, 64)
    """

    # -- Members ----------------------------------------------------------------------------
    # Models of each part, each with another fold held out and other bins. 5 cost 1.6 times as
    # much and are no better beyond noise on 20 sets.
    members: int = 3
    # Records beyond twice which settings are chosen on a sample of this many.
    enough_records: int = 50_000

    # -- Columns ----------------------------------------------------------------------------
    # Bins of an ordered column in a member: the root of the number of records, at most this many.
    # 16 in place of 64 raise the log-loss on 15,000 diamonds from .59 to .70.
    most_bins: int = 64
    # Precision of each level of an ordered column beside that of differences between neighbors.
    level_precision: float = 0.1
    # Precision of differences, for each level: a straight line then costs what its slope over one
    # standard deviation does, however many levels there are.
    difference_precision: float = 1 / 12

    # -- Parts ------------------------------------------------------------------------------
    # Hidden classes of each label, and of all labels together.
    classes: int = 8
    most_classes: int = 64
    # Records from which the part for labels and features gives labels given features this weight
    # beside the likelihood of both; one below and where there are rules. With 25 % of the features
    # missing the log-loss on 4,000 records of churn is .01 lower than with one; below 2,000 records
    # it is higher, by .025 on votes.
    many_records: int = 3000
    label_emphasis: float = 4.0
    # Combinations of labels of several targets that have classes of their own.
    most_profiles: int = 20
    # Scales of the prior for the part with one class for each label, from strong to weak. Eight are
    # no better beyond noise on 15 sets.
    plain_scales: tuple[float, ...] = (0.2, 0.8, 3.2)
    # Scales for deviations of classes of the same label, from weak to strong: the other way they
    # stay at the saddle where all are alike. The second line is for the part for labels and
    # features: begun at 1 its classes differ too little. Begun at 2, the log-loss with 25 % of the
    # features missing is .154 in place of .177 (digits), .285 (.297, churn), .479 (.486, OJ).
    class_scales: tuple[float, ...] = (1.0, 0.25)
    joint_scales: tuple[float, ...] = (2.0, 0.5)
    # Largest scale of what classes of a label have in common where features are learned, too.
    joint_common: float = 1.0
    # Standard deviation of these deviations at the start, in units of the prior.
    start_spread: float = 0.3
    # Steps at each scale and on all records, and at the first scale with several classes or after
    # a choice on a sample.
    steps: int = 20
    first_steps: int = 40
    # Nats a record: a step that gains less is the last one.
    least_gain: float = 1e-5

    # -- Rules ------------------------------------------------------------------------------
    # Rules over categories (CAR, NURSERY) are learned from a fresh start with almost no prior. It
    # is tried where deviations are best at their first scale, and always without numbers: on one of
    # ten splits of NURSERY they are best at .25, and rules are missed (error .007). Scales, start
    # and steps at each scale; there are up to twice as many classes.
    rule_scales: tuple[float, ...] = (4.0, 32.0)
    rule_spread: float = 0.2
    rule_steps: int = 60
    # Fresh starts of each member on all records, which are averaged: log-loss of CAR .028 with two
    # (ten folds), .026 with four.
    rule_starts: int = 4
    # Held-out loss, relative to that without rules, below which rules are used.
    rule_gain: float = 0.9

    # -- Average ----------------------------------------------------------------------------
    # Shares of missing values that divide rows into kinds, each with its own weights. Four limits
    # are no better beyond noise on 15 sets with 25 % and 60 % of the features missing.
    missing_limits: tuple[float, ...] = (0.0, 0.3)
    # Least probability of a label in the held-out loss, so that one outlier does not decide.
    least_probability: float = 1e-3
    # Weight in the average below which a part is left out: it takes time to predict and is wrong at
    # times, as straight lines along collinear columns are where one of these is missing (diamonds).
    least_weight: float = 0.05

    # -- The joint --------------------------------------------------------------------------
    # Weight of the labels given the features beside the joint likelihood, and scales from strong to
    # weak.
    pmf_label_weight: float = 0.1
    pmf_scales: tuple[float, ...] = (1.0, 4.0)

    def count_bins(self, records: float) -> int:
        """Return the bins of an ordered column in one member."""
        return int(min(max(records**0.5, 2), self.most_bins))


DEFAULT_CLASSIFIER_POLICY = ClassifierPolicy()
