"""Words that say what numbers are: counts, thousands, percentages, errors, means, amounts."""

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
        *("personer", "antal personer", "osoby", "pessoas", "persone", "unidades", "habitants"),
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
    if re.match(r"%|(?:row|col(?:umn)?|total|valid|cumulative) (?:%|percent)", text):
        return "percent"  # "% within sex", as SPSS has it
    if re.fullmatch(
        r"(?:expected|std\.|adjusted|standardized) (?:count|residual)s?|residuals?", text
    ):
        return "error"
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
    plain = plain_text(label)
    said = re.fullmatch(r"(?:units?|einheit|unidad(?:es)?|unites?|eenheid)\s*:\s*(.+)", plain)
    words = [plain, *(plain_text(found[1]) for found in (inside, said) if found)]
    open_ = {*THOUSANDS, "valor", "valore", "estimate"}  # of what, they do not say
    return any(unit_word(word) == "count" and word not in open_ for word in words)


_THOUSANDS = re.compile(
    r"(?:.*[\s(,;]|^)(?:(?:in |en |x ?|\u00d7 ?|per )?(?:thousands?|1[ ,.\u00a0\u202f]?000s?|"
    r"'000s?|tausend|tsd\.?|milliers?|miles|migliaia|duizend(?:en)?|tusen(?:tal)?|tys\.?|ths(?:_per)?))"
    r"(?: (?:persons|people|of persons|persone[nr]|de personnes|de personas))?[)\].]?\s*"
    r"(?:$|[,;.] )",
    re.IGNORECASE,
)
_MILLIONS = re.compile(
    r"[(\[,]\s*(?:in |en )?(?:millions?|mio\.?|mill\.|millones|miljoen)\s*[)\]]?\s*$|"
    r"^(?:in |en )?(?:millions?|mio\.?|millones|miljoen)(?:$|[,;.] )",
    re.IGNORECASE,
)
_OTHER_SCALES = {
    scale: re.compile(
        rf"(?:[(\[,;]|\b(?:in|en)\s|\bunits?\s*:)\s*(?:in )?(?:{words})(?: (?:persons|people))?"
        r"[)\].]?\s*(?:$|[,;.] )",
        re.IGNORECASE,
    )
    for scale, words in {
        1e2: "hundreds",
        1e4: "10[ ,.]?000s?|ten thousands?",
        1e5: "lakhs?|100[ ,.]?000s?",
        1e7: "crores?",
        1e9: r"billions?|mrd\.?|milliards?|miliardi",
    }.items()
}
_RATE = re.compile(
    r"(?:per|pro|je|pour|por|of) (?:1[ ,.\u00a0]?000|thousand|mille|mil)|‰|\brates?\b",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"%|\bper ?cent|\bprozent|\bpourcent|\bporcent|\bpercentu|\bprocent", re.I)
