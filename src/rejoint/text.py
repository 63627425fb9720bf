"""Formatting of numbers and labels in sentences."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from decimal import ROUND_HALF_UP, Decimal
from math import isfinite, log10
from typing import Any

_DIGITS = 4  # significant digits of a number that no interval says more about
_MOST_DECIMALS = 6
_LONG, _LONGEST = 80, 300  # characters of one label of many, and of a value, in a message

#: Characters of a name or a note in a file.
MOST_TEXT = 100_000

_SMALL, _LARGE = 1e-4, 1e15  # numbers outside are written with a power of ten


def cite(value: object, most: int = _LONGEST) -> str:
    """Write a name, a label or an argument as Python does, or its beginning where it is long.

    All that a message shows of data goes through this function, `show` or a field of a
    ``Message``: a name may be as long as the file that it comes from.

    Examples
    --------
    >>> cite("age"), cite(5), cite("x" * 1000, 5)
    ("'age'", '5', "'xxxx...")
    """
    return shorten(repr(value), most)


def shorten(text: str, most: int = _LONGEST) -> str:
    """Return a text, or its beginning where it is too long for a message.

    Examples
    --------
    >>> shorten("age"), len(shorten("x" * 1000))
    ('age', 303)
    """
    return text if len(text) <= most else f"{text[:most]}..."


def show(levels: Sequence[object], most: int = 6) -> str:
    """Write labels for a message: the first few, and how many there are.

    Examples
    --------
    >>> show(["a", "b"])
    "'a', 'b'"
    >>> show(range(40))
    '0, 1, 2, 3, 4, 5, ... (40 in all)'
    """
    # A Bin is a tuple with a text of its own; of any other tuple str and repr are the same.
    text = ", ".join(
        shorten(str(x), _LONG) if isinstance(x, tuple) else cite(x, _LONG) for x in levels[:most]
    )
    return text if len(levels) <= most else f"{text}, ... ({len(levels)} in all)"


def nearest(name: object, known: Sequence[object]) -> str:
    """Return " Did you mean ...?" for the nearest of what is known, or nothing.

    Examples
    --------
    >>> nearest("smoek", ["smoke", "age"])
    " Did you mean 'smoke'?"
    >>> nearest("zzz", ["smoke", "age"])
    ''
    """
    texts = {str(k): k for k in known}
    found = difflib.get_close_matches(str(name), texts, n=1)
    if not found:
        return ""
    best = texts[found[0]]
    return f" Did you mean {show([best])}?"


def check_text(text: str, what: str, most: int | None = None) -> None:
    r"""Raise an error for text that cannot be written to a file, or has too many characters.

    Examples
    --------
    >>> check_text("\ud83d", "Variable")
    Traceback (most recent call last):
    ...
    ValueError: Variable '\ud83d' has half of a character (a lone surrogate), which no file can...
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{what} {show([text])} has half of a character (a lone surrogate), which no file can "
            "hold: correct it where it comes from."
        ) from None
    if most is not None and len(text) > most:
        raise ValueError(
            f"{what} {show([text])} has a name of {len(text):,} characters: the most is {most:,}."
        )


