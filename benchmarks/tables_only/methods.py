"""What makes a joint of tables: rejoint, and the packages and loops it is compared with.

Every method gets the same :class:`rejoint.Marginals`. Peers that know nothing of unknown cells get
the first guess that these have; IPF in three forms holds the joint of all variables.
"""

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.factorization.factorize import fit_completion, interpret
from rejoint.solver.session import Session

Array = NDArray[np.float64]
Marginal = Callable[[tuple[str, ...]], Array]
Fit = Callable[[rj.Marginals], Marginal]

#: Cells of a joint that IPF and ipfn are asked to hold, at the most.
MOST_CELLS = 2_000_000

#: Share of a table's mass in wrong cells at which the plain IPF stops, and its sweeps at the most.
IPF_TOLERANCE, IPF_SWEEPS = 1e-7, 300


def default(tables: rj.Marginals) -> Marginal:
    """``rj.factorize(tables)``."""
    return rj.factorize(tables, random_state=0, progress=False).pmf.marginal


def completion(tables: rj.Marginals) -> Marginal:
    """The maximum-entropy completion alone, without the search for a low rank."""
    session = Session(np.random.default_rng(0))
    return fit_completion(interpret(tables), session).pmf.marginal


def smooth(tables: rj.Marginals) -> Marginal:
    """``rj.factorize(tables, solver="smooth")``."""
    return rj.factorize(tables, solver="smooth", random_state=0, progress=False).pmf.marginal


def ipf(tables: rj.Marginals) -> Marginal:
    """Plain iterative proportional fitting of the joint as an array: the machine's limit."""
    shape = tables.domain.shape
    joint = np.full(shape, 1.0 / np.prod(shape))
    goals = [
        (tables.shares(i), tuple(n for n in range(len(shape)) if n not in subset))
        for i, subset in enumerate(tables.index_subsets)
    ]
    before = np.inf
    for sweep in range(IPF_SWEEPS):
        worst = 0.0
        for goal, gone in goals:
            found = joint.sum(axis=gone)
            worst = max(worst, 0.5 * float(np.abs(goal - found).sum()))
            ratio = np.divide(goal, found, out=np.zeros_like(goal), where=found > 0)
            joint *= np.expand_dims(ratio, gone)
        if worst < IPF_TOLERANCE:
            break
        if sweep % 50 == 49:  # tables that contradict each other are never met
            if worst > 0.999 * before:
                break
            before = worst
    return margins_of(joint, tables)


def ipfn(tables: rj.Marginals) -> Marginal:
    """The package ipfn with its defaults."""
    from ipfn.ipfn import ipfn as Ipfn  # type: ignore[import-untyped]

    shape = tables.domain.shape
    start = np.full(shape, 1.0 / np.prod(shape))
    goals = [np.array(tables.shares(i)) for i in range(len(tables))]
    axes = [list(subset) for subset in tables.index_subsets]
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        joint = Ipfn(start, goals, axes).iteration()
    return margins_of(joint, tables)


def margins_of(joint: Array, tables: rj.Marginals) -> Marginal:
    joint = joint / joint.sum()

    def marginal(names: tuple[str, ...]) -> Array:
        kept = tables.domain.indices(names)
        table: Array = joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in kept))
        return table.transpose(np.argsort(np.argsort(kept)))

    return marginal


def mbi(tables: rj.Marginals) -> Marginal:
    """The graphical model of the package mbi by mirror descent, with its defaults."""
    mbi, estimation = load_mbi()
    domain = mbi.Domain(tables.domain.names, tables.domain.shape)
    total = float(np.median(tables.totals))
    given = [
        mbi.LinearMeasurement(total * tables.shares(i).ravel(), names)
        for i, names in enumerate(tables.subsets)
    ]
    model = estimation.MirrorDescent().estimate(domain, given, known_total=total)

    def marginal(names: tuple[str, ...]) -> Array:
        values = np.asarray(model.project(names).values, dtype=np.float64)
        return values / values.sum()

    return marginal


def load_mbi() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        return importlib.import_module("mbi"), importlib.import_module("mbi.estimation")


def independent(tables: rj.Marginals) -> Marginal:
    """The product of the variables' own shares."""
    alone = [tables.marginal([name])[:, None] for name in tables.domain.names]
    return rj.LowRankPMF([1.0], alone, tables.domain).marginal


METHODS: dict[str, Fit] = {
    "rejoint": default,
    "completion": completion,
    "smooth": smooth,
    "ipf": ipf,
    "ipfn": ipfn,
    "mbi": mbi,
    "independent": independent,
}

#: Methods that hold the joint of all variables.
DENSE = ("ipf", "ipfn")


def available() -> list[str]:
    """Names of the methods whose packages are there (extra ``bench``)."""
    absent = {name for name in ("ipfn", "mbi") if find_spec(name) is None}
    return [name for name in METHODS if name not in absent]
