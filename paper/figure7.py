"""Figure 7: error of the joint against the number of records, complete."""

from functools import partial

from paper import sampled
from paper.framework import Experiment

EXPERIMENT = Experiment(
    name="figure7",
    cells=partial(sampled.cells, missing=0.0),
    work=sampled.work,
    section=partial(sampled.section, number=7),
    expected=sampled.expected,
)

if __name__ == "__main__":
    EXPERIMENT.main()
