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

    #: Rounds of estimates of variances, and those within one.
    most_rounds: int = 12
    inner_rounds: int = 8

    #: Effects up to which there are so many; beyond, each inverse takes a tenth of a second and
    #: more, so that there are fewer rounds with one estimate each.
    quick_effects: int = 700
    fewer_rounds: int = 4

    #: Change of logarithms of variances, or of twice the log-posterior, that ends the rounds.
    still: float = 0.05

    #: Share of the largest singular value below which one of an unfolding of exact tables is zero.
    rank_zero: float = 1e-9

    #: Share of a table's mass in wrong cells up to which a low rank meets exact tables.
    identified_met: float = 1e-7

    #: Rounds in which a table is raked to the shares of its variables.
    most_rakes: int = 100

    #: Steps of EM from each start of a rank, and steps of scoring from the best of them.
    first_steps: int = 60
    rank_steps: int = 25

    #: Steps of scoring for the rank that is chosen.
    final_steps: int = 100

    #: Parameters of a low rank for each independent published number, at the most. Beyond one the
    #: evidence still holds: what the tables leave open has its prior.
    most_parameters: float = 1.5

    #: Logarithm of the evidence by which Laplace's method undervalues classes, and what it is
    #: uncertain by: at one mode it does not see the others. Of 33 sampled sets the 12 of low rank
    #: had at least -11, the 12 log-linear ones at most -42.
    undervalued: float = 10.0
    evidence_spread: float = 5.0

    #: Share of a model below which it is left out of a mean.
    least_share: float = 0.05

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

    #: Share of a table's mass in wrong cells beyond which a model of a told rank misses it.
    missed: float = 1e-6

    #: Total variation to which a corrected model meets its tables, and steps of the correction.
    closely_met: float = 1e-7
    max_corrections: int = 80

    #: Damping of a correction at first, its largest value, by what it is divided after a full step
    #: that was accepted, and multiplied after a step that was not.
    damping: float = 1e-3
    most_damping: float = 1e6
    ease: float = 5.0
    tighten: float = 25.0

    #: Steps of conjugate gradients for one change, and the share of the misfit that they leave:
    #: more accuracy is lost in the next step, which starts from another model.
    inner_steps: int = 100
    inner_share: float = 0.1

    #: Largest change of a logarithm in one step.
    largest_change: float = 2.0

    #: A step is accepted that leaves at most this share of the misfit; lengths that are tried.
    accepted_misfit: float = 0.9
    step_lengths: tuple[float, ...] = (1.0, 0.4, 0.16, 0.064)

    #: Least probability of a level in a class that does not exclude it: one of zero could not
    #: return.
    least_probability: float = 1e-9

    #: Differences of a cell from its goal, as a share of the cell, that rounding makes.
    rounding: float = 1e-12

    #: Largest L1 distance of margins at which a table counts as raked.
    raked: float = 1e-10

    #: Variables up to which all sets of them are tried as a cover, in less than the milliseconds of
    #: a solver.
    tried_variables: int = 12

    #: Cells of the largest table of three or four variables that a mixture is fitted to.
    near_table: int = 1500

    #: Share of independence in the classes that EM begins with, which it cannot lift off zero.
    blur: float = 1e-3

    #: Tables of at most four variables, not fitted, by which the distance to the completion is
    #: measured, and cells of the largest.
    judged_tables: int = 40
    judged_cells: int = 10_000

    #: Classes times cells times steps of the correction of a fit that was interrupted: a second.
    hasty_numbers: int = 30_000_000

    #: Classes of a member of ``Smooth``: on Adult more are no better, and fewer are (80: by a
    #: twentieth). Steps where no number of records is known, and between two looks at how near the
    #: tables are.
    smooth_classes: int = 320
    unsampled_steps: int = 60
    smooth_steps: int = 10

    #: Rounds of filling unknown cells at the most, the share of a table's mass below which a round
    #: moves nothing, and steps of each solver within a round.
    fill_rounds: int = 200
    filled: float = 3e-5
    fill_steps: int = 5

    #: Relative error of the tables below which a start has found the answer and the others are
    #: spared: far below what noise or a wrong rank leaves.
    solved: float = 1e-10

    #: This many starts whose objectives agree this closely, of at least this many, have most likely
    #: found the best model; two alike are often the same local minimum.
    agreement: float = 1e-3
    alike_starts: int = 3
    least_starts: int = 5

    #: Shares of the squared error that the true model has by chance (``TableProblem.noise``).
    #: Stages end that gain less within their window; objectives are alike that differ by less; a
    #: model with less is not polished. On 20 random models of 5 to 10 variables the error of
    #: four-way tables stayed within .1 %; 217 records of 17 votes at rank 20 took 0.3 s in place of
    #: 45.
    noise_gain: float = 1e-3
    noise_alike: float = 1e-2
    noise_share: float = 0.2

    #: A cell has probability zero, as far as its table is concerned, below this share of what it
    #: has.
    absent: float = 1e-6

    #: Copies of the tables and of the model that a fit of a rank holds.
    table_copies: int = 8
    model_copies: int = 60

    #: Sweeps of ADMM in a row that may fail to lower the objective; where they hardly move the
    #: model it is rounding that they fail by.
    patience: int = 20
    rounding_move: float = 1e-6

    #: Objective, as a share of the tables' own sum of squares, above which
    #: ``|X|^2/2 - v w + w G w/2`` is good enough: rounding takes at most 1e-10 of it then.
    rough_share: float = 1e-5

    #: Probabilities of a start of Newton's method or EM are held above this, since neither can
    #: leave zero, but no further than the start's own error.
    floor: float = 1e-4

    #: EM crawls when a step lowers the objective by less than this share of it, and Anderson mixing
    #: moves a probability by no more than this factor, up or down.
    crawl: float = 0.03
    reach: float = 100.0

    #: Rows of a stacked mode of the algebraic solver, and orders of variables that are tried.
    mode_rows: int = 120
    tried_orders: int = 50

    #: Shares of levels, relative to equal ones, above which anchors are looked for among them.
    anchor_shares: tuple[float, ...] = (0.0, 0.1, 0.3, 0.6)

    #: Levels of all variables up to which the matrix of all pairs is formed: its eigenvectors take
    #: 2 s then.
    most_pair_levels: int = 2000

    #: Triples beyond which a random cover of the variables stands for all, where a model is
    #: reduced; cells up to which the whole joint is fitted, too; and starts of a fresh fit.
    reduced_tables: int = 2000
    reduced_cells: int = 2**14
    reduced_starts: int = 2


POLICY = TablePolicy()
