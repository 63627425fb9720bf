"""Totals among the levels of a table, found by their sums: a level that others add up to.

No list of words is needed: a level that equals the sum of its neighbors in every line of a table is
a total, in any language. How sure that is depends on how many numbers agree and how large they are:
``score`` is the number of decimal places by which chance is excluded. Words such as "Total" only
settle what few or small numbers leave open.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Usual words of totals, without accents, in lower case. They decide only what sums leave open.
TOTALS = frozenset(
    {
        *("total", "totals", "grand total", "sum", "all", "overall", "margin", "subtotal", "any"),
        *("insgesamt", "gesamt", "summe", "zusammen", "alle", "gesamtzahl", "ensemble", "tous"),
        *("toutes", "totale", "totaal", "totalt", "samlet", "i alt", "ogolem", "razem", "yhteensa"),
        *("todos", "todas", "ambos sexos", "both sexes", "all ages", "all persons", "persons", "t"),
        *("_t", "people", "todas las edades", "beide geschlechter", "deux sexes", "les deux sexes"),
        *("tous ages", "tous les ages", "totale popolazione", "wszyscy", "celkem", "osszesen"),
        *("all categories", "all usual residents", "everyone", "mannen en vrouwen", "begge kjonn"),
        *("both", "all groups", "total population", "toplam", "kokku", "skupaj", "ukupno"),
    }
)
#: Those of them that often are levels: they are totals only if they add up.
DOUBTFUL = frozenset({"all", "overall", "sum", "any", "alle", "tous", "toutes", "todos", "todas"})
DOUBTFUL |= {"t", "persons", "people", "both", "ensemble", "everyone", "margin"}

#: Decimal places of chance above which a sum is a total, and above which it may be one.
SURE, POSSIBLE = 3.0, 1.0
_WORD = 5.0  # what a word is worth, in places
_NEARLY = 0.005  # share of a number within which others nearly add up to it
_MANY = 400  # levels above which only sums of all the others are looked for


def same_text(text: str) -> str:
    """Return a text without case, accents and doubled blanks.

    Examples
    --------
    >>> same_text("  Île-de-France ")
    'ile-de-france'
    """
    known = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in known if not unicodedata.combining(c)).casefold()
    return re.sub(r"\s+", " ", bare).strip()


@lru_cache(maxsize=100_000)
def plain_text(text: object) -> str:
    """Return a label without accents, case, footnote marks and doubled blanks.

    Examples
    --------
    >>> plain_text("  Âge  (Years):"), plain_text("Total ¹")
    ('age (years)', 'total')
    """
    bare = same_text(re.sub(r"[¹²³⁰-⁹]", "", str(text)))
    return bare.strip(" :.*†\u2022").replace("ø", "o").replace("ł", "l")


def is_total_word(label: object) -> bool:
    """Return whether a label is a usual word of totals.

    Examples
    --------
    >>> is_total_word("INSGESAMT"), is_total_word("Total population 1)"), is_total_word("Men")
    (True, True, False)
    """
    text = re.sub(r"\s*(?:\d\)|\[.*\]|\(.*\)|\d)$", "", plain_text(label))
    starts = re.match(
        r"(?:grand |sub-?)?total(?:e|es|en|s)?\b|insgesamt\b|totaal\b|all (?!other)\w+s$", text
    )
    return text in TOTALS or bool(starts)


@dataclass
class Sums:
    """Which levels are sums of which: children of each total, and sums that may be chance.

    ``others`` are further divisions of a total, coarser than its children.
    """

    children: dict[int, tuple[int, ...]] = field(default_factory=dict)
    roots: tuple[int, ...] = ()
    doubtful: tuple[tuple[int, tuple[int, ...]], ...] = ()
    others: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether one level is the total of all others."""
        return len(self.roots) == 1 and self.roots[0] in self.children

    @property
    def leaves(self) -> list[int]:
        """Levels that are no totals, in their order."""
        return sorted(leaf for root in self.roots for leaf in self.leaves_of(root))

    def leaves_of(self, level: int) -> list[int]:
        """Levels that add up to a level."""
        if level not in self.children:
            return [level]
        return sorted(leaf for c in self.children[level] for leaf in self.leaves_of(c))


