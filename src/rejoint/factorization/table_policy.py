"""TablePolicy: the tuned numbers of fits to tables."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TablePolicy:
    """Tuned numbers of a fit to tables; each with its unit, its meaning and why it has this value.

    Examples
    --------
    >>> TablePolicy().met
    1e-08
    """

    #: Share of a table's mass in wrong cells up to which it counts as met.
    met: float = 1e-8

    #: Share of a table's mass in wrong cells above which no joint meets all tables: sweeps that
    #: ended there went round in circles.
    unmet: float = 1e-5

    #: Part of the distance that chance makes which a sweep may still move in tables of a sample.
    #: Triples of 6,480 records (84 tables): unpublished tables are .0651 from those of other
    #: records after 47 sweeps, .0649 after 372.
    settled: float = 0.01

    #: Share of a table's total that rounding to whole numbers may move, for that to be what tables
    #: are taken to be that contradict each other.
    most_rounded: float = 0.1

    #: Sweeps over all tables at the most, before a completion is left as it is.
    max_sweeps: int = 2000

    #: Sweeps before acceleration begins: most completions are done by then.
    plain_sweeps: int = 10

    #: Sweeps at the most that go to rounded numbers themselves, before any number within their
    #: bounds will do. Tables of 42 random joints: unpublished ones 1.025 times as far as by plain
    #: IPF without such sweeps, 1.016 with 10, 1.001 with up to 50.
    max_central_sweeps: int = 50

    #: Part of the distance of the sweep before above which sweeps to rounded numbers gain nothing.
    flat_central_sweep: float = 0.99

    #: Last sweeps that the next start is extrapolated from.
    sweep_memory: int = 8

    #: Times the distance of the last sweep beyond which an extrapolated start is taken back.
    worse_sweep: float = 2.0

    #: Numbers in the mixture of a completion, classes times (one + levels outside the cover): more
    #: take .3 s a sweep and 200 to 400 MB, so that the completion is approximated instead.
    most_numbers: int = 2_000_000

    #: Numbers in the model of a completion, classes times (one + levels of all variables): 128 MB
    #: in memory. A file has level numbers in place of the unit columns: 15 MB for 262,144 classes
    #: over ten variables of 4 levels, .9 MB for 16,384 over eight. A question to the former takes
    #: 15 ms.
    most_model_numbers: int = 2**24

    #: Records that are assumed for shares without a number of records, where noise matters.
    assumed_records: int = 10_000

    #: What the count of a cell varies by at least, in squared records: a single record where a
    #: model expects none is no proof against it.
    least_count: float = 0.5

    #: Spread of coefficients of one, two, three, .. variables that their estimate begins at.
    first_taus: tuple[float, ...] = (1.0, 0.5, 0.3, 0.2)

    #: The least and the largest spread of coefficients of effects.
    tau_bounds: tuple[float, float] = (0.02, 8.0)

    #: Coefficients by which the variance of a set of variables is pulled towards that of its order.
    #: Of 4, 2, 1 and .3 more are better on log-linear joints, fewer on real ones, each by 1 %.
    shared: float = 1.0

    #: Variance of the logarithm of the variance of a set of variables, around that of its order.
    set_variance: float = 0.5

    #: Power of the step of MacKay's rule.
    over_relaxed: float = 1.5

    #: Records that independence expects in a cell, above which no record there means zero: at
    #: first, and where zeros are plain to see.
    kept_zeros: tuple[float, float] = (5.0, 1.0)

    #: Logarithm of the evidence that zeros gain where they are. Of pairs of 864 cars and of 4,062
    #: mushrooms it is about 100, of log-linear joints at most 2.
    zeros_gain: float = 10.0

    #: Logarithm of the evidence that each zero costs that is kept.
    zero_cost: float = 1.0

    #: Sweeps of IPF before the first estimate of variances.
    first_sweeps: int = 20

    #: Rounds of estimates of variances, and those within one.
    most_rounds: int = 12
    inner_rounds: int = 8

    #: Effects up to which there are so many; beyond, each inverse takes a tenth of a second and
    #: more, so that there are fewer rounds with one estimate each.
    quick_effects: int = 700
    fewer_rounds: int = 4
    zero_rounds: int = 2

    #: Change of logarithms of variances, or of twice the log-posterior, that ends the rounds.
    still: float = 0.05

    #: Share of the largest singular value below which one of an unfolding of exact tables is zero.
    rank_zero: float = 1e-9

    #: Share of a table's mass in wrong cells up to which a low rank meets exact tables.
    identified_met: float = 1e-7

    #: Rounds in which a table is raked to the shares of its variables.
    most_rakes: int = 100

    #: Standard deviations above which a table's shares of single variables are of another time.
    older_score: float = 10.0

    #: Steps of EM from each start of a rank, and steps of scoring from the best of them.
    first_steps: int = 60
    rank_steps: int = 25

    #: Steps of scoring for the rank that is chosen.
    final_steps: int = 100

    #: Parameters of a low rank for each independent published number, at the most. Beyond one the
    #: evidence still holds: what the tables leave open has its prior.
    most_parameters: float = 1.5

    #: Models that are averaged where the tables leave the chosen rank open, those whose evidence is
    #: within this of the best, and the total variation below which they are alike.
    open_members: int = 3
    like_evidence: float = 5.0
    like_models: float = 0.005

    #: Logarithm of the evidence by which Laplace's method undervalues classes, and what it is
    #: uncertain by: at one mode it does not see the others. Of 33 sampled sets the 12 of low rank
    #: had at least -11, the 12 log-linear ones at most -42.
    undervalued: float = 10.0
    evidence_spread: float = 5.0

    #: Share of a model below which it is left out of a mean.
    least_share: float = 0.05

    #: Share of classes at the most, where tables leave each of them open and do not hold all pairs
    #: of variables; and that of models of many classes in the rest. Unpublished tables of 28 random
    #: sampled sets are 1.004 times as far as by plain IPF without them, .987 with .5, .986 with .6.
    most_open_share: float = 0.2
    smooth_share: float = 0.6

    #: Ranks 2, 4, 8 up to this one are always tried.
    least_ranks: int = 8

    #: Share of a rank by which another one must differ to be tried, where there are many effects:
    #: weighing a rank takes more than a second then.
    near_rank: float = 0.25

    #: A doubled rank is tried while the last doubling left no more of the lag behind interactions
    #: than this: .25 to .42 are usual for joints of no low rank.
    lag_ratio: float = 0.3

    #: Effects up to which their covariance is formed: 2,100 take 0.3 s for each matrix.
    most_effects: int = 2100

    #: Cells of the tables of unions of two sets of effects, from which it is read.
    most_union_cells: int = 20_000_000

    #: Cells of a joint up to which these tables are sums of it, over one variable after another.
    most_joint_cells: int = 1_000_000

    #: Standard deviation of a log-linear effect where it is not estimated. Unpublished tables of
    #: 49 random sampled sets are 1.014 times as far as by plain IPF at .5, 1.001 at 2; those of
    #: triples of 4,062 mushrooms .0749, .0693, .0675 at .5, 1, 2 (IPF .0665), of 24,421 adults
    #: .0429, .0432, .0434 (.0435).
    tau: float = 2.0

    #: Cells of all cliques of a junction tree up to which a completion is found on it, to be
    #: approximated by a mixture: a sweep takes about .1 s at this size.
    most_clique_cells: int = 2_000_000

    #: Sweeps over the cliques at the most.
    max_clique_sweeps: int = 500

    #: Classes of a mixture that approximates a completion on a junction tree, and records drawn
    #: from it to begin with. On a chain of 20 variables of 4 levels 640 classes left .022 of the
    #: mass of other tables of four variables in wrong cells, 2,000 left .012, in 3 and 12 s.
    near_classes: int = 2000
    near_draws: int = 20_000

    #: Cells of the tables of a completion that such a mixture is fitted to, those of pairs apart,
    #: and steps of EM.
    near_cells: int = 27_000
    near_pair_cells: int = 60_000
    near_steps: int = 40

    #: Models of 320 classes that are averaged where cliques are too large. On all pairs of 20
    #: variables of 4 levels, 3, 10 and 30 were .026, .018 and .014 from the truth in other tables
    #: of four variables (.008 by chance), in 1, 5 and 18 s.
    loose_members: int = 10

    #: Cells of all tables times classes of that mean: fewer models are averaged beyond it, but at
    #: least three. A fit takes about 1.2 s for each million.
    loose_numbers: int = 30_000_000

    #: Tilts of that mean towards independence, records drawn for each, and the share of them that
    #: the effective sample size is at least.
    tilts: int = 4
    tilt_draws: int = 16_000
    tilt_share: float = 0.7

    #: Share of a table's mass in wrong cells beyond which a model of a told rank misses it.
    missed: float = 1e-6

    #: Distance to which tables are met between two tilts, and at the end.
    roughly_met: float = 3e-4
    closely_met: float = 1e-7


POLICY = TablePolicy()
