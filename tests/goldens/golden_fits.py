"""Fits whose results are kept, and what is kept of each.

Only public names are used, so that files may be merged, renamed and split beneath them. Each fit
is a function of a folder that it may write to, and gives plain numbers and texts.
"""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import golden_data as data
import numpy as np

import rejoint as rj
from rejoint.estimation import Bayes, Em
from rejoint.factorization import Admm, Kl, Limits, Smooth

SHORT = Bayes(chains=2, burn_in=10, draws=12, thin=1)
FITS = {}


def golden(fit):
    """Add a fit to those that are kept; its name is that of the function."""
    FITS[fit.__name__] = fit
    return fit


# --- what is kept ------------------------------------------------------------------------------


def digits(values):
    """Numbers to 12 significant digits: more would be rounding of the machine it ran on."""
    found = [float(f"{value:.12g}") for value in np.ravel(values)]
    return found if np.ndim(values) else found[0]


def answers(pmf):
    """Probabilities of a few questions, some of one variable, some of all."""
    names = pmf.domain.names
    likely = {n: pmf.domain[n].levels[int(np.argmax(pmf.marginal(n)))] for n in names}
    rest = {name: likely[name] for name in names[1:]}
    return {
        "one": digits(pmf.marginal(names[0])),
        "given one": digits(pmf.marginal(names[0], given={names[1]: likely[names[1]]})),
        "given all others": digits(pmf.marginal(names[0], given=rest)),
        "pair": digits(pmf.marginal(list(names[-2:])).ravel()),
        "all": digits(pmf.prob(likely)),
    }


def summary(result):
    """What is kept of a fit: the model, how good it is, what was chosen, how it ended.

    Sentences are not: their English may be made plainer. What they rest on is.
    """
    runs = result.starts
    best = min(runs, key=lambda run: run.objective)
    found = {
        "rank": result.pmf.rank,
        "weights": digits(np.sort(result.pmf.weights)[::-1]),
        "answers": answers(result.pmf),
        "objective": digits(best.objective),
        "stop": {
            "reason": best.stop,
            "starts": len(runs),
            "steps": sum(record.step > 0 for record in result.history),
            "solvers": sorted({record.solver for record in result.history}),
        },
    }
    for name in ("log_likelihood", "error"):
        if np.isfinite(getattr(result, name)):
            found[name] = digits(getattr(result, name))
    if result.misfits:
        found["worst table"] = list(next(iter(result.misfits)))
    if result.selection is not None:
        found["selection"] = selected(result.selection)
    if result.posterior is not None:
        found["posterior"] = believed(result)
    return found


def selected(selection):
    return {
        "rank": selection.rank,
        "ranks": list(selection.ranks),
        "tied": list(selection.tied),
        "criterion": selection.criterion,
        "scores": digits(selection.scores),
    }


def believed(result):
    """The draws: how many, of which ranks, their mean, and the bounds of one table."""
    draws, name = result.posterior.draws, result.pmf.domain.names[0]
    return {
        "draws": len(draws),
        "ranks": sorted({draw.rank for draw in draws}),
        "mean": digits(result.posterior.mean.marginal(name)),
        "low, high": digits(np.ravel(result.pmf.interval(name))),
    }