def find_sums(
    values: Array,
    digit: float,
    words: Array | NDArray[np.bool_],
    *,
    exact: bool = False,
    parts: Array | None = None,
    most: Array | None = None,
) -> Sums:
    """Find which rows of an array are sums of rows next to them, once these are taken together.

    Parameters
    ----------
    values : array (levels, lines)
        The numbers, NaN where they are not known.
    digit : float
        The unit to which numbers are rounded.
    words : array (levels,)
        How much each label is that of a total: 1 for a usual word, less for a hint, 0 for others.
    exact : bool
        Whether totals add up exactly if they do at all.
    parts : array (levels, lines), optional
        The numbers as parts of sums: those that are not listed are zero there.
    most : array (levels, lines), optional
        What numbers that are not known may be at the most.

    Examples
    --------
    >>> table = np.array([[30.0, 70, 11], [12, 40, 5], [18, 30, 6]])
    >>> sums = find_sums(table, 1.0, np.zeros(3, dtype=bool))
    >>> sums.children, sums.leaves
    ({0: (1, 2)}, [1, 2])
    """
    active = list(range(len(values)))
    found = Sums()
    gone: set[int] = set()
    while len(active) > 2:
        equations = _equations(values, parts, most, active, digit, words, exact)
        sure = [e for e in equations if e[1] >= SURE]
        taken: set[int] = set()
        if not sure:
            found.doubtful = tuple(
                (active[i], tuple(active[k] for k in run))
                for _, score, i, run in equations
                if score >= POSSIBLE or len(run) == len(active) - 1
            )
            break
        ready = [e for e in sure if not any(_is_part(other, e) for other in sure)] or sure
        for size, score, i, run in sorted(ready, key=lambda e: (e[0], -e[1])):
            if taken & {i, *run}:
                continue
            twins = [e for e in sure if e[0] == size and e[2] in run and i in e[3]]
            if any(e[1] >= score - 1e-9 for e in twins) and not words[active[i]]:
                found.doubtful += ((active[i], tuple(active[k] for k in run)),)
            kept = tuple(active[k] for k in run)
            before = found.children.get(active[i], ())
            if sum(len(found.leaves_of(k)) for k in before) > sum(
                len(found.leaves_of(k)) for k in kept
            ):
                before, kept = kept, before
            found.others += ((active[i], before),) if before else ()
            found.children[active[i]] = kept
            taken |= {i, *run}
            gone |= {active[k] for k in run}
        if not taken:
            break
        active = [a for a in active if a not in gone]
    found.roots = tuple(active)
    return found


Equation = tuple[int, float, int, tuple[int, ...]]


def _is_part(one: Equation, other: Equation) -> bool:
    """Return whether the total of one sum is in the run of the other, which must then wait."""
    return one[2] in other[3] and not {one[2], *one[3]} & ({other[2], *other[3]} - {one[2]})


