"""Auto: which solvers to run one after another, and under which loss."""

from dataclasses import dataclass, field
from typing import Any

from rejoint.factorization.admm import Admm
from rejoint.factorization.algebraic import Algebraic
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import SQUARES, Loss
from rejoint.factorization.newton import Newton
from rejoint.factorization.problem import TableProblem
from rejoint.solver.solver import Limits, Solver, is_solver, missing_needs

AnySolver = Solver[Any, Any]


@dataclass(frozen=True)
class Stage:
    """A solver, and the loss that it minimizes."""

    solver: AnySolver
    loss: Loss


@dataclass(frozen=True)
class Auto:
    """Algebraic where it can, else ADMM from random starts; then Newton, then ADMM to finish.

    Newton's softmax coordinates end the crawl through flat valleys but only approach zeros;
    ADMM reaches them, so it has the last word unless the fit is exact already. Under a loss other
    than squares the last stage is EM where the loss allows it, else Newton.

    Parameters
    ----------
    explore : Admm
        First stage from a random start.
    polish : Newton
        Second stage.
    finish : Admm
        Last stage, for models with zeros.
    polish_limit : int
        Parameters beyond which the second stage is left out: a Newton step then costs more
        than many sweeps.

    Examples
    --------
    >>> Auto().explore.limits.max_steps
    30
    """

    explore: Admm = field(default=Admm(limits=Limits(max_steps=30, progress=3e-2)))
    polish: Newton = field(default=Newton(limits=Limits(max_steps=200, progress=1e-4, window=8)))
    finish: Admm = field(default=Admm(limits=Limits(max_steps=300, progress=1e-4, window=20)))

    polish_limit: int = 5000

    def stages(self, problem: TableProblem, rank: int) -> tuple[Stage, ...]:
        """The solvers for a problem, in order."""
        last: tuple[AnySolver, ...] = (self.finish, Kl(), Newton())
        able = [solver for solver in last if not missing_needs(solver, problem)]
        return (*self.approach(problem, rank), Stage((able or [last[-1]])[0], problem.loss))

    def approach(self, problem: TableProblem, rank: int) -> tuple[Stage, ...]:
        """The stages before the last: least squares, from where other losses begin too."""
        explore, polish = Stage(self.explore, SQUARES), Stage(self.polish, SQUARES)
        if (1 + problem.layout.size) * rank > self.polish_limit:
            return (explore,)
        return explore, polish


METHODS: dict[str, type[Any]] = {
    "auto": Auto,
    "algebraic": Algebraic,
    "admm": Admm,
    "newton": Newton,
    "kl": Kl,
}


def as_method(solver: Any) -> AnySolver | Auto:
    """A solver object, made from its name if need be."""
    made: Any = METHODS[solver]() if isinstance(solver, str) and solver in METHODS else solver
    if not (is_solver(made) or isinstance(made, Auto)):
        raise ValueError(
            f"solver={solver!r} is not known; give one of {', '.join(map(repr, METHODS))}, "
            "'smooth', or a solver object such as rejoint.factorization.Admm()."
        )
    method: AnySolver | Auto = made
    return method
