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
    #: Triples of 6,480 records (84 tables): unpublished tables are .0651 from those of other records
    #: after 47 sweeps, .0649 after 372.
    settled: float = 0.01

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

    #: Share of the mass by which tables may differ on what they have in common and still agree:
    #: what rounding to double precision leaves.
    agree: float = 1e-9

    #: Records that are assumed for shares without a number of records, where noise matters.
    assumed_records: int = 10_000

    #: Standard deviation of a log-linear effect where it is not estimated. On sampled log-linear
    #: joints .25, .5 and 1 gave mean errors of 1.48, 1.42 and 1.42 times the best.
    tau: float = 0.5


POLICY = TablePolicy()
