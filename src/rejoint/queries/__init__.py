"""Probabilities, posteriors and tables of a mixture of products: free functions on arrays.

mixture    the mixture of blocks: evidence, tables, modes, records
evidence   evidence on some variables, and the classes given it
log_prob   probabilities and classes of whole records; new records
tables     dense tables of some variables
modes      the most probable combination of levels
distances  distances between two mixtures, and pairs of their classes

Ranges of answers over all joints that have given tables:

answer_bounds   the range of an answer; which program is solved
table_limits    what tables say about cells
junction_tree   cliques of variables that replace the joint
cell_program    the linear program over the cells of cliques
witness         a joint that nearly has tables which contradict each other

The model is ``P(x_1..x_N) = sum_f w_f prod_n A_n[x_n, f]``: `weights` is ``w`` (F,), `factors`
holds the ``A_n`` (I_n, F). Evidence on variable n is a likelihood ``l`` (I_n,), nonnegative: an
indicator for a known level or a list of levels, any other numbers for soft evidence. It multiplies
the weight of class f by ``l @ A_n[:, f]``. Products over variables are sums of logarithms for each
class, so that thousands of variables do not underflow.
"""

from rejoint.queries.evidence import ZeroEvidenceError

__all__ = ["ZeroEvidenceError"]
