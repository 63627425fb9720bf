"""Table II: rank bounds for generic identifiability, three levels."""

from functools import partial

from paper import rank_bounds
from paper.framework import Experiment
from paper.printed import TABLE2

EXPERIMENT = Experiment(
    name="table2",
    cells=lambda fast: rank_bounds.cells(TABLE2),
    work=rank_bounds.work,
    section=partial(rank_bounds.section, printed=TABLE2, number="II", name="table2"),
    expected=partial(rank_bounds.expected, printed=TABLE2),
    glances=partial(rank_bounds.glances, printed=TABLE2, number="II"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
