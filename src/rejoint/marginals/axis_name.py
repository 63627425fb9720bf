"""Names of variables that a table does not print beside its labels.

Offices print the levels of a variable over columns and say its name in the corner, in a label that
spans the columns, or in the title only: "Population by age group and sex". Where none of these says
it, sexes and ages are recognized by their labels.
"""

import re
from collections.abc import Collection, Sequence

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
        "year",
        "years",
        "jahr",
        "annee",
        "ano",
        "anno",
        "jaar",
        "ar",
        "rok",
        "time",
        "perioden",
    },
}
#: Headers of labels that say nothing about their variable.
_NO_NAMES = {
    *("label", "labels", "characteristic", "characteristics", "item", "items", "category", "group"),
    *("categories", "description", "label (grouping)", "wyszczegolnienie", "merkmal", "concepto"),
    *(
        "row labels",
        "gegenstand",
        "libelle",
        "voce",
        "descripcion",
        "onderwerp",
        "subject",
        "topic",
    ),
}
_SEXES = re.compile(
    r"(?:males?|females?|m[ae]n|wom[ae]n|boys?|girls?|m|f|w|mann(?:er|lich)?|frau(?:en)?|weiblich|"
    r"hommes?|femmes?|hombres?|mujeres?|varones|mannen|vrouwen|menn|kvinner|kvinnor|maschi|"
    r"femmine|masculin|feminin|mezczyzni|kobiety|masculino|femenino|mand|kvinde|other|divers|"
    r"maschile|femminile|homens|mulheres|maend|mænd|kvinder|miehet|naiset|muzi|zeny|muzske|"
    r"zenske|ferfi(?:ak)?|erkek|kad[i\u0131]n|feminino)\+?"
)
MALE = re.compile(
    r"(?:males?|m[ae]n|boys?|m|mann(?:er|lich)?|muzi|muzske|homens|maend|mænd|miehet|ferfi(?:ak)?|"
    r"erkek|hommes?|hombres?|varones|mannen|menn|maschi|masculin|masculino|mezczyzni|maschile|"
    r"mand)\+?"
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
