"""How numbers and labels are put into sentences."""

import difflib
from collections.abc import Sequence


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
    text = ", ".join(str(x) if isinstance(x, tuple) else repr(x) for x in levels[:most])
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


def duration(seconds: float) -> str:
    """A time in words.

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
