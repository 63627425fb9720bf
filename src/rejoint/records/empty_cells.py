"""Find the empty cells of columns that do not apply, and encode them as the last level.

A follow-up question is not asked of everybody: its cells are empty where the answer to an earlier
question, the parent, has certain levels. Such a cell is known, and not unknown.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray
from rejoint.domain.columns import Codes
from rejoint.domain.domain import Domain
from rejoint.domain.variable import EmptyCells, code_dtype
from rejoint.messages import Message, remark
from rejoint.records.infer import ColumnRule, Declarations
from rejoint.text import cite, plural, show

#: Rows by which rules are found; of more rows, a sample of this size.
MOST_ROWS = 200_000

#: Rounds in which parents get their own level, for questions that follow on follow-ups.
ROUNDS = 5


def fill_empty(domain: Domain, codes: Codes) -> Codes:
    """Return codes with the last level in empty cells that have one; -2 becomes -1.

    A cell whose label is not a level, -2, is not empty. Cells stay as they are where the parent is
    missing, or is not a variable of the domain.
    """
    for n, empty in _parents_first(domain).items():
        fills = codes[:, n] == -1
        if empty.parent is not None:
            parent = domain.index(empty.parent)
            skips = [level in empty.levels for level in domain[parent].levels]
            fills &= np.array([*skips, False, False])[codes[:, parent]]  # the last for -2 and -1
        dtype = np.promote_types(codes.dtype, code_dtype(len(domain[n])))
        codes = codes.astype(dtype, copy=False)
        codes[fills, n] = len(domain[n]) - 1
    return np.maximum(codes, -1, out=codes)


def _parents_first(domain: Domain) -> dict[int, EmptyCells]:
    """Return the variables with a level of empty cells whose parents are there, parents first."""
    order: dict[int, EmptyCells] = {}
    waiting = {n: v.empty for n, v in enumerate(domain) if v.empty is not None}
    waiting = {n: e for n, e in waiting.items() if e.parent is None or e.parent in domain}
    while waiting:
        names = {domain[n].name for n in waiting}
        ready = {n: empty for n, empty in waiting.items() if empty.parent not in names}
        order |= ready or waiting  # parents of each other, in a file of somebody else
        waiting = {n: empty for n, empty in waiting.items() if n not in order}
    return order


def add_missing_levels(domain: Domain, names: Iterable[str]) -> Domain:
    """Return the domain with a level for all empty cells of some columns."""
    wanted = set(names)
    return Domain(tuple(v.with_empty(EmptyCells()) if v.name in wanted else v for v in domain))


def add_not_applicable(domain: Domain, codes: Codes, declarations: Declarations) -> Domain:
    """Return the domain with a level for cells that do not apply in some rows; remark on it."""
    wanted = declarations.not_applicable
    if wanted is False:
        return domain
    names = None if wanted == "auto" else list(wanted)
    rules = find_rules(domain, codes, declarations.rule, names)
    if rules and names is None:
        _report(rules)
    lone = [name for name in names or () if name not in rules]
    if lone:
        do = "does" if len(lone) == 1 else "do"
        listed = ", ".join(map(cite, lone))
        remark(f"No column says where {listed} {do} not apply: empty cells stay unknown.")
    return _with_rules(domain, {domain.index(name): rule for name, rule in rules.items()})


def sample_rows(codes: Codes, most: int = MOST_ROWS) -> Codes:
    """Return at most ``most`` rows, drawn at random."""
    if len(codes) <= most:
        return codes
    chosen = np.random.default_rng(0).choice(len(codes), most, replace=False)
    return codes[np.sort(chosen)]


def _report(rules: Mapping[str, EmptyCells]) -> None:
    """Remark once on all columns with the level."""
    groups: dict[EmptyCells, list[str]] = {}
    for name, rule in rules.items():
        groups.setdefault(rule, []).append(name)
    listed = []
    for rule, names in groups.items():
        labels = ", ".join(map(str, rule.levels[:4])) + ", ..." * (len(rule.levels) > 4)
        listed.append(f"{show(names, 4)} (where {rule.parent} is {labels})")
    more = f"; {plural(len(listed) - 6, 'more rule')}" * (len(listed) > 6)
    text = (
        "Empty cells are the level 'does not apply' where another column says so: {columns}. "
        "{off} leaves them unknown, {named} names the columns."
    )
    off, named = "not_applicable=False", f"not_applicable=[{cite(next(iter(rules)))}]"
    remark(Message(text, columns="; ".join(listed[:6]) + more, off=off, named=named))


class _Candidate(NamedTuple):
    """A parent of a column: the levels at which cells are empty, and how well they predict it."""

    gain: float
    parent: int
    size: int
    levels: tuple[int, ...]


def find_rules(
    domain: Domain, codes: Codes, rule: ColumnRule, names: Collection[str] | None = None
) -> dict[str, EmptyCells]:
    """Return the parents of columns that do not apply to all records, and at which levels.

    A level counts if cells are empty in nearly all of its records, by more than chance explains.
    Only columns in ``names`` are looked at, whatever share of their empty cells a parent explains.
    """
    absent = codes < 0
    count = absent.sum(axis=0)
    children = [
        n
        for n, variable in enumerate(domain)
        if variable.empty is None
        and (names is None or variable.name in names)
        and min(count[n], len(codes) - count[n]) >= rule.skip_records
    ]
    if not children:
        return {}
    # Many columns are empty in the same rows.
    places: dict[bytes, int] = {}
    packed = [np.packbits(absent[:, n]).tobytes() for n in children]
    mask_of = [places.setdefault(mask, len(places)) for mask in packed]
    distinct = [children[mask_of.index(k)] for k in range(len(places))]
    masks = absent[:, distinct].astype(codes.dtype)
    by_parent: dict[int, list[_Candidate | None]] = {}
    found: dict[int, EmptyCells] = {}
    changed = list(range(len(domain)))
    for _ in range(ROUNDS):
        own = _with_rules(domain, found)
        filled = fill_empty(own, codes.copy())
        tables = _count(filled[:, changed], [own.shape[n] for n in changed], masks)
        for n, table in zip(changed, tables, strict=True):
            by_parent[n] = _candidates(n, table, len(codes), count[distinct], rule, names is None)
        before, found = found, {}
        for n, mask in zip(children, mask_of, strict=True):
            options = [c for each in by_parent.values() if (c := each[mask]) is not None]
            chosen = _best([c for c in options if _is_sound(c, n, own, before | found)])
            if chosen is not None:
                parent = own[chosen.parent]
                found[n] = EmptyCells(parent.name, tuple(parent.levels[k] for k in chosen.levels))
        changed = [n for n in found.keys() | before.keys() if found.get(n) != before.get(n)]
        if not changed:
            break
    return {domain[n].name: empty for n, empty in found.items()}


def _with_rules(domain: Domain, rules: Mapping[int, EmptyCells]) -> Domain:
    return Domain(tuple(v.with_empty(rules[n]) if n in rules else v for n, v in enumerate(domain)))


def _count(codes: Codes, shape: Sequence[int], masks: Codes) -> list[FloatArray]:
    """Return for each column a table of its levels: the rows in each mask, and last all rows."""
    wide, count = codes.shape[1], masks.shape[1]
    pairs = [(n, wide + k) for n in range(wide) for k in range(count)]
    cells = kernels.count(np.hstack([codes, masks]), None, (*shape, *[2] * count), pairs)
    sizes = 2 * count * np.array(shape)
    tables = []
    for size, own in zip(shape, np.split(cells, np.cumsum(sizes)[:-1]), strict=True):
        table = own.reshape(count, size, 2)
        tables.append(np.vstack([table[:, :, 1], table[0].sum(axis=1)]).T)
    return tables


def _candidates(
    parent: int,
    table: FloatArray,
    rows: int,
    absent: FloatArray,
    rule: ColumnRule,
    is_strict: bool,
) -> list[_Candidate | None]:
    """Return for each mask the levels of a parent at which cells are empty, if there are any."""
    empty, total = table[:, :-1], table[:, -1:]
    size, masks = empty.shape
    is_pure = (empty >= rule.skip_share * total) & (total > 0)
    chosen = np.zeros((size, masks), dtype=bool)
    for _ in range(ROUNDS):
        # Outside of the chosen levels fewer cells are empty, so that more levels differ from them.
        others = np.where(chosen, 0.0, 1.0)
        outside = ((empty * others).sum(axis=0) + 0.5) / ((total * others).sum(axis=0) + 1.0)
        gain = _nats(empty, total, rule.skip_share) - _nats(empty, total, outside)
        again = is_pure & (gain > np.log(size) + rule.skip_nats)
        if (again == chosen).all():
            break
        chosen = again
    inside = (total * chosen).sum(axis=0), (empty * chosen).sum(axis=0)
    rest = total.sum() - inside[0], empty.sum(axis=0) - inside[1]
    share = (rest[1] + 0.5) / (rest[0] + 1.0)
    gain = _nats(inside[1], inside[0], rule.skip_share) + _nats(rest[1], rest[0], share)
    gain -= _nats(inside[1] + rest[1], total.sum(), absent / rows)
    gain -= chosen.sum(axis=0) * np.log(size)
    fits = (inside[0] >= rule.skip_records) & (rest[0] - rest[1] >= rule.skip_records)
    fits &= share <= rule.skip_elsewhere
    if is_strict:
        fits &= inside[1] >= rule.skip_coverage * absent
    return [
        _Candidate(float(gain[k]), parent, size, tuple(np.flatnonzero(chosen[:, k]).tolist()))
        if fits[k] and gain[k] > rule.skip_nats
        else None
        for k in range(masks)
    ]


def _nats(part: FloatArray, total: FloatArray, share: FloatArray | float) -> FloatArray:
    """Return the log-likelihood of part of a total under a share."""
    bounded = np.clip(share, 1e-6, 1.0 - 1e-6)
    return np.asarray(part * np.log(bounded) + (total - part) * np.log1p(-bounded))


def _is_sound(
    candidate: _Candidate, child: int, domain: Domain, rules: Mapping[int, EmptyCells]
) -> bool:
    """Return whether a parent has levels of its own, and does not follow on the column itself."""
    parent = candidate.parent
    empty = domain[parent].empty
    if empty is None or empty.parent is None or candidate.levels[-1] < len(domain[parent]) - 1:
        return parent != child
    if len(candidate.levels) == 1:
        return False  # the parent's own parent says the same
    for _ in range(len(rules) + 1):
        if parent == child:
            return False
        if parent not in rules:
            return True
        parent = domain.index(str(rules[parent].parent))
    return False


def _best(candidates: list[_Candidate]) -> _Candidate | None:
    """Return the parent of fewest levels among those that predict about as well as the best."""
    if not candidates:
        return None
    most = max(candidate.gain for candidate in candidates)
    near = [candidate for candidate in candidates if candidate.gain >= 0.98 * most]
    return min(near, key=lambda c: (c.size, len(c.levels), -c.gain, c.parent))
