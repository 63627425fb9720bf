"""One sheet of figures that guards rewrites: what is stored, what is now, and what became worse.

``make figures`` measures groups of figures in a few CPU minutes, and prints each with its
stored value and their ratio. A row is marked where it is worse by more than its tolerance: 1 % on
real data, 3 % on random models, 20 % of CPU time; the command then ends with an error. ``--only
fits surveys`` measures some groups, ``--store`` rewrites what is stored of those measured, with the
commit of the package and the date.

fits        loss (negative log-likelihood) per record of a fifth kept aside, on 12 sets, and CPU
models      rank not told: error over that at the true rank, 90 % intervals that hold the truth,
            and how far the rank found is off
raw         answers on four raw files against counts (``trust.py``)
surveys     answers against the other half of four surveys (``surveys.py``)
classifier  log-loss on three sets, complete and with 25 % of the features missing
imputer     errors of removed cells of two tables
recommender errors of one split of movie ratings (their folder in ``REJOINT_DATA``)
speed       CPU of reading a CSV file, of an EM pass over NumPy's, of the import
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # benchmarks import each other both ways

import default_fit  # noqa: E402
import surveys  # noqa: E402
import trust  # noqa: E402
from benchmarks.accuracy import ranks, untold  # noqa: E402

import rejoint as rj  # noqa: E402

STORE = HERE / "figures.json"

REAL, RANDOM, CPU = 0.01, 0.03, 0.20


class Figure(NamedTuple):
    """A figure, how much worse it may become, and whether a higher one is better."""

    name: str
    value: float
    tolerance: float = REAL
    higher: bool = False

    def is_worse(self, stored: float) -> bool:
        """Whether it is worse than what is stored, by more than the tolerance."""
        gain = self.value - stored if self.higher else stored - self.value
        return gain < -self.tolerance * abs(stored)


Figures = Iterator[Figure]

#: Sets for the default fit: as ``default_fit.py`` names them, or made here.
FITS = (
    *("votes", "car", "nursery", "mushroom"),
    *("carData:BEPS", "ISLR:Wage", "carData:Chile", "AER:Affairs", "carData:Cowles"),
    *("adult", "movielens", "ISLR:Caravan"),
)


def fits() -> Figures:
    total = 0.0
    for name in FITS:
        try:
            learn, judge = fit_set(name)
        except rj.datasets.FetchError:
            print(f"{name} is not there: set REJOINT_DATA")
            continue
        result, cpu = default_fit.timed(lambda own=learn: rj.estimate(own, random_state=0))
        title = name.rsplit(":", 1)[-1]
        total += cpu
        yield Figure(f"{title}, loss", -default_fit.mean_log(result.pmf, judge))
        yield Figure(f"{title}, CPU s", cpu, CPU)
    yield Figure("all fits, CPU s", total, CPU)


def fit_set(name: str) -> tuple[rj.Records, rj.Records]:
    """Records to learn from and to judge by."""
    if name == "adult":
        frame = rj.datasets.adult(backend="pandas").drop(columns="split")
        return default_fit.parted(rj.Records.of(frame.sample(8000, random_state=0)))
    if name == "movielens":
        frame = rj.datasets.movielens("action_top20", whole_stars=True, backend="pandas")
        return default_fit.parted(rj.Records.of(frame.iloc[:, 1:]))
    return default_fit.load(name, Path())


#: Random models of each case with the rank not told, and of each kind whose rank is to be found.
UNTOLD = {
    "5 x 10, 1,000": 8,
    "5 x 10, 10,000": 6,
    "20 x 2 or 3, 30 % missing, 1,000": 4,
    "20 x 2 or 3, 30 % missing, 10,000": 3,
}
RANKS = {"weights Dirichlet(5)": 8, "weights Dirichlet(1)": 4, "five variables of ten levels": 4}


def models() -> Figures:
    hits: list[bool] = []
    for name, count in UNTOLD.items():
        draw, size, _ = untold.CASES[name]
        found = [untold.one_model(draw, size, seed) for seed in range(count)]
        hits += [held for one in found for held in one.held]
        yield Figure(f"{name}, error", float(np.mean([one.ratio for one in found])), RANDOM)
        yield Figure(f"{name}, CPU s", sum(one.seconds for one in found), CPU)
    yield Figure("intervals held", float(np.mean(hits)), RANDOM, higher=True)
    for kind, count in RANKS.items():
        ours = [ranks.one_rank(ranks.KINDS[kind][1], seed) for seed in range(count)]
        off = np.mean([abs(found - truth.rank) for found, truth, _ in ours])
        yield Figure(f"rank off, {kind}", float(off), RANDOM)


RAW = ("smoking", "flchain", "wagepan", "happiness")


def raw() -> Figures:
    rows = {name: trust.judged(name, 200) for name in RAW}
    for way, mean in trust.summed(rows, worst=False).items():
        for key in ("within", "held"):
            yield Figure(f"{way}, {key}", mean[key], higher=True)
    yield Figure("columns dropped", sum(len(row["stops"]) for row in rows.values()), 0.0)
    yield Figure("CPU s", sum(row["CPU"] for row in rows.values()), CPU)


SURVEYS = ("Chile", "BEPS", "GSS7402", "HealthInsurance")


def survey_halves() -> Figures:
    rows = [surveys.fitted(surveys.split(name, 0), 0) for name in SURVEYS]
    for key in ("pairs", "triples", "sparse"):
        yield Figure(key, float(np.mean([row[key] for row in rows])))
    yield Figure("held", float(np.mean([row["held"] for row in rows])), higher=True)
    yield Figure("CPU s", sum(row["CPU"] for row in rows), CPU)


CLASSIFIED = ("votes", "BankWages", "biopsy")


def classifier() -> Figures:
    from benchmarks.classify import log_loss
    from sklearn.model_selection import StratifiedKFold

    cpu = 0.0
    for name in CLASSIFIED:
        X, y = log_loss.load(name)
        splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
        found = log_loss.measure(log_loss.OURS, X, y, *next(splits))
        cpu += found["cpu"]
        for share, text in ((0.0, "complete"), (0.25, "25 % missing")):
            yield Figure(f"{name}, {text}", float(found[f"loss_{share:g}"].mean()))
    yield Figure("CPU s", cpu, CPU)


def imputer() -> Figures:
    import impute

    for name in ("penguins", "CPS1985"):
        found = impute.one("JointImputer", name, "mcar", 2000, 1)
        yield Figure(f"{name}, NRMSE", found["NRMSE"])
        yield Figure(f"{name}, log-loss", found["log-loss"])
        yield Figure(f"{name}, coverage", found["coverage"], higher=True)
        yield Figure(f"{name}, CPU s", found["CPU"], CPU)


def recommender() -> Figures:
    import recommend

    try:
        ratings = recommend.load("animation")
    except rj.datasets.FetchError:
        print("MovieLens is not there: set REJOINT_DATA")
        return
    found = recommend.measure("JointRecommender", ratings, 0)
    yield Figure("RMSE", found["rmse"])
    yield Figure("MAE", found["mae"])
    yield Figure("CPU s", found["cpu"], CPU)


def speed() -> Figures:
    import em

    codes = em.make_codes(200_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        names = [f"v{n}" for n in range(codes.shape[1])]
        lines = [",".join("" if cell < 0 else f"level {cell}" for cell in row) for row in codes]
        path.write_text("\n".join([",".join(names), *lines]) + "\n")
        yield Figure("CSV of 200,000 x 20, CPU s", em.cpu_time(lambda: rj.read(path), 3), CPU)
    yield Figure("EM pass, over NumPy's", em.compiled(codes) / em.twin(codes), CPU)
    yield Figure("import, CPU s", min(import_time() for _ in range(5)), CPU)


def import_time() -> float:
    """CPU seconds of the import in a process of its own."""
    code = "import time; t = time.process_time(); import rejoint; print(time.process_time() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


GROUPS: dict[str, Callable[[], Figures]] = {
    "fits": fits,
    "models": models,
    "raw": raw,
    "surveys": survey_halves,
    "classifier": classifier,
    "imputer": imputer,
    "recommender": recommender,
    "speed": speed,
}


def compared(group: str, stored: dict[str, Any]) -> tuple[dict[str, float], int]:
    """Measure and print a group: its figures, and how many are worse than stored."""
    before = stored.get(group, {})
    made = f" (stored: {before['commit']}, {before['date']})" if before else ""
    print(f"\n{group}{made}\n{'':42s}{'stored':>10s}{'now':>10s}{'ratio':>8s}", flush=True)
    found, worse = {}, 0
    for figure in GROUPS[group]():
        found[figure.name] = round(figure.value, 5)
        line, old = f"{figure.name:42s}", before.get("figures", {}).get(figure.name)
        if old is None:
            print(f"{line}{'-':>10s}{figure.value:10.4f}", flush=True)
            continue
        mark = "  worse" if figure.is_worse(old) else ""
        worse += bool(mark)
        ratio = f"{figure.value / old:8.3f}" if old else f"{'-':>8s}"
        print(f"{line}{old:10.4f}{figure.value:10.4f}{ratio}{mark}", flush=True)
    return found, worse


def stamp() -> dict[str, str]:
    """The commit of the package that is measured, and the date."""
    folder = Path(rj.__file__).parent
    git = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return {"commit": done.stdout.strip() or "?", "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--store", action="store_true", help="rewrite what is stored")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = json.loads(STORE.read_text()) if STORE.exists() else {}
    worse, fresh = 0, dict(stored)
    for group in options.only:
        found, count = compared(group, stored)
        fresh[group] = stamp() | {"figures": found}
        worse += count
        if options.store:  # group by group, so that what is done is kept
            STORE.write_text(json.dumps(fresh, indent=1) + "\n")
    print(f"\n{worse} worse than stored; {process_time():.0f} CPU seconds in all.")
    sys.exit(bool(worse) and not options.store)


if __name__ == "__main__":
    main()
