"""Table III: rank bounds for generic identifiability, six variables."""

from functools import partial

from paper import rank_bounds
from paper.framework import Experiment
from paper.printed import TABLE3

EXPERIMENT = Experiment(
    name="table3",
    cells=lambda fast: rank_bounds.cells(TABLE3),
    work=rank_bounds.work,
    section=partial(rank_bounds.section, printed=TABLE3, number="III", name="table3"),
    expected=partial(rank_bounds.expected, printed=TABLE3),
    glances=partial(rank_bounds.glances, printed=TABLE3, number="III"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
