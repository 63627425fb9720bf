"""Names of variables that a table does not print beside its labels.

Offices print the levels of a variable over columns and say its name in the corner, in a label that
spans the columns, or in the title only: "Population by age group and sex". Where none of these says
it, sexes and ages are recognized by their labels.
"""

import re
from collections.abc import Sequence

from rejoint.marginals.totals import is_total_word, plain_text
from rejoint.marginals.unit_word import unit_word

_BY = re.compile(
    r"\b(?:by|nach|par|selon|por|segun|según|naar|per|efter|etter|wedlug|według|podle|mukaan)\s+(.+)",
    re.IGNORECASE,
)
BETWEEN = re.compile(
    r"\s*(?:,|;|&|/|\bby\b|\band\b|\bund\b|\bet\b|\by\b|\be\b|\ben\b|\bog\b|\boch\b|\bi\b|\bnach\b|"
    r"\bpar\b|\bpor\b|\bnaar\b)\s*",
    re.IGNORECASE,
)
_WHEN = re.compile(r"\s+(?:au|en|in|on|am|im|zum|op|at|al|within|since|from)\s+.*$", re.I)
_NUMBER_OF_TABLE = re.compile(r"^(?:table|tabelle|tableau|tabla|tabel)\s*[\w.-]*[.:]?\s*", re.I)
_CORNER = re.compile(r"(.+?)\s*(?:\\|\||↓.*?→)\s*(.+)")
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
    "Year": {"year", "years", "jahr", "annee", "ano", "anno", "jaar", "ar", "rok", "time"},
}
_SEXES = re.compile(
    r"(?:males?|females?|men|women|boys|girls|m|f|w|man|woman|mann(?:er|lich)|frauen|weiblich|"
    r"hommes?|femmes?|hombres?|mujeres?|varones|mannen|vrouwen|menn|kvinner|man|kvinnor|maschi|"
    r"femmine|masculin|feminin|mezczyzni|kobiety|masculino|femenino|mand|kvinde|other|divers|"
    r"maschile|femminile|mannlich)"
)
MALE = re.compile(
    r"males?|men|man|boys|m|mann(?:er|lich)|hommes?|hombres?|varones|mannen|menn|maschi|masculin|"
    r"masculino|mezczyzni|maschile|mand"
)
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


def concept_of_name(name: str) -> str:
    """Return "Sex" or "Age" for a name that means it, in any of some languages.

    Examples
    --------
    >>> concept_of_name("Tranche d'âge"), concept_of_name("Region")
    ('Age', '')
    """
    text = plain_text(name)
    return next((concept for concept, words in _WORDS.items() if text in words), "")


def names_in_title(titles: Sequence[str]) -> list[str]:
    """Return what a title says that a table is broken down by, in its order.

    Examples
    --------
    >>> names_in_title(["Table 3: Population by age group and sex, Wales, 2021"])
    ['age group', 'sex', 'Wales']
    >>> names_in_title(["Bevölkerung nach Alter, Geschlecht und Region"])
    ['Alter', 'Geschlecht', 'Region']
    """
    for title in titles:
        found = _BY.search(title)
        if found is None:
            found = re.search(r"^[^:]{3,60}:\s*([^:]+,[^:]+)$", title)
        if found:
            text = re.sub(r"\s*[(\[].*?[)\]]", "", found[1])
            parts = [_WHEN.sub("", part).strip(" .:()") for part in BETWEEN.split(text)]
            parts = [
                re.sub(r"^(?:the|le|la|les|el|los|il)\s+|^l['\u2019]", "", part) for part in parts
            ]
            parts = [p for p in parts if p and not unit_word(p) and not p.startswith(("in %", "%"))]
            return [p for p in parts if not re.search(r"\d{4}|^\d", p) and len(p) <= 40]
    return []


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
    return (found[1].strip(), found[2].strip()) if found else (name, "")


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
        known = sum(bool(name) for name in found)
        listed = not any(_BY.search(title) for title in titles)  # "Persons: Wales, date, sex"
        first = bool(left) and not listed and _leads(said, left[0], known)
        first = first and concept_of_name(left[0]) != "Age"  # their labels would show it
        if len(open_) == 1 and left and (len(left) == 1 or first):
            k = open_[0]
            if not concept_of_labels(labels[k]):
                found[k] = left[0]
                open_.remove(k)
    for k in open_:
        found[k] = concept_of_labels(labels[k])
        if found.count(found[k]) > 1:
            found[k] = ""
    return found


def _leads(said: Sequence[str], name: str, known: int) -> bool:
    """Return whether a name is among the first of a title, before places and the like."""
    return known > 0 and list(said).index(name) <= known


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
