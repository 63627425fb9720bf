"""Policy: every tuned number of a fit to records, in one place.

Benchmarks vary it, and ``result.policy`` says which one a fit used.
"""

from dataclasses import dataclass, field, fields
from math import inf
from typing import Any

from rejoint.records.infer import DEFAULT_RULE, ColumnRule
from rejoint.solver.solver import Limits


@dataclass(frozen=True, repr=False)
class Policy:
    """Tuned numbers of :func:`rejoint.estimate` and :func:`rejoint.rank.select`.

    The comment above each field gives its unit, its meaning and, where it was measured, why it has
    this value. Nothing here changes what is estimated, only how well and how quickly it is found.

    Examples
    --------
    >>> Policy().start_range
    (3, 30)
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(200, random_state=0)
    >>> policy = Policy(explore=Limits(max_steps=5))
    >>> result = rj.estimate(data, 2, "ml", n_init=2, policy=policy, random_state=0)
    >>> result.policy.explore.max_steps
    5
    """

    # -- Columns ------------------------------------------------------------------------------
    # What a column is and how many bins it gets, where nothing is declared; its own comments say
    # what was measured.
    columns: ColumnRule = field(default=DEFAULT_RULE)

    # -- EM ---------------------------------------------------------------------------------
    # Steps: plain EM steps before quasi-Newton ones, whose model does not hold far from a maximum.
    plain_steps: int = 5
    # Moves that L-BFGS looks back on.
    em_memory: int = 20
    # Largest move of a logit.
    largest_move: float = 2.0
    # Nats: rise of the log-likelihood over ten steps below which a fit has converged.
    em_nats: float = 1e-4

    # -- Starts -----------------------------------------------------------------------------
    # Values of distinct records x classes that all starts together may cost a pass, and the range
    # of their number. Of 40 starts of crowd labels 6 found the best optimum in 63 to 80 % of cases,
    # 20 in 99 %; "until the best two agree" in 48 to 94 %, since poor optima are popular.
    start_budget: int = 20_000_000
    start_range: tuple[int, int] = (3, 30)
    # Share of a new class that is the record it grows from.
    seed_share: float = 0.5
    # EM steps at each size of a growing model, which doubles.
    growth_steps: int = 5
    # How far all starts are followed; those that at most one before them is better than are
    # followed to the end.
    explore: Limits = field(default=Limits(max_steps=30, progress=1e-6, window=5, exact=-1.0))
    # Cells x classes of a pass that is worth a thread for each start: smaller ones spend their
    # time in the interpreter, of which there is one; larger ones use threads themselves.
    threaded_pass: tuple[int, int] = (100_000, 20_000_000)
    # Records: the smallest classes that together stand for no more than this are dropped. At a
    # maximum of the likelihood a class is as large as the records that it explains, so these
    # explain less than one record, and the log-likelihood falls by less than -log(1 - r) - r, which
    # is 0.19 for half a record; where it falls by more, they stay.
    negligible_records: float = 0.5

    # -- Prior --------------------------------------------------------------------------------
    # Median of the concentration's hyperprior in units of the number of levels, and its standard
    # deviation in log s. With a flat hyperprior small samples drift to infinite concentration, that
    # is to independence, where a moderate one finds the structure.
    concentration_median: float = 2.0
    concentration_spread: float = 0.5
    # Range of concentrations.
    concentration_range: tuple[float, float] = (0.1, 1e6)

    # -- Bayes --------------------------------------------------------------------------------
    # Records a parameter from which solver="auto" maximizes the likelihood: there the chance error
    # of some draws outweighs their gain. At 1,451 (N = 5, I = 10, F = 15, 1,000,000 records) the
    # mean of the draws still is 1 % better; at 4,366 (F = 5) it is 2 % worse.
    plenty_records_per_parameter: float = 2000.0
    # Starts that are followed to find modes for chains to start at, at the least: a chain stuck in
    # a poor mode spoils the mean. On halves of CAR (864 records, rank 8) 20 starts in place of 6
    # raised the held-out log-likelihood by 0.009 per record.
    modes: int = 6
    # Nats: modes that are less probable than the best by more are no starts of chains.
    mode_nats: float = 10.0
    # Standard deviation of the proposals for log s, and share of the sweeps that propose them: on
    # 400 x 500 binary records proposals took four tenths of a sweep.
    concentration_stride: float = 0.5
    concentration_share: float = 0.5
    # Classes of the posterior mean for each class of a chain from a mode, and from random starts.
    # From a mode, the error of 20 random models of rank 15 is 1.0004 of that of the mean of all
    # draws with two; from random starts held-out likelihoods of eleven wide sets had their knee
    # at three to four.
    answer_classes: tuple[float, float] = (2.0, 4.0)
    # EM passes over the records from the compacted mean, which regain what merging classes loses,
    # and the weight of that mean as prior, in multiples of the records. A small prior fits noise:
    # on half of HEART (151 records) the training log-likelihood is 0.017 per record above
    # that of the mean of all sweeps with 20, and 0.204 with 5, which costs 0.018 on the other half.
    anchored_passes: int = 2
    anchor_records: float = 20.0
    # The same from random starts: the one that held-out records prefer. With 1, 2, 4, 8 and 16 they
    # had -281.1, -279.2, -278.4, -278.1 and -278.0 per record on 400 x 500 binary records, but
    # -94.31, -94.09, -94.17, -94.36 and -94.55 on 1,600 x 180.
    ensemble_records: tuple[float, ...] = (8.0, 2.0)
    # Classes of the model that answers, and of any rank that is searched, at the most: what
    # ``max_classes`` of `estimate` says; without it nothing but the data limits them.
    most_classes: float = inf

    # -- Agreement with the tables of two variables --------------------------------------------
    # Whether what answers is moved towards the tables, and draws are spread by what they demand:
    # the argument ``agreement`` of `estimate`. The tables are looked at either way.
    agreement: bool = True
    # Records below which levels of a variable are pooled in the tables, and the levels of all
    # variables that tables have at most: more levels are pooled, or variables left out.
    rare_records: float = 20.0
    pair_levels: int = 1000
    # Records x levels squared beyond which tables are of a sample of the records.
    pair_cells: float = 4e10
    # Weights of the model as its own prior, in multiples of the records that tables have; the first
    # where no records are held out. The smallest is taken that does not lower the likelihood of
    # held-out records. On halves of bfi, Chile, yrbss, gss_spending and CollegeDistance the error
    # of pairs is 0.93, 0.87, 1.03, 0.97 and 0.97 of that of counting with 0.05, 0.88, 0.84, 0.97,
    # 0.94 and 0.90 with 0.005, and the log-likelihood of the other half higher by 0.15, 0.03, 0.04,
    # 0.15 and 0.05, and lower by 0.17, -0.04, -0.01, 0.01 and 0.17.
    pair_anchors: tuple[float, ...] = (0.02, 0.05, 0.01, 0.005, 0.0025)
    # EM steps towards the tables: with 100 on eleven files no figure differs by more than 1 %.
    pair_steps: int = 60
    # Moves that these steps look back on: with 6 the tables of 884 classes are as near as with 20
    # (objective higher by 1e-6 and 9e-7 of itself), at half the cost.
    pair_memory: int = 6
    # -- Blocks ---------------------------------------------------------------------------------
    # Which variables are tabulated jointly within classes: the argument ``blocks`` of `estimate`.
    blocks: Any = "auto"
    # Nats that a table must gain over the classes alone for its variables to form a block.
    block_nats: float = 5.0
    # Nats for each record that a table must gain over few classes for its block to be in place
    # while classes are fitted. Pairs that a class or two explain gain up to .06, copies with 10 %
    # of noise and questions with a follow-up .25 to .8.
    placed_nats: float = 0.05
    # Cells of the table of a block: the same for each record, but not below the second number and
    # not above the third, which keeps draws in memory (each has the table in each of its classes).
    block_cells: tuple[float, float, float] = (0.125, 400.0, 1000.0)
    # Groups of the levels of a member at the most, below ``block_records`` records and from there.
    block_groups: tuple[int, int] = (8, 14)
    block_records: float = 1000.0
    # Standard deviations of a chi-square statistic above its mean from which a table is said to
    # differ beyond chance, and tables that a model keeps note of.
    gap_errors: float = 5.0
    gaps_kept: int = 20

    # -- Records beyond memory ------------------------------------------------------------------
    # Cells of the sample that a fit starts from, and the range of its number of records.
    sample_cells: int = 16_000_000
    sampled_records: tuple[int, int] = (20_000, 500_000)
    # Nats: rise of the log-likelihood over ten passes below which a streamed fit has converged.
    # Parameters are then within a hundredth of their standard errors; more costs many passes.
    streamed_nats: float = 1e-2
    # Chains, sweeps before the first draw, draws, and sweeps between them: chains start at the
    # maximum, and answers are nearly independent from draw to draw (docs/evidence/scale.rst).
    streamed_chains: tuple[int, int, int, int] = (2, 20, 20, 2)

    # -- Smooth columns -------------------------------------------------------------------------
    # Diffusion times to try, from the one in the middle on, for a variable of 15 levels, and as the
    # square of their number for others; the standard deviation is the root of twice the time.
    smooth_times: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0)
    # Folds to hold out, as many as hold ``judging_records``, and classes of the fits that are
    # compared, both at most.
    smooth_folds: int = 3
    smooth_rank: int = 8
    # Ratio of the concentration of hidden columns: they must be sharper than what is observed, and
    # neighbors already hold them in place. Samples of 50 penguins, 100 workers and 50 irises (5
    # each), held-out log-likelihood per record: 0.35 -12.436, -14.610, -9.378; 0.15 -12.223,
    # -14.502, -9.306; 0.07 -12.169, -14.624, -9.276; not smooth -12.896, -15.111, -9.627.
    smooth_concentration: float = 0.15
    # Standard deviation of the concentration's hyperprior in log s where columns are smooth: the
    # concentrations of all variables then follow the data further. The same samples, and 300
    # voters: 0.5 -12.225, -14.421, -9.318, -12.633; 1 -12.028, -14.308, -9.161, -12.628 (4 each).
    # On random models, whose columns are not smooth, 1 makes errors 0.2 to 5 % larger.
    smooth_spread: float = 1.0

    # -- Search for a rank ------------------------------------------------------------------------
    # Ratio of one rank tried to the one before: with less than 1.5, noise alone makes two in a row
    # no better.
    rank_ratio: float = 1.6
    # Ranks in a row that are no better by a standard error, after which a curve ends.
    flat_ranks: int = 2
    # Records that judge, at the least: all five folds of few records, one of many.
    judging_records: float = 500.0
    # Distinct rows to learn from and to judge by, at most. On 100,000 records of rank 10 5,000,
    # 20,000 and all rows found the same rank, in 0.8, 2.3 and 5.7 s.
    learn_rows: int = 20_000
    judge_rows: int = 5_000
    # Records for each class, at the least.
    records_per_class: float = 10.0
    # Cells x classes that the passes of a search go through at most, some 20 s of computing; and
    # those of ``mode_classes`` classes on all folds, of which there are fewer where it is more.
    search_cells: float = 6e10
    fold_cells: float = 3e9
    # What a pass costs beside the records, in cells: for each level of a class (random numbers and
    # logarithms of gamma functions take some 130 ns), and in the interpreter.
    pass_overhead: tuple[float, float] = (400.0, 5e5)
    # Chains of a trial, and the sweeps that count for the ensemble, the last of which ends a chain.
    # A chain of sweeps costs half as much as steps of EM.
    trial_chains: int = 2
    trial_kept: range = range(8, 25, 4)
    # EM steps from the best end of a chain to the mode.
    polish: Limits = field(default=Limits(max_steps=12, progress=1e-5, window=10, exact=-1.0))
    # Steps over all records from the mode of a fold to the model whose classes are looked at.
    representative_steps: int = 25
    # Standard errors below the best at which a smaller ensemble is as good.
    ensemble_errors: float = 0.5
    # Largest rank from which classes are merged one by one; pairs that are tried, and EM steps of
    # each. Of 8 random models 1 true rank is found without merging, 6 with it.
    largest_merged: int = 50
    merge_tries: tuple[int, int] = (2, 4)

    # -- Chains that answer where the rank is not given --------------------------------------------
    # Chains from random starts; one alone loses 0.05 to 0.21 nats per record on two sets.
    chains: int = 8
    # Cells x classes that all sweeps of these chains may cost, and the range of their number.
    chain_cells: float = 2e9
    chain_sweeps: tuple[int, int] = (20, 160)
    # Classes of chains, at the least, where there are ten records for each. Where one class is
    # chosen, chains of one class would say that all variables are independent beyond doubt: on 16
    # random models (N = 5, I = 10, F = 10, 1,000 records) 85 % of the 90 % intervals held the
    # truth, 52 % where one class was chosen. With 2, 4 and 8 classes here 87.0, 88.2 and 88.9 %.
    fewest_chain_classes: int = 4
    # Classes of a mode that answers by itself where it is ahead of the ensemble by two standard
    # errors, as where labels follow rules, at the least.
    mode_classes: int = 30

    # -- Rank by other criteria -------------------------------------------------------------------
    # Share of the best rank down to which gaps around it are closed.
    rank_gap: float = 0.1
    # Nats over ten steps below which a fit has converged: ranks differ by tens of them.
    rank_nats: float = 0.3

    def __repr__(self) -> str:
        """Show what differs from the defaults: signatures print it."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        default = {each.name: each.default for each in fields(self)}
        shown = [f"{name}={value!r}" for name, value in own.items() if value != default[name]]
        return f"Policy({', '.join(shown)})"

    def __str__(self) -> str:
        """One line a number."""
        return "\n".join(f"{each.name} = {getattr(self, each.name)}" for each in fields(self))


#: The numbers that are used unless others are given.
DEFAULT = Policy()