_RATE_LEVEL = re.compile(
    r"\b(?:rates?|ratio|rank|index|density)$|^standard error\b|"
    r"\bper (?:100|1[ ,.]?000|capita)\b"
)
_NUMBER_OF_TABLE = r"(?:tab\w*\.?\s*[\w.]*\s*[:.\u2013-]?\s*)?"
#: What begins the title of numbers that are no parts of a whole.
_MEAN = re.compile(
    rf"{_NUMBER_OF_TABLE}(?:(?:annual|monthly|hourly|gross|net)\s+)?(?:mean|average|"
    r"(?:sum|max|min) of|medians?|prices?|index|gini|ratios?|durchschnitt\w*|mittlere\w*|preise?|"
    r"moyennes?|"
    r"life expectancy|lebenserwartung|esp[eé]rance de vie|esperanza de vida|"
    r"(?:wages?|salaries|earnings|incomes?|l[oö]hne|salaires|salarios) (?:in|per|en|pro|por)|"
    r"prix|promedio|precios?|gemiddeld\w*|genomsnitt\w*|gjennomsnitt\w*|gennemsnit\w*)\b",
    re.IGNORECASE,
)
#: Nouns for what is measured of each case, without accents: its sum over cases is seldom printed.
_MEASURED = (
    r"(?:wages?|salary|salaries|earnings|incomes?|pay|rents?|prices?|costs?|heights?|weights?|bmi|"
    r"temperatures?|scores?|densit(?:y|ies)|hours worked|\w*verdienste?|\w*l(?:o|oe)hne?|"
    r"\w*gehalte?r?|\w*einkommen|\w*mieten?|\w*preise?|\w*kosten|(?:korper)?gro(?:ss|ß)en?|\w*gewichte?|salaires?|revenus?|"
    r"loyers?|prix|taille|poids|salarios?|sueldos?|ingresos?|alquiler(?:es)?|precios?|peso|"
    r"altura|retribuzion[ei]|stipendi[o]?|reddit[oi]|affitt[oi]|prezz[oi]|altezza|lo(?:on|nen)|"
    r"inkomens?|hu(?:ur|ren)|prij(?:s|zen)|rendimentos?|renda|inkomst(?:er)?|loner?|lonn|"
    r"inntekt(?:er)?|indkomst(?:er)?|wynagrodzeni[ae]|ceny|dochody?|mzdy?)"
)
_UNIT = (
    r"(?:euros?|eur|dollars?|usd|gbp|pounds?|chf|sek|nok|dkk|pln|zl|czk|kronor|kroner|yen|jpy|inr|"
    r"rupees?|pesos?|reais|francs?|franken|kg|kilograms?|kilogramm?s?|cm|centimet\w+|grams?|gramm|"
    r"km2?|hours|stunden|heures|horas|uren|minutes|minuten|degrees?|celsius)"
)
_IN_UNIT = re.compile(
    rf"\b(?:in|en|em|i|w)\s+(?:us\s?)?{_UNIT}\b|[(\[]\s*{_UNIT}\b|[€$£¥]|°c\b|^{_UNIT}$|"
    rf"\b(?:thousands?|millions?|billions?|tsd|mio|mrd|tausend|milliers|miles|millones)\.?\s+"
    rf"(?:of |d['e]\s?)?{_UNIT}\b"
)
_NOTE = (
    r"(?:(?:notes?|nb|hinweis|nota|remarque)\s*:\s*)?(?:all |the )?(?:(?:figures|values|numbers|"
    r"data|cells|werte|zahlen|valeurs|datos|dati)\b.{0,30}?)?\b"
)
_MEAN_IN_NOTE = re.compile(
    rf"{_NOTE}(?:mean|average|medians?|durchschnitt\w*|mittelwerte?|moyennes?|medianes?|promedios?|"
    r"medie|gemiddelden?)\b|"
    r".*\b(?:life expectancy|lebenserwartung|esperance de vie|esperanza de vida|speranza di vita)\b"
)
_BY = r"\s+(?:by|nach|par|selon|por|segun|naar|per|efter|etter|wedlug|podle|in|en)\b"
_END = rf"(?=$|\s*[,(:]|{_BY})"
_HEAD = re.compile(
    rf"{_NUMBER_OF_TABLE}(?:(?:hours|minutes|stunden|heures|horas|ore|uren)\s|"
    rf"(?:\w+\s+){{0,3}}{_MEASURED}{_END}|"
    r"(?:salaire|revenu|loyer|salario|ingreso|sueldo|alquiler|reddito|retribuzione)s?\b)"
)


#: What offices count, by the sort of case: a head word in English and Germanic languages.
_THINGS = {
    "person": "persons? people residents? inhabitants? individuals? population students? pupils? "
    "patients? workers? employees? respondents? visitors? voters? teachers? children applicants? "
    "members? users? migrants? adults? personen bevolkerung einwohner(?:innen)? "
    "schuler(?:innen)? studierende patienten erwerbstatige beschaftigte arbeitslose versicherte "
    "bevolking inwoners leerlingen studenten patienter befolkning(?:en)? folkmangd(?:en)? "
    "folketal(?:let)? personer invanare elever studenter sysselsatte vaesto henkilot obyvatel",
    "household": "households? families dwellings? haushalte wohnungen huishoudens woningen hushall "
    "husholdninger bostader boliger",
    "birth": "births? geburten geborene geboorten fodte fodslar",
    "death": "deaths? sterbefalle gestorbene todesfalle sterfte overledenen dode doda dodsfall",
    "event": "counts? number cases? accidents? crimes? offences? votes? marriages? divorces? "
    "visits? admissions? discharges? jobs? vehicles? enterprises? businesses establishments? medals? "
    "unfalle falle stimmen eheschliessungen scheidungen anzahl aantal antal antall stemmen roster "
    "stemmer",
}
#: The same in languages whose head word comes first.
_FIRST = {
    "person": "personnes habitants eleves etudiants salaries poblacion personas habitantes alumnos "
    "ocupados parados popolazione persone residenti studenti occupati populacao pessoas ludnosc "
    "osoby",
    "household": "menages logements hogares viviendas famiglie abitazioni domicilios familias",
    "birth": "naissances nacimientos nati nascite nascimentos urodzenia",
    "death": "deces defunciones morti decessi obitos zgony",
    "event": "nombre effectifs? numero numar liczba pocet votos votes voti mariages matrimonios",
}
_THING = {
    last: {
        sort: re.compile(r"(?:\w{3,}(?=\w{7}))?(?:" + "|".join(words.split()) + ")")
        for sort, words in lists.items()
    }
    for last, lists in ((True, _THINGS), (False, _FIRST))
}
_PHRASE_END = re.compile(
    r"[,(:;\u2013\u2014]| - |\b(?:by|in|of|at|on|aged|from|with|who|whose|per|to|for|living|nach|im|"
    r"am|der|des|mit|par|selon|en|de|du|des|au|por|segun|del|di|per|naar|van|op|efter|etter|fordelt|"
    r"wedlug|podle)\b"
)


