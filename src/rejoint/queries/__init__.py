"""Probabilities, posteriors and tables of a mixture of products: free functions on arrays.

classes    classes given evidence on some variables
rows       classes and probabilities of whole records
tables     dense tables of some variables
modes      the most probable combination of levels
sampling   new records
distances  how far two mixtures are apart

The model is ``P(x_1..x_N) = sum_f w_f prod_n A_n[x_n, f]``: `weights` is ``w`` (F,), `factors`
holds the ``A_n`` (I_n, F). Evidence on variable n is a likelihood ``l`` (I_n,), nonnegative: an
indicator for a known level or a list of levels, anything else for soft evidence. It enters a
class by the factor ``l @ A_n[:, f]``. Everything that multiplies over variables is kept as
logarithms over classes, so that thousands of variables do not underflow.
"""

from rejoint.queries.distances import difference_and_norm, pair_classes, relative_error
from rejoint.queries.evidence import (
    ZeroEvidenceError,
    class_posterior,
    conditional_factor,
    contradiction,
    log_class_weights,
    log_sum,
)
from rejoint.queries.log_prob import posteriors, record_log_prob
from rejoint.queries.modes import most_probable, single_modes
from rejoint.queries.sampling import draw_codes
from rejoint.queries.tables import MAX_CELLS, joint_table

__all__ = [
    "MAX_CELLS",
    "ZeroEvidenceError",
    "class_posterior",
    "conditional_factor",
    "contradiction",
    "difference_and_norm",
    "draw_codes",
    "joint_table",
    "log_class_weights",
    "log_sum",
    "most_probable",
    "pair_classes",
    "posteriors",
    "record_log_prob",
    "relative_error",
    "single_modes",
]
