"""From marginals to the joint: the paper's step S2, by several solvers.

factorize               factorize: the door to all of these
fit_tables              several starts of a solver, and the result
problem                 the problem that solvers of tables work on
loss                    losses: squared error, Kullback-Leibler divergence
unfolding               cells of tables, unfolded along each variable, and their derivatives
admm                    Admm: the paper's algorithm
newton                  Newton: Levenberg-Marquardt
kl                      Kl: Kullback-Leibler divergence by EM
algebraic               Algebraic: the constructive proof as an algorithm
pairs                   Pairs: anchor levels of tables of two variables
exact_rank              the rank of exact tables, and the model that they determine
smooth                  Smooth: many classes, few steps
max_entropy             the maximum-entropy completion as an exact mixture
table_goals             what a completion is asked to do to each table
complete_approximately  the completion where the exact mixture is too large
clique_tables           the completion on a junction tree
corrector               the least change of a mixture so that it meets tables
table_choice            low rank or maximum entropy for tables of a sample
log_linear              log-linear models of sampled tables whose prior is estimated
pooled_tables           tables of several samples as one; tables of an earlier time
rank_evidence           the evidence for a rank, and the rank of most evidence
table_policy            TablePolicy: tuned numbers of fits to tables
reduce                  reduction of a model to a lower rank
"""

from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic
from rejoint.factorization.factorize import factorize
from rejoint.factorization.fit_tables import Auto
from rejoint.factorization.kl import Kl
from rejoint.factorization.newton import Newton
from rejoint.factorization.pairs import Pairs
from rejoint.factorization.smooth import Smooth
from rejoint.solver.solver import Limits

__all__ = [
    "Admm",
    "Algebraic",
    "Auto",
    "Kl",
    "Limits",
    "Newton",
    "Pairs",
    "Smooth",
    "factorize",
]
