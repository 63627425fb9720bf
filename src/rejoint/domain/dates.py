"""Dates: text that is recognized as a date, and its year or month as a level."""

import re
from collections.abc import Sequence

from rejoint.domain.columns import Coded, Column, Numbers
from rejoint.domain.labels import Level

#: Parts of a date that can be the levels of a variable.
DATE_PARTS = ("year", "month")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"\d{1,2}(st|nd|rd|th)?\.?"
_YEAR = r"\d{4}|\d{2}"
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_DATE = re.compile(
    r"(?P<day>((mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?[ ]+)?("
    r"(?P<y1>\d{4})(?P<s1>[-/.])(?P<m1>\d{1,2})(?P=s1)\d{1,2}"  # 2020-01-31
    rf"|(?P<first>\d{{1,2}})(?P<s2>[-/.])(?P<second>\d{{1,2}})(?P=s2)(?P<y2>{_YEAR})"  # 31.1.2020
    r"|(?P<y3>(19|20)\d\d)(?P<m3>0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"  # 20200131
    rf"|({_DAY}[- /]*)?(?P<m4>{_MONTH}),?[- /]*(?P<y4>{_YEAR})"  # 31 January 2020
    rf"|(?P<m5>{_MONTH})[- /]*{_DAY},?[- /]+(?P<y5>{_YEAR})"  # Jan 31, 2020
    rf"))([T ,]+{_TIME}.*)?|(?P<time>{_TIME}( ?[ap]\.?m\.?)?)",
    re.IGNORECASE,
)


def are_dates(labels: Sequence[Level]) -> bool:
    """Return whether texts are all dates, or times of a day.

    Examples
    --------
    >>> are_dates(["2020-01-31", "2020-2-1 10:00"]), are_dates(["31.12.99"]), are_dates(["2020"])
    (True, True, False)
    >>> are_dates(["Jan 05 2020", "Monday, 06 January 2020", "20211209"]), are_dates(["May"])
    (True, False)
    """
    return all(isinstance(label, str) and _DATE.fullmatch(label.strip()) for label in labels)


def day_of(label: Level) -> Level:
    """Return a date without the time of the day; other labels as they are.

    Examples
    --------
    >>> day_of("2020-01-31T10:00"), day_of("noon")
    ('2020-01-31', 'noon')
    """
    match = _DATE.fullmatch(str(label).strip())
    return label if match is None else match["day"] or label


def date_part(label: Level, part: str) -> int | None:
    """Return the year or the month of a date; None where the label does not say it.

    Of 3/4/2020 the month is not known; between dots the day comes first.

    Examples
    --------
    >>> date_part("2020-01-31 10:00", "year"), date_part("31/1/99", "year")
    (2020, 1999)
    >>> [date_part(text, "month") for text in ("5 May 2020", "3.4.2020", "1/31/20", "3/4/2020")]
    [5, 4, 1, None]
    """
    match = _DATE.fullmatch(str(label).strip())
    if match is None or match["time"]:
        return None
    if part == "year":
        year = next(match[f"y{form}"] for form in range(1, 6) if match[f"y{form}"])
        # Years of two digits are 1969 to 2068, as POSIX has it.
        return int(year) if len(year) == 4 else int(year) + (1900 if year > "68" else 2000)
    if match["first"]:
        first, second = int(match["first"]), int(match["second"])
        months = {second} if match["s2"] == "." else {n for n in (first, second) if n <= 12}
        return months.pop() if len(months) == 1 else None
    text = next(match[f"m{form}"] for form in (1, 3, 4, 5) if match[f"m{form}"]).lower()
    return int(text) if text.isdecimal() else _MONTHS.index(text[:3]) + 1


def date_parts(column: Column, part: str) -> Coded:
    """Return a column with dates as their year or month; other labels stay as they are."""
    coded = column.coded() if isinstance(column, Numbers) else column
    parts = [date_part(label, part) or label for label in coded.labels]
    places: dict[Level, int] = {label: n for n, label in enumerate(dict.fromkeys(parts))}
    return Coded(tuple(places), coded.mapped([places[label] for label in parts]))
