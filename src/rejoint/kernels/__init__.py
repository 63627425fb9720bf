"""Kernels: compiled loops over records and tables, and a NumPy version of each.

==================  ===============================================================
backend             which of the two runs; checks of arguments
codes               SparseCodes: records as a CSR matrix of their observed values
class_passes        E-step, posterior and log-probability of records with a hidden class;
                    classes drawn from posteriors (a Gibbs step), levels drawn by inversion
count_tables        tables of many subsets of variables, counted at once
simplex             projection onto the simplex, and the ADMM steps that use it
triples             ADMM sweeps over the tables of all triples of variables
trait_steps         steps of a model of traits: graded choices, Newton steps of many rows
==================  ===============================================================

A file holds the public function, which checks its arguments, and its NumPy twin (``numpy_...``).
The compiled module is used where it was built; ``REJOINT_KERNELS=numpy`` in the environment
selects the twins, and ``backend`` says which of the two runs. Both give the same numbers, and draws
of the same distribution: tests compare them.
"""

from rejoint.kernels.backend import available_threads, backend
from rejoint.kernels.class_passes import (
    class_draws,
    class_log_prob,
    class_pass,
    class_posterior,
    draw_levels,
    has_value,
)
from rejoint.kernels.codes import SparseCodes
from rejoint.kernels.count_tables import count, table_sizes
from rejoint.kernels.simplex import admm_steps, damped_inverse, project_columns
from rejoint.kernels.trait_steps import (
    cell_products,
    cell_sums,
    grade_moments,
    newton_draws,
    tilted_levels,
)
from rejoint.kernels.triples import pack_triples, triples_sweep, triples_value

__all__ = [
    "SparseCodes",
    "admm_steps",
    "available_threads",
    "backend",
    "cell_products",
    "cell_sums",
    "class_draws",
    "class_log_prob",
    "class_pass",
    "class_posterior",
    "count",
    "damped_inverse",
    "draw_levels",
    "grade_moments",
    "has_value",
    "newton_draws",
    "pack_triples",
    "project_columns",
    "table_sizes",
    "tilted_levels",
    "triples_sweep",
    "triples_value",
]