#: Characters that steer a terminal or turn the order of text, but for tabs and ends of lines.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    r"""Replace control characters of terminals; all text that is shown passes through here.

    Examples
    --------
    >>> clean_text("a\x1b[31mb\nc")
    'a\ufffd[31mb\nc'
    """
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def clean_label(value: object, most: int = 60) -> str:
    r"""Return a label on one line that a terminal, a page or a picture can show, not too long.

    Examples
    --------
    >>> clean_label("a\x1b[31mb"), clean_label("x" * 9, most=5)
    ('a\ufffd[31mb', 'xxxx…')
    """
    text = clean_text(str(value)).replace("\n", "\N{REPLACEMENT CHARACTER}").replace("\t", " ")
    return text if len(text) <= most else text[: most - 1] + "…"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Write a number of things for people.

    Examples
    --------
    >>> plural(1, "table"), plural(1140, "table"), plural(2, "class", "classes")
    ('1 table', '1,140 tables', '2 classes')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"


def class_titles(rank: int, names: Sequence[str] | None = None) -> list[str]:
    """Write what each class is called: its name, or its number from 1.

    Class 1 is the class at position 0. A name that is empty counts as none; to one that several
    classes have its number is added.

    Examples
    --------
    >>> class_titles(2), class_titles(3, ["smokers", "", "smokers"])
    (['class 1', 'class 2'], ['smokers (1)', 'class 2', 'smokers (3)'])
    """
    numbers = [f"class {f + 1}" for f in range(rank)]
    given = [name or number for name, number in zip(names or numbers, numbers, strict=True)]
    return [
        title if given.count(title) == 1 else f"{title} ({f + 1})" for f, title in enumerate(given)
    ]


def format_count(count: int) -> str:
    """Write a count in full, or as a power of ten from a million millions on.

    The number of cells of a joint is beyond what a float, or Python's ``str``, can hold.

    Examples
    --------
    >>> format_count(1_048_576), format_count(2**5000)
    ('1,048,576', '10^1505')
    """
    return f"{count:,}" if count < 10**12 else f"10^{int(log10(count))}"


def format_bytes(count: float) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> format_bytes(900), format_bytes(3_500_000), format_bytes(166e9)
    ('900 bytes', '3.5 MB', '166 GB')
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:{'.2g' if count < 100 * scale else ',.0f'}} {unit}"
    return f"{count:.0f} bytes"


def format_number(value: float) -> str:
    """Write a number with four significant digits, and no digit before the point left out.

    The page writes the same by ``formatNumber`` of ``format.js``.

    Examples
    --------
    >>> format_number(0.25), format_number(4083.21), format_number(0.01234567)
    ('0.25', '4,083', '0.01235')
    >>> format_number(1234567.0), format_number(0.0000123456), format_number(float("nan"))
    ('1,234,567', '1.235e-5', 'nan')
    """
    if not isfinite(value) or value == 0:
        return f"{value:g}".replace("-0", "0")
    if not _SMALL <= abs(value) < _LARGE:
        lead, tens = _scientific(value, _DIGITS).split("e")
        return f"{_strip_zeros(lead)}e{tens}"
    return _strip_zeros(_rounded(value, min(_tens(value) - _DIGITS + 1, 0)))


def format_fields(value: Any) -> str:
    """Write a named tuple or dataclass as Python does, but its numbers as `format_number` does.

    Fields of a dataclass that are not to be shown are left out.

    Examples
    --------
    >>> from collections import namedtuple
    >>> format_fields(namedtuple("Point", "name x y")("a", 1 / 3, (0.1 + 0.2, 5)))
    "Point(name='a', x=0.3333, y=(0.3, 5))"
    """
    names = [f.name for f in fields(value) if f.repr] if is_dataclass(value) else value._fields
    shown = ", ".join(f"{name}={_brief(getattr(value, name))}" for name in names)
    return f"{type(value).__name__}({shown})"


def _brief(value: Any) -> str:
    """Write a value with the digits that matter, also of the numbers inside."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return format_number(value)
    if type(value) in (tuple, list):
        inside = ", ".join(map(_brief, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def format_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Write a number and its bounds with the digits that matter: two of the distance of the bounds.

    The number itself keeps a digit that is not zero, and a probability near one a digit that is not
    nine. The page writes the same by ``formatInterval`` of ``format.js``.

    Examples
    --------
    >>> format_interval(0.60551, 0.5881, 0.6380)
    ('0.606', '0.588', '0.638')
    >>> format_interval(4238.2, 4083.0, 4361.9), format_interval(0.0004, 0.00012, 0.1)
    (('4,240', '4,080', '4,360'), ('0.0004', '0.0001', '0.1000'))
    >>> format_interval(2e-7, 1e-8, 5.02e-7), format_interval(1.0042e-6, 9.803e-7, 1.0191e-6)
    (('2.0e-7', '1.0e-8', '5.0e-7'), ('1.004e-6', '9.80e-7', '1.019e-6'))
    """
    numbers = value, low, high
    if not all(map(isfinite, numbers)) or not high > low:
        one, other, last = map(format_number, numbers)
        return one, other, last
    if not _SMALL <= max(map(abs, numbers)) < _LARGE:
        last_place = _tens(high - low) - 1
        digits = [min(max(_tens(x) - last_place + 1, 2), 1 + _MOST_DECIMALS) for x in numbers]
        one, other, last = (
            _scientific(x, n) if x else "0" for x, n in zip(numbers, digits, strict=True)
        )
        return one, other, last
    place = _tens(high - low) - 1
    if value:
        place = min(place, _tens(value))
    if 0 < value < 1:
        place = min(place, _tens(1 - value))
    one, other, last = (_rounded(x, max(place, -_MOST_DECIMALS)) for x in numbers)
    return one, other, last


def _strip_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _tens(value: float) -> int:
    """The power of ten of the first digit."""
    return Decimal(repr(float(value))).adjusted()


def _rounded(value: float, place: int) -> str:
    """Round to a power of ten, halves away from zero, as JavaScript does."""
    scaled = Decimal(float(value)) if place <= 0 else Decimal(float(value) / 10.0**place)
    step = Decimal(1).scaleb(min(place, 0))
    whole = scaled.quantize(step, ROUND_HALF_UP).scaleb(max(place, 0))
    return f"{whole + 0:,f}"  # adding zero takes the sign from zero


def _scientific(value: float, digits: int) -> str:
    last = Decimal(1).scaleb(_tens(value) - digits + 1)
    found = Decimal(float(value)).quantize(last, ROUND_HALF_UP)
    tens = found.adjusted()  # 9.996 has become 10.00
    lead = found.scaleb(-tens).quantize(Decimal(1).scaleb(1 - digits))
    return f"{lead}e{tens}"


def duration_range(low: float, high: float) -> str:
    """Return a range of durations in words; one duration where both are the same.

    Examples
    --------
    >>> duration_range(0.1, 0.2), duration_range(0.1, 75)
    ('less than a second', 'less than a second to 75 seconds')
    """
    return " to ".join(dict.fromkeys((duration(low), duration(high))))


def duration(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> duration(0.2), duration(75), duration(9000)
    ('less than a second', '75 seconds', '2.5 hours')
    """
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return f"{max(seconds, 1.5):.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
