"""From marginals to the joint: the paper's step S2, by several solvers.

factorize               factorize: the door to all of these
fit_tables              several starts of a solver, and the result
problem                 the problem that solvers of tables work on
loss                    losses: squared error, Kullback-Leibler divergence
unfolding               tables of one variable as matrices
admm                    Admm: the paper's algorithm
newton                  Newton: Levenberg-Marquardt
kl                      Kl: Kullback-Leibler divergence by EM
algebraic               Algebraic: the constructive proof as an algorithm
early_stop              Smooth: many classes, few steps
all_tables              AllTables: all tables of records, none of them formed
max_entropy             the maximum-entropy completion as an exact mixture
table_goals             what a completion is asked to do to each table
complete_approximately  the completion where the exact mixture is too large, junction trees
corrector               the least change of a mixture so that it meets tables
table_choice            low rank or maximum entropy
log_linear              log-linear models of sampled tables; tables of samples as effects
table_policy            TablePolicy: tuned numbers of fits to tables
reduce                  reduction of a model to a lower rank
"""

from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic
from rejoint.factorization.all_tables import AllTables
from rejoint.factorization.early_stop import Smooth
from rejoint.factorization.factorize import factorize
from rejoint.factorization.fit_tables import Auto
from rejoint.factorization.kl import Kl
from rejoint.factorization.newton import Newton
from rejoint.solver.solver import Limits

__all__ = [
    "Admm",
    "Algebraic",
    "AllTables",
    "Auto",
    "Kl",
    "Limits",
    "Newton",
    "Smooth",
    "factorize",
]
