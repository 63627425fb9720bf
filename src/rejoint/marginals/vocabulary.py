"""Words of published tables: totals, units, what was counted, and names of variables.

No list of words is needed to find totals, and none decides alone what numbers are: words settle
what sums leave open, and what no word and no sum shows is asked about. Offices print the levels of
a variable over columns and say its name in the corner, in a label that spans the columns, or in the
title only: "Population by age group and sex". Where none of these says it, sexes and ages are
recognized by their labels.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache

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
        *("anteil", "anteil in %", "part", "part (%)", "proportion", "col %", "row %", "as %"),
        *("% of total", "percent of total", "% du total", "% del total", "distribution (%)"),
        "as percent",
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
    r"'000s?|tausend|tsd\.?|milliers?|mil(?:es)?|migliaia|duizend(?:en)?|tusen(?:tal)?|tys\.?|ths(?:_per)?))"
    r"(?: (?:persons|people|of persons|persone[nr]|pessoas|personas|de personnes|de personas))?"
    r"[)\].]?\s*"
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
_TABLE_NUMBER = r"(?:tab\w*\.?\s*[\w.]*\s*[:.\u2013-]?\s*)?"
#: What begins the title of numbers that are no parts of a whole.
_MEAN = re.compile(
    rf"{_TABLE_NUMBER}(?:(?:annual|monthly|hourly|gross|net)\s+)?(?:mean|average|"
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
_BY_WORD = r"\s+(?:by|nach|par|selon|por|segun|naar|per|efter|etter|wedlug|podle|in|en)\b"
_END = rf"(?=$|\s*[,(:]|{_BY_WORD})"
_HEAD = re.compile(
    rf"{_TABLE_NUMBER}(?:(?:hours|minutes|stunden|heures|horas|ore|uren)\s|"
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
    "visits? admissions? discharges? jobs? vehicles? enterprises? businesses establishments? "
    "medals? unfalle falle stimmen eheschliessungen scheidungen anzahl aantal antal antall stemmen "
    "roster stemmer",
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
    r"[,(:;\u2013\u2014]| - |\b(?:by|in|of|at|on|aged|from|with|who|whose|per|to|for|living|nach|"
    r"im|am|der|des|mit|par|selon|en|de|du|des|au|por|segun|del|di|per|naar|van|op|efter|etter|fordelt|"
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
    plain = re.sub(rf"^{_TABLE_NUMBER}(?:\d+:)?\s*(?=\D)", "", plain_text(apart))
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
    """Return whether a title or unit is about rates.

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
    """Return whether a title or unit is about percentages.

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


_BY = re.compile(
    r"\b(?:by|nach|par|selon|por|segun|según|naar|per|efter|etter|wedlug|według|podle|mukaan)\s+(.+)",
    re.IGNORECASE,
)
BETWEEN = re.compile(
    r"\s*(?:,|;|&|/|\bby\b|\band\b|\bund\b|\bet\b|\by\b|\be\b|\ben\b|\bog\b|\boch\b|\bi\b|\bnach\b|"
    r"\bpar\b|\bpor\b|\bnaar\b)\s*",
    re.IGNORECASE,
)
_AND = r"\b(?:and|und|et|y|e|en|og|och|i|a)\b"
_WHEN = re.compile(r"\s+(?:au|en|in|on|am|im|zum|op|at|al|within|since|from)\s+.*$", re.I)
_NUMBER_OF_TABLE = re.compile(r"^(?:table|tabelle|tableau|tabla|tabel)\s*[\w.-]*[.:]?\s*", re.I)
_CORNER = re.compile(
    r"(?P<a>.+?)\s*(?:\\|\||↓.*?→)\s*(?P<b>.+)|(?P<c>.+?)\s*↓[\s/|,]*(?P<d>.+?)\s*→"
)
_STEM = re.compile(r"__| x | by |,")

_WORDS = {
    "Sex": {
        *("sex", "gender", "geschlecht", "sexe", "genre", "sexo", "sesso", "geslacht", "kjonn"),
        *("kon", "plec", "sukupuoli", "pohlavi", "sexes"),
    },
    "Age": {
        *("age", "ages", "age group", "age groups", "alter", "altersgruppe", "altersgruppen"),
        *("edad", "grupo de edad", "grupos de edad", "eta", "classe di eta", "leeftijd", "alder"),
        *("leeftijdsgroep", "tranche d'age", "tranches d'age", "classe d'age", "groupe d'ages"),
        *("aldersgruppe", "wiek", "grupa wieku", "age band", "classi di eta", "age range"),
        *("age (years)", "age in years", "alter in jahren", "age class"),
    },
    "Year": {
        *("year", "years", "jahr", "annee", "ano", "anno", "jaar", "ar", "rok", "time", "perioden"),
    },
}
#: Headers of labels that say nothing about their variable.
_NO_NAMES = {
    *("label", "labels", "characteristic", "characteristics", "item", "items", "category", "group"),
    *("categories", "description", "label (grouping)", "wyszczegolnienie", "merkmal", "concepto"),
    *("row labels", "gegenstand", "libelle", "voce", "descripcion", "onderwerp", "subject"),
    "topic",
}
_MALE = (
    r"males?|m[ae]n|boys?|m|mann(?:er|lich)?|muzi|muzske|homens|maend|mænd|miehet|ferfi(?:ak)?|"
    r"erkek|hommes?|hombres?|varones|mannen|menn|maschi|masculin|masculino|mezczyzni|maschile|mand"
)
_FEMALE = (
    r"females?|wom[ae]n|girls?|f|w|frau(?:en)?|weiblich|femmes?|mujeres?|vrouwen|kvinner|kvinnor|"
    r"femmine|feminin|kobiety|femenino|kvinde|femminile|mulheres|kvinder|naiset|zeny|zenske|"
    r"kad[i\u0131]n|feminino"
)
MALE = re.compile(rf"(?:{_MALE})\+?")
_SEXES = re.compile(rf"(?:{_MALE}|{_FEMALE}|other|divers)\+?")
_AGES = re.compile(
    r".*\d+\s*(?:-|\u2013|to|bis|bis unter|a|à|tot|till|until)\s*(?:under\s*)?\d+.*|"
    r".*\d+\s*(?:\+|and (?:over|more|above|older)|or (?:over|more|older)|years? and over|"
    r"u(?:nd|\.)? (?:alter|mehr)|(?:jahre )?und alter|(?:ans )?(?:et|ou) plus|y mas|o mas|"
    r"anos y mas|en ouder|jaar of ouder|e oltre|e piu|y over|ans et plus|jahre und alter).*|"
    r"(?:under|unter|moins de|menos de|less than|jonger dan|meno di|below|<)\s*\d+.*|"
    r"y\d+.*|y_.*\d+.*|\d+\s*(?:years?|jahre|ans|anos|jaar|ar)",
)


def concept_of_labels(labels: Sequence[str]) -> str:
    """Return "Sex", "Age" or "Year" where the labels cannot be anything else, else nothing.

    Examples
    --------
    >>> concept_of_labels(["Männer", "Frauen", "Insgesamt"]), concept_of_labels(["0-14", "15+"])
    ('Sex', 'Age')
    >>> concept_of_labels(["yes", "no"])
    ''
    """
    plain = [plain_text(label) for label in labels if label and not is_total_word(label)]
    if len(plain) >= 2 and all(_SEXES.fullmatch(text) for text in plain):
        return "Sex"
    if len(plain) >= 2 and all(re.fullmatch(r"(?:19|20)\d\d", text) for text in plain):
        return "Year"
    if len(plain) >= 2 and sum(bool(_AGES.fullmatch(text)) for text in plain) >= 0.6 * len(plain):
        return "Age"
    return ""


_YES = {"yes", "ja", "oui", "si", "sim", "tak", "ano", "kylla", "true", "1"}
_NO = {"no", "nein", "non", "nao", "nee", "nej", "nei", "nie", "ne", "ei", "false", "0"}
_NOT = (
    r"(?:not? |non[- ]|un|in|without |nicht[- ]|keine? |ohne |sans |sin |senza |zonder |uden |"
    r"utan |bez )"
)


def are_opposites(labels: Sequence[str]) -> bool:
    """Return whether one of two labels is the negation of the other.

    Examples
    --------
    >>> [are_opposites(x) for x in (["Employed", "Unemployed"], ["Smoker", "Non-smoker"])]
    [True, True]
    >>> are_opposites(["With children", "Without children"]), are_opposites(["Births", "Deaths"])
    (True, False)
    """
    if len(labels) != 2:
        return False
    one, other = sorted((plain_text(label) for label in labels), key=len)
    bare = re.sub(r"^(?:with|mit|avec|con|met|med|z) ", "", one)
    return bool(re.fullmatch(_NOT + re.escape(bare), other)) or (
        {one, other} <= _YES | _NO and len({one, other} & _YES) == 1
    )


def concept_of_name(name: str) -> str:
    """Return "Sex" or "Age" for a name that means it, in any of some languages.

    Examples
    --------
    >>> concept_of_name("Tranche d'âge"), concept_of_name("Region")
    ('Age', '')
    """
    text = plain_text(name)
    return next((concept for concept, words in _WORDS.items() if text in words), "")


def is_no_name(header: str) -> bool:
    """Return whether the header of labels says nothing about their variable.

    Examples
    --------
    >>> is_no_name("Characteristic"), is_no_name("Region")
    (True, False)
    """
    return plain_text(header) in _NO_NAMES | {""}


def name_of_labels(name: str, labels: Collection[str]) -> str:
    """Return a label over others as their name; nothing if these are sexes or years and it is none.

    Examples
    --------
    >>> name_of_labels("Sex of child", ["Boys", "Girls"]), name_of_labels("Tenure", ["Own", "Rent"])
    ('Sex of child', 'Tenure')
    >>> name_of_labels("Population", ["Men", "Women"])
    ''
    """
    concept = concept_of_labels(sorted(labels))
    told = any(word in _WORDS.get(concept, {}) for word in plain_text(name).split())
    return "" if concept in ("Sex", "Year") and not told else name


def names_in_title(titles: Sequence[str]) -> list[str]:
    """Return what a title says that a table is broken down by, in its order.

    Examples
    --------
    >>> names_in_title(["Table 3: Population by age group and sex, Wales, 2021"])
    ['age group', 'sex']
    >>> names_in_title(["Bevölkerung nach Alter, Geschlecht und Region"])
    ['Alter', 'Geschlecht', 'Region']
    """
    for title in titles:
        found = _BY.search(title)
        if found is None:
            found = re.search(r"^[^:]{3,60}:\s*([^:]+,[^:]+)$", title)
        if found:
            text = re.sub(r"\s*[(\[].*?[)\]]", "", found[1])
            parts = [_WHEN.sub("", part).strip(" .:()") for part in BETWEEN.split(_up_to_and(text))]
            parts = [
                re.sub(r"^(?:the|le|la|les|el|los|il)\s+|^l['\u2019]", "", part) for part in parts
            ]
            parts = [p for p in parts if p and not unit_word(p) and not p.startswith(("in %", "%"))]
            parts = [p for p in parts if not re.search(r"\d{4}|^\d", p) and len(p) <= 40]
            small = bool(parts) and parts[0][:1].islower()  # then what has a capital is a place
            return [p for p in parts if not (small and p[:1].isupper())]
    return []


def _up_to_and(text: str) -> str:
    """Return a list of names without what follows its last one: "age and sex, Wales"."""
    found = re.match(rf"[^,]*(?:,[^,]*)*?{_AND}[^,]*(?=,)", text)
    return found[0] if found else text


def asked_in_title(titles: Sequence[str]) -> list[str]:
    """Return what stands before "by" in a title: it may be a variable, or what was counted.

    Examples
    --------
    >>> asked_in_title(["Table 3. Smoking status by sex"])
    ['Smoking status']
    """
    for title in titles:
        found = _BY.search(title)
        if found:
            text = _NUMBER_OF_TABLE.sub("", title[: found.start()])
            return [text.strip(" -:.")] if 2 < len(text.strip()) <= 40 else []
    return []


def split_corner(name: str) -> tuple[str, str]:
    r"""Return the names of rows and columns in a corner: ``smoke \ age``.

    Examples
    --------
    >>> split_corner("smoke \\ age"), split_corner("age")
    (('smoke', 'age'), ('age', ''))
    """
    found = _CORNER.fullmatch(name)
    if found is None:
        return name, ""
    one, other = (text.strip() for text in found.groups() if text)
    return one, other


def names_in_stem(stem: str) -> list[str]:
    """Return the names in the name of a file: ``smoke__age``, ``smoke by age``.

    Examples
    --------
    >>> names_in_stem("smoke by age")
    ['smoke', 'age']
    """
    parts = [part.strip() for part in _STEM.split(stem)]
    return parts if len(parts) > 1 else []


def split_labels(labels: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name that all labels begin with, and the labels without it: ``age=young``.

    Examples
    --------
    >>> split_labels(["age=young", "age=old"]), split_labels(["young", "old"])
    (('age', ['young', 'old']), ('', ['young', 'old']))
    """
    for sign in ("=", ": "):
        pairs = [label.partition(sign) for label in labels if label]
        names = {name.strip() for name, found, rest in pairs if found and rest.strip()}
        if len(names) == 1 and all(p[1] for p in pairs) and len(pairs) > 1:
            name = names.pop()
            if name:
                return name, [label.partition(sign)[2].strip() for label in labels]
    return "", list(labels)


