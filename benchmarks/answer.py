"""The model that answers (``result.pmf``, a posterior mean of few classes): error, cost, coverage.

``python benchmarks/answer.py`` prints four tables:

error     tensor error of ``rj.estimate(data, rank).pmf`` over that of the mean of all 120 draws of
          the sampler, and that of ``pmf.representative`` for comparison, on random models
cost      CPU time of ``log_prob`` and of predictions of one variable, over that of the
          representative model alone; share of the fit's CPU time that making the answer takes
held-out  log-likelihood per record of the other half of real sets (``rj.datasets``), less that of
          the mean of all draws and less that of the representative model
bounds    how many 90 % intervals of ``pmf.interval`` and ``pmf.ask`` hold the truth, by where
          records come from: a frame, a CSV file, a scan whose every pass reads the file again

Last come the figures asked for beside those seen. By default a few models of each, about three
minutes; ``--full`` takes 20 models, more splits and 1,000 questions, half an hour. ``--only error``
and so on runs one table. Seeds begin at ``--seed``.
"""

import argparse
import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from models import random_pmf
from numpy.typing import NDArray
from speed.measures import cpu_time

import rejoint as rj
from rejoint.estimation.gibbs import Bayes, Draw
from rejoint.estimators.imputer.fill import level_probabilities

Array = NDArray[np.float64]

#: Random models: levels (None: 20 variables of 2 or 3), classes, records, share of missing cells.
MODELS: dict[str, tuple[list[int] | None, int, int, float]] = {
    "F = 10": ([10] * 5, 10, 10_000, 0.0),
    "F = 15": ([10] * 5, 15, 10_000, 0.0),
    "wide, 1,000": (None, 10, 1_000, 0.3),
    "wide, 10,000": (None, 10, 10_000, 0.3),
}

#: Real sets: classes, splits, most records.
SETS: dict[str, tuple[int, int, int]] = {
    "income": (15, 2, 20_000),
    "movielens action": (10, 4, 20_000),
    "movielens romance": (10, 3, 20_000),
    "mushroom": (12, 2, 20_000),
    "nursery": (10, 2, 20_000),
    "votes": (4, 6, 20_000),
    "car": (8, 6, 20_000),
    "credit": (4, 6, 20_000),
    "heart": (3, 6, 20_000),
}

#: The module, which has the name of its function.
ESTIMATE = importlib.import_module("rejoint.estimation.estimate")

COST_ROWS = 1_000_000
QUESTIONS_OF_MODEL = 20
LEVEL = 0.9


@dataclass
class Watch:
    """What a fit makes on its way to the answer."""

    draws: list[Draw] = field(default_factory=list)
    seconds: float = 0.0  # CPU time of making the answer of the draws
    fit_seconds: float = 0.0

    @property
    def share(self) -> float:
        """Share of the fit that makes the answer."""
        return self.seconds / self.fit_seconds

    def mean(self, like: rj.LowRankPMF) -> rj.LowRankPMF:
        """The mean of all draws, with all their classes."""
        models = (draw.model for draw in self.draws)
        return rj.LowRankPMF.average(
            [rj.LowRankPMF(m.weights, m.parts, like.domain) for m in models]
        )


@contextmanager
def watched() -> Iterator[Watch]:
    """Look at the draws of all chains, and at the time that the answer takes."""
    watch, sample, make = Watch(), Bayes.sample, ESTIMATE.posterior_mean

    def sampled(*args: Any, **options: Any) -> tuple[Draw, ...]:
        draws = sample(*args, **options)
        watch.draws = list(draws)
        return draws

    def made(*args: Any, **options: Any) -> Any:
        begun = time.process_time()
        mean = make(*args, **options)
        watch.seconds += time.process_time() - begun
        return mean

    begun = time.process_time()
    with patch.object(Bayes, "sample", sampled), patch.object(ESTIMATE, "posterior_mean", made):
        yield watch
    watch.fit_seconds = time.process_time() - begun


def fit(data: Any, rank: int, seed: int) -> tuple[rj.LowRankPMF, Watch]:
    """The public call, watched."""
    with watched() as watch:
        pmf = rj.estimate(data, rank, random_state=seed, progress=False).pmf
    return pmf, watch


def random_data(name: str, seed: int) -> tuple[rj.LowRankPMF, rj.Records]:
    """A random model of a kind, and records of it."""
    levels, rank, records, missing = MODELS[name]
    rng = np.random.default_rng(seed)
    truth = random_pmf(levels or rng.integers(2, 4, 20).tolist(), rank, rng)
    data = truth.sample(records, random_state=rng)
    return truth, rj.datasets.remove_cells(data, missing, random_state=rng) if missing else data


