"""Reports: what happened while a table was read that its owner should know."""

from collections.abc import Mapping

from rejoint.columns.encoding import Unknown, unknown_error, unknown_text
from rejoint.columns.labels import show
from rejoint.domain import Domain, HandleUnknown, Variable
from rejoint.intake.inference import MANY
from rejoint.intake.wishes import Wishes
from rejoint.remarks import remark

__all__ = ["report_inferred", "report_unknown"]

_MOST = 5  # variables named one by one


def report_inferred(variables: Mapping[str, Variable], wishes: Wishes) -> None:
    """Remark once on numbers binned by rule, on fewer bins than asked for, on NaN as text.

    Examples
    --------
    >>> from rejoint.intake.wishes import read_wishes
    >>> report_inferred({"x": Variable("x", ("a",))}, read_wishes(None, None, None))
    """
    ruled = [v for v in variables.values() if v.kind == "binned" and wishes.of(v.name).silent]
    if ruled:
        first = ruled[0].name
        remark(
            f"Columns with more than {MANY} distinct numbers are binned by quantiles: "
            f"{_some([f'{v.name!r} ({len(v)} bins)' for v in ruled])}. "
            f"Say bins={{{first!r}: 5}} for another number of bins, bins={{{first!r}: [...]}} for "
            f"edges of your own, bins={{{first!r}: None}} to keep every number a level."
        )
    for name, wish in wishes.by_name.items():
        if isinstance(wish.bins, int) and len(variables[name]) < wish.bins:
            remark(
                f"Variable {name!r}: {wish.bins} quantile bins were asked for, "
                f"{len(variables[name])} came out, because equal values cannot be parted."
            )
    for v in variables.values():
        texts = [level for level in v.levels if level in ("nan", "NaN", "<NA>")]
        if texts and wishes.of(v.name).levels is None:
            remark(
                f"Variable {v.name!r} has the text {show(texts)} as a level: if it stands for a "
                "missing cell, put None in its place (NumPy writes NaN as text among text)."
            )


def report_unknown(
    domain: Domain, strange: Mapping[str, Unknown], handle_unknown: HandleUnknown
) -> None:
    """Raise for, or remark once on, all cells that hold labels that are no level.

    Examples
    --------
    >>> report_unknown(Domain.of({"x": ["a"]}), {"x": Unknown(("b",), 1, 0)}, "error")
    Traceback (most recent call last):
    ...
    ValueError: Variable 'x', row 0: level 'b' is not among 'a'; declare it in the Domain or \
leave the cell empty.
    """
    texts = []
    for name, unknown in strange.items():
        levels = domain[name].levels
        if handle_unknown == "error":
            raise unknown_error(name, levels, unknown)
        texts.append(unknown_text(name, levels, unknown))
    if texts:
        more = f" And so in {len(texts) - _MOST} more variables." if len(texts) > _MOST else ""
        remark(" ".join(texts[:_MOST]) + more)


def _some(texts: list[str]) -> str:
    more = f", ... ({len(texts)} in all)" if len(texts) > _MOST else ""
    return ", ".join(texts[:_MOST]) + more
