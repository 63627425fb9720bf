"""Policy: every tuned number is documented, kept with the result, and used."""

import inspect
from dataclasses import FrozenInstanceError, fields, replace
from functools import cache

import numpy as np
import pytest
from small_records import ordinal, random_records

import rejoint as rj
from rejoint.estimation import Bayes, Em, Policy, Variational, estimate
from rejoint.records.infer import ColumnRule
from rejoint.solver import Limits

RECORDS = random_records(0, (3, 3, 3, 3), 200, rank=3, missing=0.1)
SHORT = Bayes(chains=2, burn_in=5, draws=6, thin=1)


def test_every_field_is_documented_by_the_comment_above_it():
    """Fields that belong together share one comment; headings of sections are none."""
    names = {each.name for each in fields(Policy)}
    documented, comment = set(), False
    for line in map(str.strip, inspect.getsource(Policy).splitlines()):
        if line.startswith("#"):
            comment = not line.startswith("# --")
        elif (name := line.split(":")[0]) in names:
            assert comment, f"{name} has no comment"
            documented.add(name)
        else:
            comment = False
    assert documented == names


def test_results_keep_their_policy():
    policy = Policy(lifts=1)
    assert estimate(RECORDS, 2, "ml", n_init=1, random_state=0, policy=policy).policy is policy
    assert estimate(RECORDS, 2, "ml", n_init=1, random_state=0).policy == Policy()
    scan = rj.scan(RECORDS, size=50, memory=0)
    assert estimate(scan, 2, "ml", n_init=1, random_state=0, policy=policy).policy is policy


def test_policies_are_values():
    assert Policy() == Policy()
    assert Policy(lifts=1) != Policy()
    assert hash(Policy(lifts=1)) == hash(Policy(lifts=1))
    with pytest.raises(FrozenInstanceError):
        Policy().lifts = 3


def test_a_policy_prints_one_number_a_line():
    lines = str(Policy(lifts=7)).splitlines()
    assert len(lines) == len(fields(Policy))
    assert "lifts = 7" in lines
    assert "first_cap = 8" in lines


def test_the_policy_given_is_the_one_of_named_solvers_only():
    """An object has its own."""
    policy = Policy(plain_steps=50)
    named, own = (estimate(RECORDS, 3, s, random_state=0, policy=policy) for s in ("ml", Em()))
    same = estimate(RECORDS, 3, Em(policy=policy), random_state=0, policy=policy)
    assert named.pmf == same.pmf
    assert named.stop == same.stop
    assert named.stop != own.stop


# --- every field changes some fit ---------------------------------------------------------------


def scan():
    return rj.scan(RECORDS, size=50, memory=0)


def dependent():
    """Records in which each two variables depend in their own way."""
    rng = np.random.default_rng(0)
    first = rng.integers(3, size=(2000, 4))
    first[:, 1] = np.where(rng.random(2000) < 0.8, first[:, 0], first[:, 1])
    first[:, 3] = np.where(rng.random(2000) < 0.8, first[:, 2], first[:, 3])
    return rj.Records.of(first, domain=rj.Domain.of_shape((3, 3, 3, 3)))


FITS = {
    "misfit": lambda **o: estimate(dependent(), 2, SHORT, **o),
    "ml": lambda **o: estimate(RECORDS, 3, "ml", n_init=5, **o),
    "ml, default starts": lambda **o: estimate(RECORDS, 3, "ml", **o),
    "shared labels": lambda **o: estimate(RECORDS, 3, "ml", n_init=1, **o),
    "disagreeing": lambda **o: estimate(RECORDS, 4, "ml", **o),
    "map": lambda **o: estimate(RECORDS, 3, "map", n_init=3, **o),
    "auto": lambda **o: estimate(RECORDS, 2, **o),
    "bayes": lambda **o: estimate(RECORDS, 3, replace(SHORT, policy=o["policy"]), **o),
    "bayes, rank": lambda **o: estimate(RECORDS, solver=SHORT, **o),
    "streamed": lambda **o: estimate(scan(), 3, "ml", n_init=2, **o),
    "streamed bayes": lambda **o: estimate(scan(), 2, "bayes", n_init=None, **o),
    "streamed bayes, rank": lambda **o: estimate(scan(), solver=SHORT, **o),
    "smooth": lambda **o: estimate(
        rj.Records(ordinal(RECORDS.domain), RECORDS.codes), 2, "map", smooth=True, n_init=1, **o
    ),
    "columns": lambda **o: estimate({"x": [*range(0, 36, 3)] * 3, "y": [0, 1] * 18}, 2, "ml", **o),
    "rank": lambda **o: rj.rank.select(RECORDS, criterion="bic", **o),
    "evidence": lambda **o: rj.rank.select(RECORDS, [1, 2, 3], criterion="evidence", **o),
    "search": lambda **o: rj.rank.select(RECORDS, **o),
    "default": lambda **o: estimate(RECORDS, **o),
    "sparse rank": lambda **o: rj.rank.select(RECORDS, criterion="variational", **o),
}