def find_names(
    names: Sequence[str], labels: Sequence[Sequence[str]], titles: Sequence[str], stem: str
) -> list[str]:
    """Return a name for each axis: its own, or from titles, the file or its labels; else nothing.

    Examples
    --------
    >>> find_names(["Age group", ""], [["0-14"], ["a", "b"]], ["Persons by age and region"], "t")
    ['Age group', 'region']
    """
    found = list(names)
    open_ = [k for k, name in enumerate(found) if not name]
    if not open_:
        return found
    for k, name in enumerate(found):  # a corner such as "Status by age"
        split = re.fullmatch(rf"(.+?)\s+{_BY.pattern}", name, re.IGNORECASE) if name else None
        if split and len(open_) == 1:
            pair = [split[1].strip(), split[2].strip()]
            other = concept_of_labels(labels[open_[0]])
            if other and concept_of_name(pair[0]) == other:
                pair.reverse()
            found[k], found[open_[0]] = pair
            return found
    for said in (names_in_stem(stem), names_in_title(titles)):
        left = list(said)
        for name in found:  # those that are known already
            same = [x for x in left if name and is_same_name(x, name)]
            if same:
                left.remove(same[0])
        for k in list(open_):
            concept = concept_of_labels(labels[k])
            same = [x for x in left if concept and concept_of_name(x) == concept]
            if same:
                found[k] = same[0]
                left.remove(same[0])
                open_.remove(k)
        if len(open_) == 1 and not concept_of_labels(labels[open_[0]]):
            listed = not any(_BY.search(title) for title in titles)  # "Persons: Wales, date, sex"
            found[open_[0]] = _only_name(said, left, found, open_[0], listed)
            open_ = [k for k in open_ if not found[k]]
    for k in open_:
        found[k] = concept_of_labels(labels[k])
        if found.count(found[k]) > 1:
            found[k] = ""
    return found


def _only_name(
    said: Sequence[str], left: Sequence[str], found: Sequence[str], axis: int, listed: bool
) -> str:
    """Return the name of a title that only one axis without a name can have, else nothing."""
    if listed:  # in the order of the axes, after places and the like
        before = [i for i, x in enumerate(said) for n in found[:axis] if n and is_same_name(x, n)]
        left = [x for x in left if before and said.index(x) > max(before)] or left
    elif left and len(left) > 1:  # among the first, before places and the like
        known = sum(map(bool, found))
        leads = known > 0 and said.index(left[0]) <= known
        left = left[:1] if leads and concept_of_name(left[0]) != "Age" else []  # its labels show it
    return left[0] if len(left) == 1 else ""


def is_same_name(one: str, other: str) -> bool:
    """Return whether two names are surely of one variable.

    Examples
    --------
    >>> is_same_name("Age group", "age"), is_same_name("Sex", "Sexe"), is_same_name("Sex", "Age")
    (True, True, False)
    """
    a, b = plain_text(one), plain_text(other)
    concept = concept_of_name(one)
    inside = len(a) > 2 and len(b) > 2 and (a in b or b in a)
    return a == b or inside or (bool(concept) and concept == concept_of_name(other))