def outcome(name, folder):
    """The fit, and how many remarks it made."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = FITS[name](Path(folder))
    found["remarks"] = sum(issubclass(w.category, rj.Remark) for w in caught)
    return found


# --- records in memory -------------------------------------------------------------------------


@golden
def records_ml(_):
    return summary(rj.estimate(data.records(), 3, "ml", n_init=4, random_state=0))


@golden
def records_map(_):
    return summary(rj.estimate(data.records(), 3, "map", n_init=4, random_state=0))


@golden
def records_bayes(_):
    return summary(rj.estimate(data.records(), 2, "bayes", random_state=0))


@golden
def records_bayes_object(_):
    return summary(rj.estimate(data.records(rows=300), 3, SHORT, random_state=0))


@golden
def records_em_object(_):
    solver = Em(memory=0, limits=Limits(max_steps=80, progress=1e-7, exact=-1.0))
    return summary(rj.estimate(data.records(), 2, solver, n_init=2, random_state=0))


@golden
def records_given_start(_):
    start = data.model(7)
    return summary(rj.estimate(data.records(), 3, "ml", start=start, random_state=0))


@golden
def records_weighted(_):
    return summary(rj.estimate(data.records(weighted=True), 3, "map", n_init=3, random_state=0))


@golden
def records_by_default(_):
    """Nothing is asked for: rank, estimator and starts are chosen."""
    return summary(rj.estimate(data.records(rows=300), random_state=0))


@golden
def records_on_an_executor(_):
    with ThreadPoolExecutor(1) as executor:
        return summary(
            rj.estimate(data.records(), solver="map", n_init=3, random_state=0, executor=executor)
        )


@golden
def records_many(_):
    """So many different ones that starts are followed side by side where there are processors."""
    many = data.records(8, rows=20_000, shape=(4,) * 8, rank=4, missing=0.1)
    return summary(rj.estimate(many, 4, "ml", n_init=2, random_state=0))


@golden
def records_plenty(_):
    """So many records a parameter that "auto" takes likelihood."""
    many = data.model(3, (2, 2, 2), 2).sample(30_000, random_state=3)
    return summary(rj.estimate(many, 2, n_init=3, random_state=0))


@golden
def records_rank_auto(_):
    return summary(rj.estimate(data.records(rows=1000), solver="map", n_init=2, random_state=0))


@golden
def records_rank_auto_bayes(_):
    """Chains have the rank that answers."""
    return summary(rj.estimate(data.records(rows=250), solver=SHORT, random_state=0))


@golden
def records_never_together(_):
    """Two halves of the records have one variable in common: a remark."""
    codes = np.array(data.records(missing=0.0).codes)
    codes[::2, :2] = -1
    codes[1::2, 3:] = -1
    apart = rj.Records(data.records().domain, codes)
    return summary(rj.estimate(apart, 2, "map", n_init=2, random_state=0))


@golden
def records_smooth(_):
    return summary(rj.estimate(data.ordinal(), 2, "map", smooth=True, n_init=2, random_state=0))


@golden
def rank_select_criteria(_):
    few = data.records(rows=500)
    return {
        name: selected(rj.rank.select(few, range(1, 5), criterion=name, random_state=0))
        for name in ("heldout", "bic", "evidence", "variational")
    }


# --- records that are read part by part, sparse ones, those of a cluster -------------------------


@golden
def scan_in_memory(_):
    scan = rj.scan(data.records(weighted=True), size=100)
    return summary(rj.estimate(scan, 3, "map", n_init=3, random_state=0))


@golden
def scan_beyond_memory_ml(_):
    scan = rj.scan(data.records(), size=100, memory=0)
    return summary(rj.estimate(scan, 3, "ml", n_init=2, random_state=0))


@golden
def scan_beyond_memory_bayes(_):
    scan = rj.scan(data.records(weighted=True), size=100, memory=0)
    return summary(rj.estimate(scan, 2, SHORT, random_state=0))


@golden
def scan_beyond_memory_rank_auto(_):
    scan = rj.scan(data.records(rows=400), size=100, memory=0)
    return summary(rj.estimate(scan, solver="map", n_init=2, random_state=0))


@golden
def scan_beyond_memory_smooth(_):
    scan = rj.scan(data.ordinal(), size=100, memory=0)
    return summary(rj.estimate(scan, 2, "map", smooth=True, n_init=2, random_state=0))


@golden
def sparse_records(_):
    """Twenty variables of which each record holds five or so."""
    dense = data.records(4, rows=500, shape=(2,) * 20, rank=2, missing=0.75)
    sparse = rj.SparseRecords.of(dense)
    return summary(rj.estimate(sparse, 2, "map", n_init=3, random_state=0))


@golden
def dask_beyond_memory(_):
    import dask.dataframe

    frame = data.records().to_frame("pandas")
    with cluster() as client:
        parts = dask.dataframe.from_pandas(frame, npartitions=3)
        scan = rj.distributed.scan(parts, memory=0, client=client)
        return summary(rj.estimate(scan, 2, "map", n_init=2, random_state=0))


@contextmanager
def cluster():
    """A cluster within this process, which takes less than a second to start."""
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as one:
        yield one


# --- tables ------------------------------------------------------------------------------------


def factored(tables, rank, solver, **more):
    return summary(rj.factorize(tables, rank, solver, random_state=0, **more))


@golden
def tables_auto(_):
    return factored(data.triples(), 2, "auto", n_init=3)


@golden
def tables_admm(_):
    return factored(data.triples(), 2, "admm", n_init=2)


@golden
def tables_admm_object(_):
    return factored(data.triples(), 3, Admm(limits=Limits(max_steps=40)), n_init=2)


@golden
def tables_newton(_):
    return factored(data.triples(), 2, "newton", n_init=2)


@golden
def tables_kl(_):
    return factored(data.triples(), 2, "kl", n_init=2)


@golden
def tables_kl_by_count(_):
    """Tables of records with holes, each weighted by how many records it has."""
    tables = rj.Marginals.count(data.records(missing=0.4), order=3)
    return factored(tables, 2, Kl(), n_init=2, weighting="count")


@golden
def tables_algebraic(_):
    return factored(data.triples(), 2, "algebraic", n_init=2)


@golden
def tables_smooth(_):
    return factored(data.triples(1000), 8, Smooth(members=2))


@golden
def tables_given_start(_):
    start = data.model(7, (3, 3, 3, 3), 2)
    return factored(data.triples(), 2, "auto", start=start)


@golden
def tables_pairs(_):
    """Pairs leave the joint open: a remark."""
    pairs = rj.Marginals.count(data.model(2, (3, 3, 3), 2).sample(2000, random_state=2), order=2)
    return factored(pairs, 2, "auto", n_init=2)


@golden
def tables_suppressed(_):
    return factored(data.held_back(), 2, "auto", n_init=2)


@golden
def tables_moments(_):
    return factored(data.moments(), 2, "auto", n_init=2)


@golden
def tables_rank_auto(_):
    return factored(data.triples(2000, shape=(3, 3, 3, 3, 3)), "auto", "auto", n_init=2)


@golden
def all_tables(_):
    whole = rj.AllTables(data.records(6, rows=400, shape=(2,) * 8, missing=0.1), order=3)
    return factored(whole, 2, "auto", n_init=2, weighting="count")


@golden
def tables_by_default(_):
    return summary(rj.factorize(data.triples(), random_state=0))


@golden
def reduction(_):
    """A mean of models made smaller: a fit to its own tables."""
    found = rj.LowRankPMF.average([data.model(seed, (3, 3, 3, 3), 2) for seed in (1, 2)]).reduce(3)
    return {
        "rank": found.pmf.rank,
        "error": digits(found.error),
        "weights": digits(np.sort(found.pmf.weights)[::-1]),
        "answers": answers(found.pmf),
    }


# --- checkpoints -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stepping(Em):
    """EM that is ended at one of its steps, from outside of the package."""

    left: ClassVar[int] = 10**9
    end: ClassVar[object] = None

    def step(self, problem, state):
        Stepping.left -= 1
        if Stepping.left == 0:
            Stepping.end()
        return super().step(problem, state)


def press():
    raise KeyboardInterrupt


def kill():
    """Nothing is closed, nothing is written: as by SIGKILL, which not every system has."""
    os._exit(9)


@contextmanager
def ended(after, how):
    """End a fit by Stepping after so many steps, in this way."""
    Stepping.left, Stepping.end = after, how
    try:
        yield
    finally:
        Stepping.left, Stepping.end = 10**9, None


def stepped(path=None):
    return rj.estimate(data.records(), 3, Stepping(), n_init=3, random_state=0, checkpoint=path)


def same(one, other):
    """Whether two fits are the same to the last bit."""
    mine, theirs = ((fit.pmf.weights, *fit.pmf.factors) for fit in (one, other))
    return bool(
        (one.log_likelihood, one.stop) == (other.log_likelihood, other.stop)
        and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
    )


def resumed(fit, path):
    """The fit from a checkpoint, against one without: the same, in fewer steps."""
    kept = path.exists()
    with ended(10**9, press):
        found = fit(path)
        taken = 10**9 - Stepping.left
    with ended(10**9, press):
        whole = fit(None)
        fresh = 10**9 - Stepping.left
    compared = {"kept": kept, "as uninterrupted": same(found, whole), "fewer": taken < fresh}
    return {**summary(found), "resumed": compared}


@golden
def checkpoint_interrupted(folder):
    """Ctrl-C again and again."""
    path = folder / "interrupted.checkpoint"
    for after in (7, 40, 30):
        with ended(after, press), suppress(KeyboardInterrupt):
            stepped(path)
    return resumed(stepped, path)


@golden
def checkpoint_interrupted_scan(folder):
    """The same over records that do not fit into memory."""

    def fit(checkpoint):
        scan = rj.scan(data.records(), size=100, memory=0)
        return rj.estimate(scan, 2, Stepping(), n_init=2, random_state=0, checkpoint=checkpoint)

    path = folder / "scan.checkpoint"
    with ended(12, press), suppress(KeyboardInterrupt):
        fit(path)
    return resumed(fit, path)


@golden
def checkpoint_killed(folder):
    """Ctrl-C, then another process goes on and is killed."""
    path = folder / "killed.checkpoint"
    with ended(40, press), suppress(KeyboardInterrupt):
        stepped(path)
    code = f"import golden_fits as g\nwith g.ended(20, g.kill): g.stepped({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=False)
    found = resumed(stepped, path)
    found["resumed"]["killed"] = done.returncode == 9
    return found


# --- estimators --------------------------------------------------------------------------------


@golden
def joint_pmf(_):
    frame = data.records().to_frame("pandas")
    fit = rj.JointPMF(rank=2, solver="map", n_init=2, random_state=0).fit(frame)
    return {
        "weights": digits(np.sort(fit.pmf_.weights)[::-1]),
        "answers": answers(fit.pmf_),
        "score": digits(fit.score(frame)),
        "scores": digits(fit.score_samples(frame[:5])),
    }


@golden
def joint_pmf_from_tables(_):
    frame = data.records(missing=0.1).to_frame("pandas")
    fit = rj.JointPMF(rank=2, solver="admm", n_init=2, random_state=0).fit(frame)
    return {"weights": digits(np.sort(fit.pmf_.weights)[::-1]), "answers": answers(fit.pmf_)}


@golden
def joint_pmf_partial(_):
    """One chunk after another."""
    frame = data.records(rows=900).to_frame("pandas")
    fit = rj.JointPMF(rank=2, solver="map", n_init=2, random_state=0)
    for start in range(0, 900, 300):
        fit.partial_fit(frame[start : start + 300])
    return {"weights": digits(np.sort(fit.pmf_.weights)[::-1]), "answers": answers(fit.pmf_)}


def classified(classifier):
    cells, labels = data.labelled()
    some = {name: column[:12] for name, column in cells.items()}
    fit = classifier.fit(cells, labels)
    return {
        "labels": [bool(label) for label in fit.predict(some)],
        "probabilities": digits(fit.predict_proba(some)[:, 1]),
        "score": digits(fit.score(cells, labels)),
    }


@golden
def classifier(_):
    return classified(rj.JointClassifier(rank=6, random_state=0))


@golden
def classifier_auto(_):
    """The search for rank and strength, as it is by default."""
    return classified(rj.JointClassifier(random_state=0))


@golden
def classifier_map(_):
    return classified(rj.JointClassifier(rank=4, solver="map", random_state=0))


@golden
def imputer(_):
    cells, _labels = data.labelled(200, seed=3)
    some = {name: column[:20] for name, column in cells.items()}
    found = {}
    for method, joint in (("mode", False), ("mode", True), ("draw", False)):
        fit = rj.JointImputer(3, "map", method, joint, n_init=2, random_state=0).fit(cells)
        filled = fit.transform(some)
        found[f"{method}, joint={joint}"] = np.array(filled, dtype=object).T.tolist()
    found["distribution"] = digits(fit.distribution({"a": ["low"], "b": ["mid"]}, "c"))
    return found