#: For each field another value, a fit that it changes, and other fields that this needs.
CASES = {
    "plain_steps": (1, "ml"),
    "em_memory": (2, "ml"),
    "largest_move": (0.05, "ml"),
    "early_move": (0.01, "ml"),
    "early_passes": (0, "ml"),
    "small_count": (0.0, "ml"),
    "careful_passes": (0, "ml"),
    "em_nats": (10.0, "ml"),
    "start_budget": (1, "ml, default starts"),
    "fewest_starts": (5, "ml, default starts", {"start_budget": 1}),
    "most_starts": (4, "ml, default starts"),
    "faithful_blend": (0.6, "ml"),
    "cautious_blend": (0.6, "ml"),
    "growth_steps": (1, "ml"),
    "vote_doubt": (1.0, "shared labels"),
    "glimpse": (Limits(max_steps=5, exact=-1.0), "ml"),
    "kept_starts": ((0.0, 0.0), "ml, default starts"),
    "same_nats": (1e9, "ml, default starts"),
    "near_nats": (1e9, "disagreeing"),
    "other_classes": (1.1, "disagreeing", {"near_nats": 1e9}),
    "explore": (Limits(max_steps=5, exact=-1.0), "ml"),
    "lifts": (0, "ml"),
    "largest_lifted_pass": (0, "ml"),
    "lift": (0.1, "ml"),
    "lift_nats": (-1e9, "ml"),
    "negligible_records": (70.0, "ml", {"negligible_nats": 1e9}),
    "negligible_nats": (1e9, "ml", {"negligible_records": 70.0}),
    "empty_weight": (0.33, "ml"),
    "same_column": (0.99, "ml"),
    "concentration_steps": (1, "map"),
    "concentration_median": (5.0, "map"),
    "concentration_spread": (0.1, "map"),
    "concentration_range": ((1.0, 2.0), "map"),
    "plenty_records_per_parameter": (1.0, "auto"),
    "modes": (2, "bayes", {"most_modes": 6, "start_budget": 1}),
    "most_modes": (6, "bayes"),
    "answer_classes": (1.0, "bayes"),
    "anchored_passes": (0, "bayes"),
    "anchor_records": (1.0, "bayes"),
    "agreement": (False, "bayes"),
    "pair_levels": (0, "bayes"),
    "pair_cells": (1e4, "bayes"),
    "pair_anchor": (1.0, "bayes"),
    "pair_steps": (2, "bayes"),
    "pair_steps_divided": (2, "misfit"),
    "pair_rounds": (0, "misfit"),
    "pair_anchor_divided": (5.0, "misfit"),
    "pair_cells_divided": (0.0, "misfit"),
    "gap_errors": (-10.0, "ml"),
    "gaps_kept": (1, "ml", {"gap_errors": -10.0}),
    "mode_nats": (-1.0, "bayes", {"explore": Limits(max_steps=5, exact=-1.0)}),
    "finished_mode_records_per_parameter": (0.0, "bayes"),
    "concentration_stride": (0.1, "bayes"),
    "concentration_share": (1.0, "bayes"),
    "sample_cells": (400, "streamed", {"fewest_sampled": 1}),
    "fewest_sampled": (100, "streamed", {"sample_cells": 0}),
    "most_sampled": (100, "streamed", {"fewest_sampled": 1}),
    "streamed_nats": (1e3, "streamed"),
    "streamed_chains": (1, "streamed bayes"),
    "streamed_burn_in": (5, "streamed bayes"),
    "streamed_draws": (5, "streamed bayes"),
    "streamed_thin": (1, "streamed bayes"),
    "smooth_times": ((0.0, 0.5), "smooth"),
    "smooth_folds": (2, "smooth"),
    "one_fold_records": (10, "smooth"),
    "smooth_rows": (20, "smooth"),
    "smooth_rank": (1, "smooth"),
    "smooth_spread": (0.1, "smooth", {"smooth_times": (0.4,)}),
    "columns": (ColumnRule(few_bins=5, report=False), "columns"),
    "smooth_concentration": (1.0, "smooth", {"smooth_times": (0.4,)}),
    "rank_gap": (10.0, "rank", {"ranks_tried": (1, 6, 8)}),
    "rank_nats": (300.0, "evidence"),
    "most_rows": (30, "rank"),
    "ranks_tried": ((1, 3, 4), "search"),
    "cap_ratio": (100.0, "search", {"few_classes": 1, "largest_best": 0}),
    "flat_ranks": (1, "search", {"largest_best": 0}),
    "least_judged_rank": (1, "search", {"trial_sweeps": 9, "flat_ranks": 1, "largest_best": 0}),
    "judging_records": (10.0, "search", {"largest_best": 0}),
    "learn_rows": (20, "search", {"largest_best": 0}),
    "judge_rows": (10, "search", {"largest_best": 0}),
    "records_per_class": (80.0, "search", {"largest_best": 0}),
    "search_cells": (1e6, "search", {"largest_best": 0}),
    "passes_per_rank": (1e8, "search", {"largest_best": 0}),
    "cells_per_level": (1e8, "search", {"largest_best": 0}),
    "cells_per_pass": (1e9, "search", {"largest_best": 0}),
    "quick_cells": (1e6, "search", {"largest_best": 0}),
    "full_fits": (1e3, "search", {"largest_best": 0, "quick_cells": 1e6}),
    "tried_share": (0.0, "search", {"largest_best": 0}),
    "merged_share": (0.0, "search", {"largest_best": 0}),
    "refined_share": (0.0, "search"),
    "chains_share": (0.0, "default"),
    "bounds_classes": (1.0, "default", {"sure_errors": -50.0}),
    "trial_chains": (1, "search"),
    "trial_sweeps": (10, "search"),
    "trial_keep": (15, "search"),
    "trial_thin": (2, "search"),
    "few_classes": (1, "search"),
    "many_trial_chains": (2, "search"),
    "short_sweeps": (2, "search", {"largest_best": 0}),
    "polish_steps": (2, "search"),
    "polish_progress": (1e-2, "search"),
    "largest_merged": (1, "search", {"largest_best": 0}),
    "merge_cells": (0.0, "search", {"largest_best": 0}),
    "merged_pairs": (1, "search"),
    "merge_trial_steps": (1, "search"),
    "merge_steps": (1, "search"),
    "ensemble_errors": (5.0, "default"),
    "fewest_chain_classes": (8, "default"),
    "ensemble_classes": (1.0, "default"),
    "ensemble_records": ((50.0, 40.0), "default"),
    "most_classes": (2, "default"),
    "chains": (4, "default"),
    "few_chains": (2, "default", {"sure_errors": -50.0, "run_off_cells": 3e8}),
    "sweeps_tried": ((10, 20), "default"),
    "run_off_cells": (0.0, "default"),
    "mode_cells": (0.0, "default", {"sure_errors": -50.0}),
    "sure_errors": (-50.0, "default"),
    "pooled_errors": (-1.0, "default"),
    "largest_best": (0, "search"),
    "refine_steps": (1, "search"),
    "refine_cells": (0.0, "search"),
    "refine_records": (0.0, "search"),
    "representative_chains": (1, "default"),
    "several_chains_rank": (0, "default"),
    "representative_steps": (1, "default"),
    "representative_cells": (0.0, "default"),
    "sparse_pseudo_count": (5.0, "sparse rank"),
    "first_cap": (2, "sparse rank"),
    "least_records": (60.0, "sparse rank"),
}