def show_errors(models: dict[str, int], seed: int) -> Iterator[tuple[str, str, str]]:
    """Errors on random models; what is asked and what is seen."""
    head = ("models", "mean of draws", "answer", "mode", "answer / mean", "worst", "mode / mean")
    print(f"{'error':<18}" + "".join(f"{h:>15}" for h in head) + f"{'making it':>12}")
    shares = []
    for name, count in models.items():
        rows = []
        for each in range(seed, seed + count):
            truth, data = random_data(name, each)
            pmf, watch = fit(data, truth.rank, each)
            found = (watch.mean(pmf), pmf, pmf.representative)
            rows.append([rj.metrics.tensor_error(truth, p) for p in found])
            shares.append(watch.share)
        errors = np.array(rows)
        full, answer, mode = np.sqrt(np.mean(errors**2, axis=0))
        worst = float((errors[:, 1] / errors[:, 0]).max())
        shown = [f"{full:.4f}", f"{answer:.4f}", f"{mode:.4f}"]
        shown += [f"{answer / full:.4f}", f"{worst:.4f}", f"{mode / full:.4f}"]
        line = "".join(f"{cell:>15}" for cell in (count, *shown))
        print(f"{name:<18}{line}{np.mean(shares[-count:]):>12.1%}", flush=True)
        yield f"error over the mean of all draws, {name}", "1.02", f"{answer / full:.3f}"
        yield f"... of a single model, {name}", "1.03", f"{worst:.3f}"
    yield (
        "share of the fit that makes the answer",
        "5 %",
        f"{np.mean(shares):.1%}, at most {max(shares):.1%}",
    )


def predict(pmf: rj.LowRankPMF, data: rj.Records) -> Array:
    """Probabilities of the first variable, given the others, as ``rejoint predict`` has them."""
    return level_probabilities(pmf, data.codes, 0)


JOBS: dict[str, Callable[[rj.LowRankPMF, rj.Records], Array]] = {
    "log_prob": rj.LowRankPMF.log_prob,
    "predictions": predict,
}


