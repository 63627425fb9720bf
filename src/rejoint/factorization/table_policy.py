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

    #: Sweeps over all tables at the most, before a completion is left as it is.
    max_sweeps: int = 2000

    #: Sweeps before acceleration begins: most completions are done by then.
    plain_sweeps: int = 10

    #: Last sweeps that the next start is extrapolated from.
    sweep_memory: int = 8

    #: Times the distance of the last sweep beyond which an extrapolated start is taken back.
    worse_sweep: float = 2.0

    #: Numbers in the mixture of a completion, classes times (one + levels outside the cover): more
    #: take .3 s a sweep and 200 to 400 MB, so that the completion is approximated instead.
    most_numbers: int = 2_000_000

    #: Share of the mass by which tables may differ on what they have in common and still agree:
    #: what rounding to double precision leaves.
    agree: float = 1e-9

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

    #: Power of the step of MacKay's rule.
    over_relaxed: float = 1.5

    #: Rounds of estimates of variances, and those within one.
    most_rounds: int = 12
    inner_rounds: int = 8

    #: Effects up to which there are so many; beyond, each inverse takes a tenth of a second and
    #: more, so that there are fewer rounds with one estimate each.
    quick_effects: int = 700
    fewer_rounds: int = 5

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

    #: Ranks 2, 4, 8 up to this one are always tried.
    least_ranks: int = 8

    #: A doubled rank is tried while the last doubling left no more of the lag behind interactions
    #: than this: .25 to .42 are usual for joints of no low rank.
    lag_ratio: float = 0.3

    #: Effects up to which their covariance is formed: 2,100 take 0.3 s for each matrix.
    most_effects: int = 2100

    #: Cells of the tables of unions of two sets of effects, from which it is read.
    most_union_cells: int = 20_000_000

    #: Standard deviation of a log-linear effect where it is not estimated. On sampled log-linear
    #: joints .25, .5 and 1 gave mean errors of 1.48, 1.42 and 1.42 times the best.
    tau: float = 0.5


POLICY = TablePolicy()
