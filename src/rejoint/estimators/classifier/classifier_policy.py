"""ClassifierPolicy: every tuned number of JointClassifier, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ClassifierPolicy:
    """Tuned numbers of :class:`rejoint.JointClassifier`.

    The comment above each field gives its unit, its meaning and, where it was measured, why it has
    this value; :doc:`/tasks` has the table of what each is worth. Benchmarks vary it.

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
    # Records below which none are held out, and beyond which settings are chosen on a sample.
    fewest_records: int = 20
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
    most_classes: int = 48
    # Records from which the part for labels and features has more classes of each label, and
    # weight of labels given features beside the likelihood of both from then on; one below and
    # where there are rules. With 25 % of the features missing the log-loss is .823 in place of .861
    # on 12,000 diamonds, .307 (.322) on 4,000 records of churn, .381 (.383) on INCOME; below 2,000
    # records it is rather worse.
    many_records: int = 3000
    joint_classes: int = 16
    label_emphasis: float = 4.0
    # Combinations of labels of several targets that have classes of their own.
    most_profiles: int = 20
    # Scales of the prior for the part with one class for each label, from strong to weak.
    plain_scales: tuple[float, ...] = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
    # Scales for deviations of classes of the same label, from weak to strong: the other way they
    # stay at the saddle where all are alike. The second line is for the part for labels and
    # features: begun at 1 its classes differ too little. Begun at 2, the log-loss with 25 % of the
    # features missing is .154 in place of .177 (digits), .285 (.297, churn), .479 (.486, OJ).
    class_scales: tuple[float, ...] = (1.0, 0.5, 0.25, 0.12)
    joint_scales: tuple[float, ...] = (2.0, 1.0, 0.5, 0.25, 0.12)
    # Largest scale of what classes of a label have in common where features are learned, too.
    joint_common: float = 1.0
    # Standard deviation of these deviations at the start, in units of the prior.
    start_spread: float = 0.3
    # Steps at each scale, and at the first one with several classes.
    steps: int = 20
    first_steps: int = 40
    # Nats a record: a step that gains less is the last one.
    least_gain: float = 1e-5
    # Moves that a quasi-Newton step looks back on.
    memory: int = 10

    # -- Rules ------------------------------------------------------------------------------
    # Rules over categories (CAR, NURSERY) are learned from a fresh start with almost no prior. It
    # is tried where deviations are best at this scale or a weaker one, and always without numbers:
    # on one of ten splits of NURSERY they are best at .25, and rules are missed (error .007).
    rule_trigger: float = 0.5
    # Classes of each label and of all together, their scales, start and steps at each scale.
    rule_classes: int = 16
    most_rule_classes: int = 160
    rule_scales: tuple[float, ...] = (4.0, 32.0)
    rule_spread: float = 0.2
    rule_steps: int = 60
    # Fresh starts of each member on all records, which are averaged: of CAR single ones have a
    # log-loss of .025 to .047 and three together .024. Going on from the records learned from is
    # worse (.035).
    rule_starts: int = 2
    # Held-out loss, relative to that without rules, below which rules are used.
    rule_gain: float = 0.7

    # -- Average ----------------------------------------------------------------------------
    # Shares of missing values that divide rows into kinds, each with its own weights. A row that
    # misses a sixth needs other weights than one that misses a quarter: with (0, 1/3) the log-loss
    # with 25 % of the features missing is .307 in place of .294 (churn), .129 (.119, digits).
    missing_limits: tuple[float, ...] = (0.0, 0.15, 0.35, 0.6)
    # Least probability of a label in the held-out loss, so that one outlier does not decide.
    least_probability: float = 1e-3
    # Weight in the average below which a part is left out: it takes time to predict and is wrong at
    # times, as straight lines along collinear columns are where one of these is missing (diamonds).
    least_weight: float = 0.05
    # Steps of the last fit to all records, where settings were chosen on all of them, and on a
    # sample.
    refit_steps: int = 20
    sample_refit_steps: int = 60

    # -- The joint --------------------------------------------------------------------------
    # Weight of the labels given the features beside the joint likelihood, scales from strong to
    # weak, and steps at each.
    pmf_label_weight: float = 0.1
    pmf_scales: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    pmf_steps: int = 30

    def count_bins(self, records: float) -> int:
        """Return the bins of an ordered column in one member."""
        return int(min(max(records**0.5, 2), self.most_bins))


DEFAULT_CLASSIFIER_POLICY = ClassifierPolicy()