#: Fields that change where a fit is computed, not what is found: see test_record_starts.
OF_THREADS = {"smallest_threaded_pass", "largest_threaded_pass"}


def trace(found):
    """All that a fit or a selection of a rank reports, but for the time that it took."""
    if isinstance(found, rj.rank.Selection):
        ensemble = () if found.ensemble is None else tuple(found.ensemble.scores)
        return found.ranks, tuple(found.scores), found.words, weights(found.pmf), ensemble
    steps = tuple((r.start, r.step, r.objective) for r in found.history)
    draws = found.posterior.draws if found.posterior else ()
    models = (found.pmf, found.pmf.mixture, *draws)
    ensemble = found.selection.ensemble if found.selection is not None else None
    curve = () if ensemble is None else (ensemble.plan, *ensemble.scores)
    texts = found.choice, found.stop, found.agreement
    return steps, texts, curve, *map(weights, models)


def weights(pmf):
    return tuple(np.asarray(pmf.weights))


@cache
def trace_of(name, policy):
    return trace(FITS[name](random_state=0, policy=policy))


def test_every_field_has_a_case():
    assert CASES.keys() | OF_THREADS == {each.name for each in fields(Policy)}


@pytest.mark.parametrize("name", CASES)
def test_another_value_changes_the_fit(name):
    value, fit, *needs = CASES[name]
    base = replace(Policy(), **(needs[0] if needs else {}))
    assert value != getattr(base, name)
    assert trace_of(fit, replace(base, **{name: value})) != trace_of(fit, base)


def test_variational_has_a_policy():
    policy = Policy(concentration_median=5.0)
    one, other = (
        estimate(RECORDS, 2, Variational(policy=p), n_init=2, random_state=0)
        for p in (Policy(), policy)
    )
    assert trace(one) != trace(other)
