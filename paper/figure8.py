"""Figure 8: error of the joint against the number of records, 20 % of the cells missing."""

from functools import partial

from paper import sampled
from paper.framework import Experiment

EXPERIMENT = Experiment(
    name="figure8",
    cells=partial(sampled.cells, missing=0.2),
    work=sampled.work,
    section=partial(sampled.section, number=8),
    expected=sampled.expected,
)

if __name__ == "__main__":
    EXPERIMENT.main()