def _equations(
    values: Array,
    parts: Array | None,
    most: Array | None,
    active: list[int],
    digit: float,
    words: Array | NDArray[np.bool_],
    exact: bool,
) -> list[Equation]:
    """Return sums of runs right before or after a row: size, score, row and run."""
    part = values[active]
    size = len(active)
    added = part if parts is None else parts[active]
    known = ~np.isnan(added)
    filled = np.where(known, added, 0.0)
    total = np.vstack([np.zeros((1, part.shape[1])), np.cumsum(filled, axis=0)])
    count = np.vstack([np.zeros((1, part.shape[1])), np.cumsum(known, axis=0)])
    # What is not known adds no more than this; infinity would not survive differences.
    room = np.where(known, 0.0, 1e300 if most is None else np.minimum(most[active], 1e300))
    above = np.vstack([np.zeros((1, part.shape[1])), np.cumsum(np.minimum(room, 1e12), axis=0)])
    chance = np.log10(max(size * (size - 1), 1))
    coarse = rounding_base(values, 3) if digit >= 1.0 else 0.0
    found: list[Equation] = []
    for i in range(size):
        for after in (True, False):
            if after:
                ends = np.arange(i + 3, size + 1) if size <= _MANY else np.array([size])
                first, last = np.full(len(ends), i + 1), ends
            else:
                first = np.arange(0, i - 1) if size <= _MANY else np.array([0])
                last = np.full(len(first), i)
            keep = last - first >= 2
            first, last = first[keep], last[keep]
            if not len(first):
                continue
            sums = total[last] - total[first]
            whole = (count[last] - count[first]) == (last - first)[:, None]
            full = last - first == size - 1
            extra = above[last] - above[first]
            scores = _scores(part[i], sums, whole, extra, last - first, digit, exact, full, coarse)
            for k in np.flatnonzero(np.isfinite(scores)):
                run = tuple(range(int(first[k]), int(last[k])))
                word = _WORD * float(words[active[i]])
                found.append((len(run), float(scores[k]) - chance + word, i, run))
        if 0 < i < size - 1 and size <= _MANY:  # in the middle, of all others
            rest = [k for k in range(size) if k != i]
            word = _WORD * float(words[active[i]])
            sums = filled[rest].sum(axis=0, keepdims=True)
            whole = np.asarray(known[rest].all(axis=0, keepdims=True))
            every = np.ones(1, dtype=bool)
            sizes = np.array([size - 1])
            extra = room[rest].sum(axis=0, keepdims=True)
            score = _scores(
                part[i], sums, whole, extra, sizes, digit, exact or not word, every, coarse
            )[0]
            if np.isfinite(score) and size > 2:  # or one of the others is a difference: never sure
                score = min(score, SURE - 0.1) if not word else score
                found.append((size - 1, float(score) + word, i, tuple(rest)))
    return found


def _scores(
    claim: Array,
    sums: Array,
    whole: NDArray[np.bool_],
    extra: Array,
    sizes: NDArray[np.intp],
    digit: float,
    exact: bool,
    full: NDArray[np.bool_],
    coarse: float,
) -> Array:
    """Return by how many places each run adds up to the claim beyond chance; -inf where not."""
    there = ~np.isnan(claim)
    best = np.full(len(sums), -np.inf)
    gap, magnitude = np.abs(sums - claim), np.abs(claim)
    known = whole & there
    spread = np.sqrt(sizes + 1.0)[:, None]
    tolerances = [np.zeros_like(gap)]
    if not exact:
        tolerances += [digit * spread + 0.0 * gap]
        if digit > 1.0:  # up or down at random
            tolerances += [1.5 * digit * spread + 0.0 * gap]
        near = np.maximum(_NEARLY * magnitude, 1.5 * coarse * spread)
        tolerances += [np.where(full[:, None], near, 0.0)]
    for number, tolerance in enumerate(tolerances):
        limit = tolerance + 1e-9 * np.maximum(magnitude, 1.0)
        fits = known & (gap <= limit)
        beyond = (sums - claim > limit) | (claim - sums - extra > limit)
        wrong = (known & ~fits) | (~whole & there & beyond)
        places = np.log10(np.maximum(magnitude / (2.0 * tolerance + digit), 1.0))
        score = np.where(fits, places, 0.0).sum(axis=1) - 2.0 * wrong.sum(axis=1)
        if number == len(tolerances) - 1 and not exact:  # nearly the sum: never sure by itself
            score = np.minimum(score, 1.0)
        good = (wrong.sum(axis=1) <= 0.2 * fits.sum(axis=1)) & (fits & (magnitude > 0)).any(axis=1)
        best = np.maximum(best, np.where(good, score, -np.inf))
        # Where no line is known as a whole, a sum is neither shown nor excluded.
        open_ = ~known.any(axis=1) & ~wrong.any(axis=1) & (there & (magnitude > 0)).any()
        best = np.maximum(best, np.where(open_, 0.0, -np.inf))
    return best


def rounding_base(values: Array, least: int = 6) -> float:
    """Return the number of which all values are multiples; 1 where fewer than ``least`` are.

    Examples
    --------
    >>> rounding_base(np.array([15.0, 20, 35, 5, 110, 95, 60, 45])), rounding_base(np.arange(9.0))
    (5.0, 1.0)
    """
    known = values[~np.isnan(values)]
    known = known[known != 0]
    for base in (1000.0, 100.0, 50.0, 10.0, 5.0, 3.0):
        if len(known) >= least and np.all(known % base == 0):
            return base
    return 1.0
