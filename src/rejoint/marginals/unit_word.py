"""Words that say what numbers are: counts, percentages, errors."""

from rejoint.marginals.totals import plain_text

_UNITS = {
    "count": {
        *("n", "number", "no", "no.", "count", "counts", "frequency", "freq", "absolute", "abs"),
        *("anzahl", "absolut", "personen", "effectif", "effectifs", "nombre", "numero", "aantal"),
        *("antall", "antal", "liczba", "persons", "people", "individuals", "estimate", "cases"),
        *("personas", "personnes", "number of persons", "number of people", "valore", "valor"),
        *("in 1000", "in 1 000", "thousands", "1 000", "1000", "tsd", "milliers", "miles"),
        *("x 1 000", "persons (thousands)", "number (thousands)"),
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
