"""From marginals to the joint: the paper's step S2, by several solvers."""

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
