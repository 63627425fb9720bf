"""Fits whose results are kept, and what is kept of each.

Only public names are used, so that files may be merged, renamed and split beneath them. Each fit
is a function of a folder that it may write to, and gives plain numbers and texts.
"""

import warnings
from pathlib import Path

import golden_data as data
import numpy as np

import rejoint as rj
from rejoint.factorization import Admm, Kl, Limits, Smooth

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
    if np.isfinite(result.error):
        found["error"] = digits(result.error)
    if result.misfits:
        found["worst table"] = list(next(iter(result.misfits)))
    return found


def outcome(name, folder):
    """The fit, and how many remarks it made."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = FITS[name](Path(folder))
    found["remarks"] = sum(issubclass(w.category, rj.Remark) for w in caught)
    return found


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


# --- estimators --------------------------------------------------------------------------------


@golden
def joint_pmf_from_tables(_):
    frame = data.records(missing=0.1).to_frame("pandas")
    fit = rj.JointPMF(rank=2, solver="admm", n_init=2, random_state=0).fit(frame)
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
