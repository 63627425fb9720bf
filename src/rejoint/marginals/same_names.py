"""Unify names of variables and levels that several tables write differently.

Case, blanks and accents are merged, and that is said. What only looks alike (Men and Male, 15-24
and 15 to 24, Sex and Gender) is an error that prints the option to add. Groups of numbers, such as
ages, that one table has finer than another are aligned by their edges.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rejoint.marginals.facet import Facet
from rejoint.marginals.vocabulary import MALE, concept_of_labels, concept_of_name, plain_text
from rejoint.messages import Argument, Message, join_messages, remark
from rejoint.text import cite, show

Interval = tuple[float, float]

_NUMBER = r"(\d+(?:\.\d+)?)"
_INTERVALS = [
    (rf"(?:y|y_)?{_NUMBER}\s*(?:-|\u2013|to|a|bis|till|ate|do)\s*(?:y)?{_NUMBER}", "closed"),
    (rf"{_NUMBER}\s*(?:bis unter|to under|tot|- under|to less than)\s*{_NUMBER}", "open"),
    (rf"(?:y_lt|under|unter|moins de|menos de|less than|jonger dan|meno di|below|<)\s*{_NUMBER}",
     "below"),
    (rf"(?:up to|bis|<=|jusqu'a|hasta|tot en met)\s*{_NUMBER}", "most"),
    (rf"(?:y_ge|>=)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|(?:and|or|et|ou|und|y|o|e|en|of|u\.?)\s+"
     r"(?:over|more|above|older|plus|mehr|alter|mas|oltre|piu|ouder|meer))", "least"),
    (rf"y?{_NUMBER}", "single"),
]  # fmt: skip
_UNIT = re.compile(r"\b(?:years?|yrs?|jahren?|ans|anos|jaar|anni|ar|old|of age|aged|age)\b")


def interval_of(label: str) -> Interval | None:
    """Return the numbers that a label stands for, from the first up to below the second.

    Examples
    --------
    >>> interval_of("15 to 24 years"), interval_of("15 bis unter 25"), interval_of("65 ans et plus")
    ((15.0, 25.0), (15.0, 25.0), (65.0, inf))
    >>> interval_of("Under 5"), interval_of("Men")
    ((0.0, 5.0), None)
    """
    text = re.sub(r"\s+", " ", _UNIT.sub(" ", plain_text(label).replace("\u2013", "-"))).strip()
    for pattern, kind in _INTERVALS:
        found = re.fullmatch(pattern, text)
        if found is None:
            continue
        numbers = [float(group) for group in found.groups() if group]
        first, last = numbers[0], numbers[-1]
        ends = {
            "closed": (first, last + 1.0),
            "open": (first, last),
            "below": (0.0, last),
            "most": (0.0, last + 1.0),
            "least": (first, math.inf),
            "single": (first, first + 1.0),
        }[kind]
        return ends if ends[0] < ends[1] else None
    return None


@dataclass(frozen=True)
class _Use:
    """A variable in one table."""

    facet: Facet
    axis: int
    where: str

    @property
    def labels(self) -> list[str]:
        return self.facet.labels[self.axis]


def apply_same(facets: Sequence[Facet], same: Mapping[str, str]) -> None:
    """Rename variables and levels as the user specifies, in place."""
    told = {plain_text(key): value for key, value in same.items()}
    for facet in facets:
        for k, labels in enumerate(facet.labels):
            if told_name := told.get(plain_text("/".join(labels[:2])), ""):
                facet.names[k], facet.headings = told_name, frozenset()
            facet.names[k] = told.get(plain_text(facet.names[k]), facet.names[k])
            facet.labels[k] = _renamed(facet, k, told)


def use_one_name(
    tables: Sequence[tuple[Facet, str]], same: Mapping[str, str], domain: Sequence[str] = ()
) -> list[str]:
    """Unify variables and levels in all tables, in place; remark on what was merged.

    Parameters
    ----------
    tables : sequence of (Facet, str)
        The tables, and where each is from.
    same : mapping of str to str
        What the user says is the same: variables or levels, by name.
    domain : sequence of str
        Names of variables that are known.
    """
    told = {plain_text(key): value for key, value in same.items()}
    said: list[str] = []
    uses: dict[str, list[_Use]] = {}
    written = {plain_text(name): name for name in domain}
    names = [name for facet, _ in tables for name in facet.names if name]
    for name in sorted(names, key=lambda name: not name[:1].isupper()):
        written.setdefault(plain_text(name), name)  # rather as in a header than as in a title
    for facet, where in tables:
        for k, name in enumerate(facet.names):
            if not name:
                continue
            first = written.setdefault(plain_text(name), name)
            if first != name:
                said.append(f"{cite(name)} in {where} is {cite(first)}")
                facet.names[k] = first
            uses.setdefault(first, []).append(_Use(facet, k, where))
    _check_variables(uses, told)
    for name, found in uses.items():
        said += _merge_levels(found)
        _check_levels(name, found, told)
        said += _align_edges(name, found)
    return said


def _renamed(facet: Facet, k: int, told: Mapping[str, str]) -> list[str]:
    labels = [told.get(plain_text(label), label) for label in facet.labels[k]]
    return labels if len(set(labels)) == len(labels) else facet.labels[k]


def _merge_levels(uses: Sequence[_Use]) -> list[str]:
    """Write levels that differ in case, blanks and accents only as the first table does."""
    written: dict[str, str] = {}
    said = []
    for use in uses:
        for i, label in enumerate(use.labels):
            key = plain_text(label)
            first = written.get(key)
            if first is None or first in use.labels:
                written.setdefault(key, label)
            elif first != label:
                said.append(f"{cite(label)} in {use.where} is {cite(first)}")
                use.labels[i] = first
    return said


def _check_variables(uses: Mapping[str, Sequence[_Use]], told: Mapping[str, str]) -> None:
    """Raise for two variables that look like one: Sex and Gender, Age and Age group."""
    names = list(uses)
    kept = set(told.values())
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            if one in kept and other in kept:
                continue
            together = {id(u.facet) for u in uses[one]} & {id(u.facet) for u in uses[other]}
            if together or not _look_like_one(one, other, uses[one][0], uses[other][0]):
                continue
            raise ValueError(
                Message(
                    "{one!r} in {here} and {other!r} in {there} look like one variable. Use {same} "
                    "if they are, or {own} if they are not.",
                    one=one,
                    other=other,
                    here=uses[one][0].where,
                    there=uses[other][0].where,
                    same=Argument("same", {other: one}),
                    own=join_messages(
                        [Argument("same", {name: name}) for name in (one, other)], " and "
                    ),
                )
            )


def _look_like_one(one: str, other: str, use: _Use, another: _Use) -> bool:
    pairs = ((one, use), (other, another))
    concepts = [concept_of_name(name) or concept_of_labels(u.labels) for name, u in pairs]
    if concepts[0] and concepts[0] == concepts[1]:
        return True
    a, b = plain_text(one), plain_text(other)
    labels = {plain_text(x) for x in use.labels} == {plain_text(x) for x in another.labels}
    near = a in b or b in a or difflib.SequenceMatcher(None, a, b).ratio() >= 0.8
    return labels and near


def _check_levels(name: str, uses: Sequence[_Use], told: Mapping[str, str]) -> None:
    """Raise for levels of one variable that look like the same under two names."""
    own = {value for value in told.values()}
    for i, one in enumerate(uses):
        for other in uses[i + 1 :]:
            mine = [x for x in one.labels if x not in other.labels and x not in own]
            others = [x for x in other.labels if x not in one.labels and x not in own]
            pairs = list(_alike(mine, others, len(mine) == len(one.labels)))
            if not pairs:
                continue
            texts = [f"{cite(a)} ({one.where}) and {cite(b)} ({other.where})" for a, b in pairs]
            options = [Argument("same", {b: a}) for a, b in pairs]
            raise ValueError(
                Message(
                    "Levels of {name!r} look like one level under two names: {texts}. Use "
                    "{options} if they are.",
                    name=name,
                    texts="; ".join(texts),
                    options=join_messages(options, " "),
                )
            )


def _alike(mine: Sequence[str], others: Sequence[str], none: bool) -> Iterable[tuple[str, str]]:
    """Yield pairs of labels that may mean the same."""
    left = list(others)
    for label in mine:
        best = next((x for x in left if _is_alike(label, x)), None)
        if best is not None:
            left.remove(best)
            yield label, best
    if none and len(mine) == len(others) == len(left) and all(interval_of(x) is None for x in mine):
        yield from zip(mine, left, strict=True)  # no level in common


def _is_alike(one: str, other: str) -> bool:
    a, b = plain_text(one), plain_text(other)
    left, right = interval_of(one), interval_of(other)
    if left is not None and right is not None:
        return left == right
    if (left is None) != (right is None):
        return False
    sexes = [bool(MALE.fullmatch(x)) for x in (a, b)]
    if concept_of_labels([one, other]) == "Sex":
        return sexes[0] == sexes[1]
    digits = re.findall(r"\d+", a) == re.findall(r"\d+", b)
    return digits and difflib.SequenceMatcher(None, a, b).ratio() >= 0.85


def _align_edges(name: str, uses: Sequence[_Use]) -> list[str]:
    """Split groups of numbers that another table has finer; their sum stays known."""
    ends = {label: interval_of(label) for use in uses for label in use.labels}
    sets = {frozenset(use.labels) for use in uses}
    known = {label: e for label, e in ends.items() if e is not None}
    pairs = [(a, b) for a in known.values() for b in known.values() if a != b]
    if len(sets) < 2 or not any(_overlap(a, b) for a, b in pairs):
        return []
    fine = [x for x, a in known.items() if not any(b != a and _holds(a, b) for b in known.values())]
    said = []
    for use in uses:
        parts: list[list[str]] = []
        for label in use.labels:
            whole = known.get(label)
            inside = [x for x in fine if whole and _holds(whole, known[x])]
            if whole is None or inside == [label]:
                parts.append([label])
                continue
            inside.sort(key=lambda x: known[x])
            joined = [known[x] for x in inside]
            gaps = any(a[1] != b[0] for a, b in pairwise(joined))
            if not joined or gaps or joined[0][0] != whole[0] or joined[-1][1] != whole[1]:
                raise ValueError(
                    Message(
                        "Levels of {name!r} overlap: {label!r} of {where} is not made up of "
                        "levels of the other tables ({others}). Leave one of the tables out, or "
                        "give it with other groups.",
                        name=name,
                        label=label,
                        where=use.where,
                        others=show(fine),
                    )
                )
            parts.append(inside)
            said.append(f"{cite(label)} in {use.where} is {' + '.join(inside)}")
        if any(len(part) > 1 for part in parts):
            use.facet.split(use.axis, parts)
    return said


def _overlap(a: Interval, b: Interval) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _holds(a: Interval, b: Interval) -> bool:
    return a[0] <= b[0] and b[1] <= a[1]


def say_merged(said: Sequence[str]) -> None:
    """Remark on names that were merged."""
    if said:
        more = f" and {len(said) - 3} more" if len(said) > 3 else ""
        remark(f"Treated as the same: {'; '.join(said[:3])}{more}.")
