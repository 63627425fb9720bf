"""Policy: every tuned number of a fit to records, in one place.

Benchmarks vary it, and ``result.policy`` says which one a fit used.
"""

from dataclasses import dataclass, field, fields
from math import inf

from rejoint.records.infer import DEFAULT_RULE, ColumnRule
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class Policy:
    """Tuned numbers of :func:`rejoint.estimate` and :func:`rejoint.rank.select`.

    The comment above each field gives its unit, its meaning and, where it was measured, why it has
    this value. Nothing here changes what is estimated, only how well and how quickly it is found.

    Examples
    --------
    >>> Policy().most_starts
    30
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
    # The same in the first passes: long early moves lead to other maxima, and take more passes.
    early_move: float = 0.2
    # Passes that count as early.
    early_passes: int = 20
    # Expected count below which a probability falls no faster than under EM: one that a long move
    # has taken to zero has no slope left to return by.
    small_count: float = 0.3
    # Passes for which that holds.
    careful_passes: int = 60
    # Nats: rise of the log-likelihood over ten steps below which a fit has converged.
    em_nats: float = 1e-4

    # -- Starts -----------------------------------------------------------------------------
    # Values of distinct records x classes that all starts together may cost a pass, and the range
    # of their number. Of 40 starts of crowd labels 6 found the best optimum in 63 to 80 % of cases,
    # 20 in 99 %; "until the best two agree" in 48 to 94 %, since poor optima are popular.
    start_budget: int = 20_000_000
    fewest_starts: int = 3
    most_starts: int = 30
    # Share of a new class that is the record it grows from; the cautious one allows for noise.
    faithful_blend: float = 0.8
    cautious_blend: float = 0.5
    # EM steps at each size of a growing model, which doubles.
    growth_steps: int = 5
    # Share of a vote that a record has for each label beside its own votes.
    vote_doubt: float = 0.1
    # How far all starts are followed, then the better ones of them; the best ones are followed to
    # the end.
    glimpse: Limits = field(default=Limits(max_steps=20, progress=1e-6, window=5, exact=-1.0))
    explore: Limits = field(default=Limits(max_steps=60, progress=1e-6, window=5, exact=-1.0))
    # Share of the starts before it that may be better than one that is followed further, beside
    # one of them, after either. On nine random models (N = 5, I = 10, F = 5 to 15, M = 1,000 to
    # 100,000) 20 starts found the best optimum of 40 in 86 % of cases by 1,280 passes; 60 passes of
    # each start and then the best one alone found it in 72 % by 1,280, all to the end in 92 %
    # by 3,320.
    kept_starts: tuple[float, float] = (1 / 3, 0.0)
    # Nats: optima that differ by less are the same one, and are nearly as good.
    same_nats: float = 0.1
    near_nats: float = 2.0
    # Share of the records in other classes from which two optima are different findings.
    other_classes: float = 0.1
    # Cells x classes of a pass that is worth a thread for each start: smaller ones spend their
    # time in the interpreter, of which there is one; larger ones use threads themselves.
    smallest_threaded_pass: int = 100_000
    largest_threaded_pass: int = 20_000_000

    # -- The end of a fit ---------------------------------------------------------------------
    # Times that probabilities near zero are lifted to see whether they return, and the largest
    # pass (cells x classes) to do so.
    lifts: int = 5
    largest_lifted_pass: int = 4_000_000
    # Share of each variable's own distribution that lifts them.
    lift: float = 0.01
    # Nats that a lift must gain to be tried again.
    lift_nats: float = 1e-3
    # Records: the smallest classes that together stand for no more than this are dropped. At a
    # maximum of the likelihood a class is as large as the records that it explains, so these
    # explain less than one record, and the log-likelihood falls by less than -log(1 - r) - r, which
    # is 0.19 for half a record, 0.02 for a fifth.
    negligible_records: float = 0.5
    # Nats: where dropping them costs more than that bound, the model is not at a maximum and
    # they stay.
    negligible_nats: float = 0.2
    # Weight below which a class is empty whatever the number of records, and distance below which
    # two columns are the same.
    empty_weight: float = 1e-9
    same_column: float = 1e-6
    # Variational steps to the concentrations of the prior, at most.
    concentration_steps: int = 50

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
    # Starts that are followed to find modes for chains to start at, at the least and at the most;
    # more where records are few: a chain stuck in a poor mode spoils the mean. On halves of CAR
    # (864 records, rank 8) 20 starts in place of 6 raised the held-out log-likelihood by 0.009 per
    # record.
    modes: int = 6
    most_modes: int = 30
    # Nats: modes that are less probable than the best by more are no starts of chains.
    mode_nats: float = 10.0
    # Records a parameter from which chains move so little that they must start at a finished mode.
    finished_mode_records_per_parameter: float = 100.0
    # Standard deviation of the proposals for log s.
    concentration_stride: float = 0.5
    # Share of the sweeps that propose them: on 400 x 500 binary records proposals took four tenths
    # of a sweep.
    concentration_share: float = 0.5
    # Classes of the posterior mean for each class of a chain (pmf/compact.py). With two the error
    # of 20 random models of rank 15 is 1.0004 of that of the mean of all draws on average, at worst
    # 1.006, and asking costs 1.4 times as much as of one model; with three 0.999, 1.004 and 1.7.
    answer_classes: float = 2.0
    # EM passes over the records from the compacted mean, and the weight of that mean as prior, in
    # multiples of the records. The passes regain what merging classes loses. A small prior fits
    # noise: on half of HEART (151 records) the training log-likelihood is 0.017 per record above
    # that of the mean of all sweeps with 20, and 0.204 with 5, which costs 0.018 on the other half.
    # On halves of nine real sets 20 comes out at the mean of all draws or above it, on average.
    anchored_passes: int = 2
    anchor_records: float = 20.0
    # The same where the rank was not given and an ensemble of chains answers. Held-out likelihoods
    # of eleven wide sets had their knee at three to four times the rank with these passes; without
    # them there was none below sixteen times.
    ensemble_classes: float = 4.0
    # The second weight is tried with the chains that win, and taken by chains from a mode that is
    # far ahead. With agreement, 1, 2, 4, 8 and 16 gave
    # -281.1, -279.2, -278.4, -278.1 and -278.0 per record on 400 x 500 binary records, -52.55,
    # -52.44, -52.39, -52.37 and -52.36 on 9,000 x 100, but -94.31, -94.09, -94.17, -94.36 and
    # -94.55 on 1,600 x 180, -7.751, -7.755, -7.760, -7.762 and -7.763 on CAR. Where the model's
    # form is right it must lead by a standard error: else errors of random models of 1,000
    # records are larger by 1 %.
    ensemble_records: tuple[float, float] = (8.0, 2.0)
    # Classes of the model that answers, and of any rank that is searched, at the most: what
    # ``max_classes`` of `estimate` says; without it nothing but the data limits them.
    most_classes: float = inf

    # -- Agreement with the tables of two variables --------------------------------------------
    # On half of each of twelve surveys (762 to 6,791 records), judged by the other half: the RMSE
    # of shares in dense tables of two variables is 0.94 of that of the shares counted in the first
    # half, the log-likelihood per record 0.022 higher than without agreement.
    # Whether what answers is moved towards the tables, and draws are spread by what they demand:
    # the argument ``agreement`` of `estimate`. The tables are looked at either way.
    agreement: bool = True
    # Levels of all variables beyond which nothing is moved, and tables of some variables only are
    # looked at: those that tell most for each level, with this many levels together.
    pair_levels: int = 1000
    # Records x levels squared beyond which tables are of a sample of the records.
    pair_cells: float = 4e10
    # Weight of the model as its own prior, in multiples of the records that tables have. With
    # 0.005, 0.02, 0.05, 0.2 and 1 (seven surveys, one split, 1.4 times that while classes are
    # divided) the RMSE is 0.923, 0.926, 0.937, 0.970 and 1.013, the log-likelihood 0.104 and 0.001
    # lower, 0.061, 0.048 and 0.016 higher than without agreement.
    pair_anchor: float = 0.05
    # EM steps towards the tables: the objective is then within a nat of its end.
    pair_steps: int = 12
    # Times that all classes are divided by the levels of the variable whose tables are met worst,
    # and the anchor then. Without it the RMSE is 0.972, and on one survey 1.21 of that of counting;
    # with two, three and four rounds 0.944, 0.940 and 0.937, the log-likelihood 0.025, 0.021 and
    # 0.014 higher (tables judged with their margins). Of seven surveys and two sets with derived
    # columns (one split) anchors of 0.15, 0.1 and 0.07 give 0.955, 0.951 and 0.948, the
    # log-likelihood 0.035, 0.031 and 0.029 higher; TV16, met worst, has 1.030, 1.014 and 1.001.
    pair_rounds: int = 3
    pair_anchor_divided: float = 0.07
    # EM steps then: on TV16, bfi, HealthInsurance and gss_spending (one split) 4, 6, 8 and 12 give
    # 0.984, 0.978, 0.960 and 0.958, the log-likelihood 0.013 and 0.014 higher than with 8, and
    # 0.006 lower. Two surveys kept aside were looked at as well, and say the same.
    pair_steps_divided: int = 8
    # Levels squared x classes beyond which classes are not divided.
    pair_cells_divided: float = 3e8
    # Standard deviations of a chi-square statistic above its mean from which a table is said to
    # differ beyond chance, and tables that a model keeps note of.
    gap_errors: float = 5.0
    gaps_kept: int = 20

    # -- Records beyond memory ------------------------------------------------------------------
    # Cells of the sample that a fit starts from, and the range of its number of records.
    sample_cells: int = 16_000_000
    fewest_sampled: int = 20_000
    most_sampled: int = 500_000
    # Nats: rise of the log-likelihood over ten passes below which a streamed fit has converged.
    # Parameters are then within a hundredth of their standard errors; more costs many passes.
    streamed_nats: float = 1e-2
    # Chains, and their sweeps: they start at the maximum, and answers are nearly independent from
    # draw to draw, so that some 100 sweeps are enough (docs/scale.rst).
    streamed_chains: int = 2
    streamed_burn_in: int = 20
    streamed_draws: int = 20
    streamed_thin: int = 2

    # -- Smooth columns -------------------------------------------------------------------------
    # Diffusion times to try, from the one in the middle on, for a variable of 15 levels, and as the
    # square of their number for others; the standard deviation is the root of twice the time.
    smooth_times: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0)
    # Folds to hold out, records beyond which one of them is enough, distinct records that are
    # looked at, and classes of the fits that are compared, all at most.
    smooth_folds: int = 3
    one_fold_records: int = 2_000
    smooth_rows: int = 5_000
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
    # Ranks tried: spaced by less than 1.5, noise alone makes two in a row no better.
    ranks_tried: tuple[int, ...] = (
        *(1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000, 3000, 5000),
    )
    # Ratio of the largest rank of all to the one tried before it, at the least, where that is above
    # ``few_classes``: of 3,000 x 163 binary records 200 cost nearly as much as 240, the largest.
    cap_ratio: float = 1.25
    # Ranks in a row that are no better by a standard error, after which a curve ends.
    flat_ranks: int = 2
    # The rank from which the ensemble's curve ends where it is behind the mode's, too.
    least_judged_rank: int = 8
    # Records that judge, at the least: all five folds of few records, one of many.
    judging_records: float = 500.0
    # Distinct rows to learn from and to judge by, at most. On 100,000 records of rank 10 5,000,
    # 20,000 and all rows found the same rank, in 0.8, 2.3 and 5.7 s.
    learn_rows: int = 20_000
    judge_rows: int = 5_000
    # Records for each class, at the least.
    records_per_class: float = 10.0
    # Cells x classes that the passes of a search go through at most, some 20 s of computing; and
    # how many passes a rank counts for.
    search_cells: float = 6e10
    passes_per_rank: float = 100.0
    # What a pass costs beside the records, in cells: for each level of a class (random numbers and
    # logarithms of gamma functions take some 130 ns), and in the interpreter.
    cells_per_level: float = 400.0
    cells_per_pass: float = 5e5
    # What a whole fit may cost: full fits of the largest rank tried (``passes_per_rank`` passes
    # over all records), or cells x classes where these are quick, some 10 s of computing; and the
    # shares of it that ranks that are tried and the chains of the run-off and of the answer may
    # take, and of what is left of it those that are merged and refined. Parts that judge are given
    # up first.
    full_fits: float = 6.0
    quick_cells: float = 3e10
    tried_share: float = 0.3
    merged_share: float = 0.5
    refined_share: float = 0.9
    chains_share: float = 0.15
    # Chains of a trial, their sweeps, and the sweeps that count for the ensemble: the first of
    # them and the step to the next. A chain of sweeps costs half as much as steps of EM.
    trial_chains: int = 2
    trial_sweeps: int = 25
    trial_keep: int = 9
    trial_thin: int = 4
    # Ranks up to which there are more chains, for the mode; and how many.
    few_classes: int = 12
    many_trial_chains: int = 4
    # Sweeps of chains that only look for a mode.
    short_sweeps: int = 15
    # EM steps from the best end of a chain to the mode, and the relative rise over ten steps below
    # which they end.
    polish_steps: int = 12
    polish_progress: float = 1e-5
    # Standard errors below the best at which a smaller ensemble is as good.
    ensemble_errors: float = 0.5
    # Cells x classes that merging may cost.
    merge_cells: float = 2e10
    # Largest rank from which classes are merged one by one; pairs that are tried, and EM steps of
    # each and of the best.
    largest_merged: int = 50
    merged_pairs: int = 2
    merge_trial_steps: int = 4
    merge_steps: int = 12

    # -- Chains that answer where the rank is not given --------------------------------------------
    # Chains from random starts, and from a mode where sweeps are dear.
    chains: int = 8
    few_chains: int = 3
    # Classes of chains from random starts, at the least, where there are ten records for each.
    # Where one class is chosen, chains of one class would say that all variables are independent
    # beyond doubt: on 16 random models (N = 5, I = 10, F = 10, 1,000 records) 85 % of the 90 %
    # intervals held the truth, 52 % where one class was chosen. With 2, 4 and 8 classes here 87.0,
    # 88.2 and 88.9 %, and the error was 0.3676, 0.3665 and 0.3683 (0.3688 without). Of independent
    # variables (N = 6, I = 4) the error was 0.132, 0.144 and 0.145 (0.120), coverage 94, 95, 95 %.
    fewest_chain_classes: int = 4
    # Classes of the chains that bounds rest on, for each class of chains from a mode of at most
    # ``largest_best`` classes that answer. Of three random models (N = 5, I = 10, F = 10, 10,000
    # records) 90 % intervals held the truth in 88.3 % of 180 cases, and in 86.1 % with 1.
    bounds_classes: float = 1.5
    # Sweeps that a chain may have, and the cells x classes of all chains together that candidates
    # of the run-off, and chains from a mode, may cost.
    sweeps_tried: tuple[int, ...] = (20, 40, 80, 160)
    run_off_cells: float = 2e9
    mode_cells: float = 6e9
    # Standard errors by which the mode must be ahead to be taken without a run-off, and the
    # ensemble for ranks of modes not to be refined: it is behind on random models (-2 to -13 of
    # them), ahead on wide records (10 on 1,600 x 180).
    sure_errors: float = 3.0
    # Standard errors by which chains may be behind the winner of the run-off and still answer with
    # it. Of twelve random models (20 variables of 2 or 3 levels, F = 10, 30 % missing, 1,000
    # records) the error is 1.008 of that at the known rank with 2, at worst 1.023; 1.015 and 1.050
    # with 1.
    pooled_errors: float = 2.0
    # Largest rank chosen that is refined on all records, and EM steps of the model to merge from.
    # Of 30 random models (10 to 20 variables of 2 to 4 levels, ranks 3 to 25, 10,000 to 40,000
    # records) 28 true ranks are found. Of 30 others, an earlier version found all, and 25 where a
    # best score above 25 was not refined.
    largest_best: int = 30
    refine_steps: int = 80
    # Cells x classes that this may cost.
    refine_cells: float = 2e10
    # Records of which one judging part is added to the first two: five parts of few records. Beyond
    # that many, one part alone does not judge.
    refine_records: float = 1e5
    # Chains from random starts, beside the mode of the search, that look for the representative
    # model, up to how many classes there are several; and EM steps to it, and to the model that
    # chains start at.
    representative_chains: int = 4
    several_chains_rank: int = 10
    representative_steps: int = 80
    # Cells x classes that these steps may cost, and those to the concentrations of its prior: at
    # 12,758 x 111 binary records, rank 800, they took three times as long as a fit.
    representative_cells: float = 4e9

    # -- Rank -----------------------------------------------------------------------------------
    # Share of the best rank down to which gaps around it are closed.
    rank_gap: float = 0.1
    # Nats over ten steps below which a fit has converged: ranks differ by tens of them.
    rank_nats: float = 0.3
    # Rows beyond which as many are drawn for criteria of fits to all records.
    most_rows: int = 1_000_000
    # Sparse variational Bayes: pseudo-count of a class, first number of classes (which doubles),
    # and expected records that a class needs to be kept.
    sparse_pseudo_count: float = 0.3
    first_cap: int = 8
    least_records: float = 1.0

    def __str__(self) -> str:
        """One line a number."""
        return "\n".join(f"{each.name} = {getattr(self, each.name)}" for each in fields(self))


#: The numbers that are used unless others are given.
DEFAULT = Policy()
