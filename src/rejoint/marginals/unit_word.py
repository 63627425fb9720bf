"""Words that say what numbers are: counts, percentages, errors."""

import re

from rejoint.marginals.totals import plain_text

THOUSANDS = {
    *("in 1000", "in 1 000", "thousands", "1 000", "1000", "tsd", "milliers", "miles", "x 1 000"),
    *("persons (thousands)", "number (thousands)", "'000", "in thousands", "tausend"),
}
_UNITS = {
    "count": {
        *("n", "number", "no", "no.", "count", "counts", "frequency", "freq", "absolute", "abs"),
        *("anzahl", "absolut", "personen", "effectif", "effectifs", "nombre", "numero", "aantal"),
        *("antall", "antal", "liczba", "persons", "people", "individuals", "estimate", "cases"),
        *("personas", "personnes", "number of persons", "number of people", "valore", "valor"),
        *THOUSANDS,
    },
    "percent": {
        *("%", "percent", "percentage", "per cent", "prozent", "in %", "in prozent", "pct"),
        *("pourcentage", "en %", "porcentaje", "percentuale", "procent", "prosent", "share"),
        *(
            "anteil",
            "anteil in %",
            "part",
            "part (%)",
            "proportion",
            "col %",
            "row %",
            "% of total",
        ),
        *(
            "percent of total",
            "% du total",
            "% del total",
            "distribution (%)",
            "as %",
            "as percent",
        ),
    },
    "error": {
        *("se", "s.e.", "standard error", "margin of error", "moe", "±", "cv", "cv (%)", "rse"),
        *("95% ci", "95 % ci", "ci", "lower", "upper", "lower ci", "upper ci", "standardfehler"),
        *("lower limit", "upper limit", "confidence interval", "error", "std. error", "stderr"),
    },
}


def unit_word(label: str) -> str:
    """Return what a label says about numbers: count, percent, error, or nothing.

    Examples
    --------
    >>> unit_word("Number"), unit_word("Anteil in %"), unit_word("Men")
    ('count', 'percent', '')
    """
    text = plain_text(label).strip("()[] ")
    for kind, words in _UNITS.items():
        if text in words:
            return kind
    return ""


def is_count_word(label: str) -> bool:
    """Return whether a label says that numbers are counts of single things, not of thousands.

    Examples
    --------
    >>> is_count_word("Anzahl"), is_count_word("Bevolking (aantal)"), is_count_word("in 1 000")
    (True, True, False)
    """
    inside = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$", label)
    words = [plain_text(label), *([plain_text(inside[1])] if inside else [])]
    open_ = {*THOUSANDS, "valor", "valore", "estimate"}  # of what, they do not say
    return any(unit_word(word) == "count" and word not in open_ for word in words)