def show_costs(rows: int, turns: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """CPU time by the answer, over that by the representative model alone."""
    head = ("classes", "log_prob, us", "ratio", "predict, us", "ratio")
    print(f"{'cost':<18}" + "".join(f"{h:>14}" for h in head))
    for name in ("F = 10", "F = 15", "wide, 10,000"):
        truth, data = random_data(name, seed)
        pmf, _ = fit(data, truth.rank, seed)
        one = pmf.representative
        many = truth.sample(rows, random_state=seed)
        if (missing := MODELS[name][3]) > 0:
            many = rj.datasets.remove_cells(many, missing, random_state=seed)
        cells, seen = [], []
        for job, work in JOBS.items():
            # By turns, so that a busy machine slows both.
            pairs = [
                [cpu_time(partial(work, p, many), 2) for p in (one, pmf)] for _ in range(turns)
            ]
            few, much = (min(times) for times in zip(*pairs, strict=True))
            cells.append(f"{1e6 * much / rows:>14.2f}{much / few:>14.2f}")
            seen.append((f"CPU time of {job}, {name}", "1.6", f"{much / few:.2f}"))
        print(f"{name:<18}{f'{one.rank} to {pmf.mixture.rank}':>14}{''.join(cells)}", flush=True)
        yield from seen


def load(name: str) -> rj.Records:
    """A real set, all of its columns categorical or binned."""
    if name.startswith("movielens"):
        frame = rj.datasets.movielens(f"{name.split()[1]}_list20", backend="pandas")
        return rj.Records.of(frame.iloc[:, 1:])
    if name == "income":
        frame = rj.datasets.adult(backend="pandas")
        return rj.Records.of(frame.drop(columns=["split", "fnlwgt"]))
    return rj.Records.of(getattr(rj.datasets, name)(backend="pandas"))


def show_held_out(splits: dict[str, int]) -> Iterator[tuple[str, str, str]]:
    """Held-out log-likelihood per record on halves of real sets."""
    head = ("splits", "mean of draws", "answer less it", "worst", "less mode", "in std. errors")
    print(f"{'held-out':<18}" + "".join(f"{h:>15}" for h in head))
    below, errors = [], []
    for name, count in splits.items():
        rank, _, most = SETS[name]
        data = load(name)
        rows = []
        for seed in range(count):
            order = np.random.default_rng(seed).permutation(len(data))[:most]
            half = len(order) // 2
            pmf, watch = fit(data.take(order[:half]), rank, seed)
            rest = data.take(order[half:])
            answer, full, one = (
                p.log_prob(rest) for p in (pmf, watch.mean(pmf), pmf.representative)
            )
            gain = answer - one
            spread = max(float(gain.std(ddof=1)) / np.sqrt(len(gain)), 1e-12)
            rows.append([full.mean(), (answer - full).mean(), gain.mean(), gain.mean() / spread])
        found = np.array(rows)
        full_, less, gain_, _ = found.mean(axis=0)
        shown = [f"{full_:.4f}", f"{less:+.4f}", f"{found[:, 1].min():+.4f}", f"{gain_:+.4f}"]
        shown.append(f"{found[:, 3].min():+.1f}..{found[:, 3].max():+.1f}")
        print(f"{name:<18}" + "".join(f"{cell:>15}" for cell in (count, *shown)), flush=True)
        below.append(found[:, 1].min())
        errors.append(found[:, 3].min())
        yield f"held-out, less the mean of all draws, {name}", "-0.002", f"{less:+.4f}"
    yield "... the worst split", "-0.002", f"{min(below):+.4f}"
    yield "... less the mode, in standard errors, the worst split", "-2", f"{min(errors):+.1f}"


def show_bounds(models: int, told: tuple[bool, ...], seed: int) -> Iterator[tuple[str, str, str]]:
    """Coverage of intervals, by where records come from."""
    head = ("questions", "hold the truth", "std. error", "outside draws", "width", "effective")
    print(f"{'bounds':<34}" + "".join(f"{h:>15}" for h in head))
    for known in told:
        for size in (1_000, 10_000):
            for door in ("frame", "file", "scan"):
                each = [questions(door, size, k, known) for k in range(seed, seed + models)]
                found = np.array(each)
                held, outside, width, effective = found.mean(axis=(0, 1))
                # Questions of one model are not independent.
                error = found[:, :, 0].mean(axis=1).std(ddof=1) / np.sqrt(models)
                name = f"{size:,} records, {door}, rank {'told' if known else 'not told'}"
                shown = [found[:, :, 0].size, f"{held:.1%}", f"{error:.1%}", f"{outside:.2%}"]
                shown += [f"{width:.4f}", f"{effective:.1f}"]
                print(f"{name:<34}" + "".join(f"{cell:>15}" for cell in shown), flush=True)
                if known:
                    yield f"coverage, {name}", "87 to 93 %", f"{held:.1%} +- {error:.1%}"


def questions(door: str, size: int, seed: int, told: bool) -> list[list[float]]:
    """Of questions on one model: held, answer outside the draws' bounds, width, effective draws."""
    rng = np.random.default_rng(seed)
    truth = random_pmf([4] * 6, int(rng.integers(2, 6)), rng)
    frame = truth.sample(size, random_state=rng).to_frame("pandas").astype(str)
    options: dict[str, Any] = {"solver": "bayes", "random_state": seed, "progress": False}
    rank: Any = truth.rank if told else "auto"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        frame.to_csv(path, index=False)
        kinds = {"kinds": dict.fromkeys(frame.columns, "categorical")}
        if door == "frame":
            data: Any = rj.Records.of(frame, **kinds)
        elif door == "file":
            data = rj.read(path, **kinds)
        else:
            data = rj.scan(path, memory=0, **kinds)
        pmf = rj.estimate(data, rank, **options).pmf
    rows = []
    for _ in range(QUESTIONS_OF_MODEL):
        a, b, c = (f"x{n}" for n in rng.permutation(6)[:3])
        x, y, z = (int(k) for k in rng.integers(4, size=3))
        value = truth.prob({a: x}, given={b: y, c: z})
        asked = pmf.ask(f"P({a} = {x} | {b} = {y}, {c} = {z})", level=LEVEL)
        low, high = (float(bound) for bound in asked.interval)
        place = pmf.domain[a].levels.index(str(x))
        given = {b: str(y), c: str(z)}
        called = pmf.interval(a, given=given, level=LEVEL)
        assert np.allclose([low, high], [called.low[place], called.high[place]], atol=1e-12)
        drawn = pmf.draws.interval(a, given=given, level=LEVEL)
        outside = not drawn.low[place] <= asked.value <= drawn.high[place]
        rows.append([low <= value <= high, outside, high - low, called.effective])
    return rows


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = ("error", "cost", "held-out", "bounds")
    parser.add_argument("--only", choices=tables, action="append", help="one table")
    parser.add_argument("--full", action="store_true", help="as many models as figures need")
    parser.add_argument("--seed", type=int, default=50_000, help="first seed of random models")
    options = parser.parse_args()
    full, seed = options.full, options.seed
    wanted = options.only or tables
    runs: dict[str, Iterator[tuple[str, str, str]]] = {
        "error": show_errors(
            {name: (20 if "F" in name else 10) if full else 3 for name in MODELS}, seed
        ),
        "cost": show_costs(COST_ROWS if full else COST_ROWS // 10, 5, seed),
        "held-out": show_held_out({k: n if full else 1 for k, (_, n, _) in SETS.items()}),
        "bounds": show_bounds(50 if full else 5, (True, False) if full else (True,), seed),
    }
    lines = []
    for name in wanted:
        lines += list(runs[name])
        print()
    print(f"{'':<70}{'asked':>12}  seen")
    for what, asked, seen in lines:
        print(f"{what:<70}{asked:>12}  {seen}")


if __name__ == "__main__":
    main()
