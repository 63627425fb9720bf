"""The likelihood's twin for tables: ``sum_S omega_S KL(X_S || Xhat_S)``, minimised.

With counts behind the tables, ``omega`` in proportion to them makes it a composite likelihood.
EM shares every cell out among the classes and counts what falls to each (see ``expectation``): it
never climbs, and its zeros stay zeros.

EM is quick at first and then crawls, since a table of three variables says little about the class
of one of its cells. Two things are added, and nothing is accepted that raises the objective:
Anderson mixing of the last steps, in logarithms, which keeps columns positive; and once EM
crawls, where there are few enough parameters, damped steps with the Fisher information.

By Pinsker's inequality ``1/2 ||X - Xhat||^2`` is at most the divergence: the error that the loop
derives from this objective bounds that of the tables, so that "exact" means no less here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.factorization.expectation import KlState, em, evaluate, logarithms, normalise
from rejoint.factorization.mixing import mixing_shares
from rejoint.factorization.problem import Array, Problem, objective
from rejoint.factorization.scoring import lift, score
from rejoint.solver import Limits, relative_error

#: Probabilities of a start are held above this: zeros could never leave. But no further than
#: the start's own error: what fits to 1e-9 has its zeros right to about that.
FLOOR = 1e-4

#: EM crawls when a step lowers the objective by less than this share of it.
CRAWL = 0.03

#: Anderson mixing moves a probability by no more than this factor, up or down.
REACH = 100.0


@dataclass(frozen=True)
class Kl:
    """Kullback-Leibler divergence of the tables from the model's, by accelerated EM.

    Parameters
    ----------
    memory : int
        Steps that Anderson acceleration looks back on; 0 turns it off.
    dense_limit : int
        Up to so many parameters EM is helped on by scoring steps; 0 turns them off.
    limits : Limits
        When to stop.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> tables = rj.Marginals.from_pmf(truth, order=3)
    >>> result = rj.factorize(tables, rank=2, solver=Kl(), start="random", random_state=0)
    >>> rj.metrics.tensor_error(truth, result.pmf) < 1e-8
    True
    """

    memory: int = 10
    dense_limit: int = 1500
    limits: Limits = field(default=Limits(max_steps=2000, progress=1e-6, residual=1e-15))
    name: str = field(default="kl", init=False)

    def init(self, problem: Problem, weights: Array, factors: Array) -> KlState:
        """State at a first model, its probabilities held away from zero."""
        check_tables(problem)
        error = relative_error(problem, objective(problem, weights, factors))
        floor = min(FLOOR, max(error, 1e-14))
        model = np.maximum(np.vstack([weights, factors]), floor)
        return evaluate(problem, normalise(problem, model))

    def step(self, problem: Problem, state: KlState) -> KlState:
        """One step of EM, mixed with the last ones; then one of scoring if that was slow."""
        update = em(problem, state.model, state.ascent)
        kept = slice(-self.memory - 1, None) if self.memory else slice(0, 0)
        before = (*state.before, logarithms(state.model))[kept]
        after = (*state.after, logarithms(update))[kept]
        moved = evaluate(problem, mixed(problem, update, before, after)) if after[1:] else None
        if moved is None or not moved.objective < state.objective:
            if moved is not None:  # the steps looked back on misled
                before, after = (), ()
            moved = evaluate(problem, update)
        if not moved.objective < state.objective:
            return state  # rounding is all that is left
        moved = replace(moved, before=before, after=after, damping=state.damping)
        slow = state.objective - moved.objective < CRAWL * state.objective
        if not slow or moved.model.size > self.dense_limit:
            return moved
        lifted = lift(problem, moved)
        return score(problem, moved) if lifted is moved else lifted


def check_tables(problem: Problem) -> None:
    """Refuse moments and negative cells: of these no divergence can be taken."""
    if any((table < 0).any() for table in problem.tables):
        raise ValueError(
            "solver='kl' compares tables of shares, and some cells are negative (noise was added): "
            "use solver='auto', 'admm' or 'newton', which take them as they are."
        )
    if problem.moments:
        number = sum(len(moments.value) for moments in problem.moments)
        raise ValueError(
            f"solver='kl' compares tables of shares, and {number} of what is given are moments "
            "(means, covariances, ...). Leave them out, or use solver='auto', 'admm' or 'newton'."
        )


def mixed(
    problem: Problem, update: Array, before: Sequence[Array], after: Sequence[Array]
) -> Array:
    """Anderson mixing of the last steps, each probability counting by its size."""
    size = np.sqrt(np.vstack([update[:1], update[0] * update[1:]]))
    moves = (np.stack(after) - np.stack(before)) * size
    mix = mixing_shares(moves.reshape(len(after), -1))
    if mix is None:
        return update
    move = -np.tensordot(mix, np.diff(np.stack(after), axis=0), 1)
    reach = np.log(REACH)
    return normalise(problem, update * np.exp(np.clip(move, -reach, reach)))