def sort_of_things(text: str) -> str:
    """Return what sort of cases a title or header says that were counted, else nothing.

    Examples
    --------
    >>> [
    ...     sort_of_things(t)
    ...     for t in ("Table 2: Usual residents by age", "MS_POPULATION", "Number of births")
    ... ]
    ['person', 'person', 'birth']
    >>> [
    ...     sort_of_things(t)
    ...     for t in ("Population density", "Mean age of residents", "Household income")
    ... ]
    ['', '', '']
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|_+|(?<=\D)\d+$", " ", text)
    plain = re.sub(rf"^{_NUMBER_OF_TABLE}(?:\d+:)?\s*(?=\D)", "", plain_text(apart))
    if is_mean(plain) or re.search(r"\b(?:per|pro|je|por cada) (?!sex|age)|\brates?\b|%", plain):
        return ""
    plain = re.sub(r"^(?:total |the |all |die |anzahl der )+", "", plain)
    number = re.match(
        r"(?:numbers?|no\.|count|anzahl|zahl|nombre|numero|aantal|antal|antall|liczba|pocet)"
        r"(?: (?:of|der|de|di|van|av))? (?=\w)",
        plain,
    )
    rest = plain[number.end() :] if number else plain
    words = re.findall(r"[^\W\d]+", _PHRASE_END.split(rest.strip())[0])
    for last in (True, False):
        for sort, pattern in _THING[last].items() if words else ():
            if pattern.fullmatch(words[-1 if last else 0]) and (last or len(words) < 4):
                return sort
    return "event" if number and words else ""


def scale_word(text: str) -> float:
    """Return what numbers are multiples of, as a title or a unit says it: 1, a thousand, ...

    Examples
    --------
    >>> scale_word("Employees (in thousands)"), scale_word("Mio."), scale_word("per 1,000")
    (1000.0, 1000000.0, 1.0)
    >>> scale_word("Workers (in lakh)"), scale_word("Persons in hundreds, by sex")
    (100000.0, 100.0)
    """
    for scale, words in _OTHER_SCALES.items():
        if words.search(text):
            return scale
    if _MILLIONS.search(text):
        return 1e6
    return 1e3 if _THOUSANDS.match(text) and not is_rate(text) else 1.0


def is_rate(text: str) -> bool:
    """Return whether a title or unit speaks of rates.

    Examples
    --------
    >>> is_rate("Deaths per 1,000"), is_rate("Deaths")
    (True, False)
    """
    return bool(_RATE.search(text))


def is_rate_level(label: str) -> bool:
    """Return whether a plain label is a rate, a rank or an error beside other numbers.

    Examples
    --------
    >>> is_rate_level("unemployment rate"), is_rate_level("unemployed")
    (True, False)
    """
    return bool(_RATE_LEVEL.search(label))


def is_percent(text: str) -> bool:
    """Return whether a title or unit speaks of percentages.

    Examples
    --------
    >>> is_percent("Anteil in Prozent"), is_percent("Anzahl")
    (True, False)
    """
    return bool(_PERCENT.search(text))


def is_mean(title: str) -> bool:
    """Return whether a title begins like that of means, prices or indices.

    Examples
    --------
    >>> is_mean("Table 3: Average age by region"), is_mean("Persons below average income")
    (True, False)
    """
    return bool(_MEAN.match(title))


def is_measure(text: str) -> bool:
    """Return whether a title, note or header says that numbers are measured, not counted.

    Examples
    --------
    >>> [is_measure(t) for t in ("Weight (kg)", "Gross monthly pay by sex", "Rent in EUR")]
    [True, True, True]
    >>> [is_measure(t) for t in ("Persons by income group", "Note: Median earnings.", "Income tax")]
    [False, True, False]
    """
    plain = plain_text(text)
    return is_mean(text) or any(
        bool(found)
        for found in (_IN_UNIT.search(plain), _HEAD.match(plain), _MEAN_IN_NOTE.match(plain))
    )
