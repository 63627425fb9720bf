"""Files drawn at random from a grammar of layouts, with the tables that they say.

Drawn are: language, variables, kind and size of the numbers, layout, totals and their words, titles
and notes, marks and flags, number format, delimiter, encoding, and the format of the file.
"""

import gzip
from dataclasses import dataclass

import numpy as np
from workbook import ods, xlsx

LANGUAGES = {
    "en": {
        "by": ("by", "and"),
        "total": ["Total", "All", "Overall", "Everyone together"],
        "people": ["Persons", "Usual residents", "Population"],
        "notes": ["Source: imaginary survey", "Note: figures are invented.", "1) Provisional."],
        "units": ["Number", "%"],
        "variables": {
            "Sex": ["Male", "Female"],
            "Age": ["0-14", "15-24", "25-44", "45-64", "65+"],
            "Employment status": ["Employed", "Unemployed", "Inactive"],
            "Region": ["North", "East", "South", "West"],
            "Smoking": ["never", "former", "current"],
            "Tenure": ["Owned", "Rented", "Other tenure"],
        },
    },
    "de": {
        "by": ("nach", "und"),
        "total": ["Insgesamt", "Zusammen", "Gesamt", "Alles in allem"],
        "people": ["Bevölkerung", "Personen", "Einwohner"],
        "notes": [
            "Quelle: erfundene Erhebung",
            "Hinweis: Zahlen sind erfunden.",
            "Stand: 1.1.2024",
        ],
        "units": ["Anzahl", "Prozent"],
        "variables": {
            "Geschlecht": ["männlich", "weiblich"],
            "Altersgruppe": ["unter 15", "15 bis 24", "25 bis 64", "65 und älter"],
            "Erwerbsstatus": ["erwerbstätig", "erwerbslos", "nicht erwerbstätig"],
            "Land": ["Nordland", "Südland", "Westland"],
            "Schulabschluss": ["ohne", "mittel", "Abitur"],
        },
    },
    "fr": {
        "by": ("par", "et"),
        "total": ["Ensemble", "Total", "Tous réunis"],
        "people": ["Population", "Personnes", "Habitants"],
        "notes": [
            "Source : enquête imaginaire",
            "Champ : France imaginaire.",
            "Lecture : en 2024.",
        ],
        "units": ["Effectif", "%"],
        "variables": {
            "Sexe": ["Hommes", "Femmes"],
            "Tranche d'âge": ["Moins de 15 ans", "15 à 24 ans", "25 à 64 ans", "65 ans et plus"],
            "Situation": ["En emploi", "Au chômage", "Inactif"],
            "Diplôme": ["Aucun", "Bac", "Supérieur"],
            "Logement": ["Propriétaire", "Locataire"],
        },
    },
    "es": {
        "by": ("por", "y"),
        "total": ["Total", "Ambos", "Todo junto"],
        "people": ["Población", "Personas"],
        "notes": ["Fuente: encuesta imaginaria", "Notas: cifras inventadas."],
        "units": ["Número", "Porcentaje"],
        "variables": {
            "Sexo": ["Hombres", "Mujeres"],
            "Edad": ["Menos de 15", "15 a 24", "25 a 64", "65 y más"],
            "Actividad": ["Ocupado", "Parado", "Inactivo"],
            "Provincia": ["Norte", "Centro", "Sur"],
        },
    },
    "nl": {
        "by": ("naar", "en"),
        "total": ["Totaal", "Alles bij elkaar"],
        "people": ["Bevolking", "Personen"],
        "notes": ["Bron: verzonnen enquete"],
        "units": ["Aantal", "Procent"],
        "variables": {
            "Geslacht": ["Mannen", "Vrouwen"],
            "Leeftijd": ["0 tot 15 jaar", "15 tot 25 jaar", "25 tot 65 jaar", "65 jaar of ouder"],
            "Positie": ["werkzaam", "werkloos", "overig"],
            "Provincie": ["Groningen", "Utrecht", "Zeeland", "Limburg"],
        },
    },
    "xx": {  # a language that no list of words knows
        "by": ("by", "and"),
        "total": ["Zorbat", "Kuumu"],
        "people": ["Folk"],
        "notes": ["Blix: ormu"],
        "units": ["Number", "%"],
        "variables": {
            "Grint": ["ald", "bem", "cor"],
            "Vosk": ["min", "tau"],
            "Pellu": ["1", "2", "3", "4"],
            "Drom": ["este", "vest", "midt", "syd", "nord"],
        },
    },
}
MARKS = ["..", "x", "[c]", ":", "*", "(D)", "c", "…", "np"]
FLAGS = [" p", "*", " r", "¹", " (e)", " [1]", " b"]


@dataclass
class Made:
    name: str
    content: bytes
    names: tuple
    labels: list
    values: np.ndarray  # NaN where not given
    shares: bool
    tolerance: float
    story: str


def make(seed):
    return _Maker(np.random.default_rng(seed)).made()


class _Maker:
    def __init__(self, rng):
        self.rng = rng
        self.language = self.pick(list(LANGUAGES), p=[0.3, 0.18, 0.16, 0.13, 0.1, 0.13])
        self.words = LANGUAGES[self.language]
        self.story = [self.language]
        self.truth = None

    def pick(self, options, p=None):
        at = int(self.rng.choice(len(options), p=p))
        self_story = options[at]
        return self_story

    def chance(self, p):
        return bool(self.rng.random() < p)

    def made(self):
        rng, words = self.rng, self.words
        many = self.pick([1, 2, 3], p=[0.1, 0.6, 0.3])
        names = [str(n) for n in rng.permutation(list(words["variables"]))[:many]]
        labels = [list(words["variables"][n]) for n in names]
        shape = [len(known) for known in labels]
        size = self.pick([60, 900, 20_000, 400_000])
        self.size = size
        counts = np.ceil(rng.lognormal(0, 0.8, size=shape) * size) + 1
        if self.chance(0.15):
            counts[tuple(rng.integers(0, n) for n in shape)] = 0.0
        kind = self.pick(["counts", "percent", "shares", "thousands"], p=[0.72, 0.12, 0.06, 0.1])
        self.digits = 0
        self.exact = None  # what totals are rounded from
        if (
            kind == "counts" and size > 100 and self.chance(0.15)
        ):  # rounded to multiples, totals too
            base = self.pick([3, 5, 10])
            up = rng.random(counts.shape) < (counts % base) / base
            self.exact, counts = counts, base * (np.floor(counts / base) + up)
            self.base = base
            self.story.append(f"rounded {base}")
        if kind == "percent":
            self.digits = self.pick([1, 2])
            values = np.round(100 * counts / counts.sum(), self.digits)
            if self.chance(0.5):
                self.exact, self.base = 100 * counts / counts.sum(), 10.0**-self.digits
        elif kind == "shares":
            self.digits = 4
            values = np.round(counts / counts.sum(), 4)
        elif kind == "thousands":
            self.digits = 1
            values = np.round(counts / 1000 + 0.05, 1)
        else:
            values = counts
        layout = (
            "long"
            if many == 1
            else self.pick(["long", "wide", "wide", "wide", "sections" if many == 3 else "wide"])
        )
        self.layout, self.kind = layout, kind
        self.story += [kind, layout, f"{many} variables"]
        unknown = values.astype(float).copy()
        self.choose_marks(values, unknown, kind)
        totals = [self.chance(0.6) for _ in names]
        if layout == "long" and not self.chance(0.5):
            totals = [False] * many
        self.first = self.chance(0.3)
        word = self.pick(words["total"])
        self.values, self.word = values, word
        if layout in ("pairs", "based", "indented", "subtotals"):
            totals, self.hidden = [False, False], {}
            unknown = values.astype(float).copy()
        cells, axes = self.with_totals(values, unknown, labels, totals, word)
        rows = getattr(self, layout)(names, axes, cells)
        return self.file(rows, names, labels, unknown, kind)

    def choose_marks(self, values, unknown, kind):
        self.hidden = {}
        self.mark = self.pick(MARKS)
        if self.chance(0.25) and values.size > 5:
            for _ in range(self.pick([1, 1, 2])):
                at = tuple(self.rng.integers(0, n) for n in values.shape)
                self.hidden[at] = self.mark
                unknown[at] = np.nan
            self.story.append(f"hidden {self.mark}")
        self.nil = self.pick(["0", "-", "\u2013"]) if self.digits == 0 else "0"
        self.flag = self.pick(FLAGS) if self.chance(0.2) else ""
        if self.flag:
            self.story.append(f"flag {self.flag!r}")
        self.format = self.pick(
            [("", "."), (",", "."), (".", ","), (" ", ","), ("\u00a0", ","), ("'", "."), ("", ",")],
            p=[0.35, 0.18, 0.14, 0.1, 0.1, 0.05, 0.08],
        )
        self.percent_sign = kind == "percent" and self.chance(0.3)

    def text(self, value, flagged=False):
        if value == 0 and self.nil != "0":
            return self.nil
        thousands, decimal = self.format
        text = f"{value:,.{self.digits}f}".replace(",", "\0").replace(".", decimal)
        text = text.replace("\0", thousands)
        text += " %" if self.percent_sign else ""
        return text + (self.flag if flagged else "")

    def with_totals(self, values, unknown, labels, totals, word):
        """Arrays of text with totals, and labels with them."""
        cells = np.empty(values.shape, dtype=object)
        for at in np.ndindex(values.shape):
            cells[at] = self.text(values[at], self.flag and self.chance(0.1))
            if at in self.hidden:
                cells[at] = self.hidden[at]
        axes = [list(known) for known in labels]
        numbers, exact = values, self.exact
        for axis, wanted in enumerate(totals):
            if not wanted:
                continue
            sums = np.round(numbers.sum(axis=axis, keepdims=True), self.digits)
            if exact is not None:  # rounded by themselves
                whole = exact.sum(axis=axis, keepdims=True)
                exact = np.concatenate([whole, exact] if self.first else [exact, whole], axis=axis)
                sums = np.round(self.base * np.round(whole / self.base), self.digits)
            shown = np.empty(sums.shape, dtype=object)
            for at in np.ndindex(sums.shape):
                shown[at] = self.text(sums[at])
            first = self.first
            parts = (
                [(sums, shown), (numbers, cells)] if first else [(numbers, cells), (sums, shown)]
            )
            numbers = np.concatenate([p[0] for p in parts], axis=axis)
            cells = np.concatenate([p[1] for p in parts], axis=axis)
            axes[axis] = [word, *axes[axis]] if first else [*axes[axis], word]
        if any(totals):
            self.story.append(f"totals {word!r} of {[i for i, t in enumerate(totals) if t]}")
        return cells, axes

    # Layouts ------------------------------------------------------------------------------

    def value_name(self):
        if self.kind == "counts":
            return self.pick(["count", "n", "Value", "OBS_VALUE", "Number"])
        if self.kind == "thousands":
            return self.pick(["Value", "OBS_VALUE"])
        return "percent" if self.kind == "percent" else "share"

    def long(self, names, axes, cells):
        year = self.chance(0.3)
        rows = [[*(["Year"] if year else []), *names, self.value_name()]]
        for at in np.ndindex(cells.shape):
            said = [axis[i] for axis, i in zip(axes, at, strict=True)]
            rows.append([*(["2021"] if year else []), *said, cells[at]])
        self.titled = False
        return rows

    def wide(self, names, axes, cells):
        """Rows for the first variables, columns for the last one or two."""
        split = len(names) - (2 if len(names) == 3 and self.chance(0.5) else 1)
        stub, over = axes[:split], axes[split:]
        how = self.pick(["corner", "span", "title", "equals"])
        if len(over) == 2:
            how = self.pick(["title", "equals", "equals"])
        self.titled = how == "title"
        self.story.append(f"columns named by {how}")
        head = list(names[:split])
        columns = [list(known) for known in over]
        if how == "corner":
            head[-1] = f"{head[-1]} \\ {names[-1]}"
        if how == "equals":
            sign = self.pick(["=", ": "])
            for k in range(len(over)):
                name = names[split + k]
                columns[k] = [f"{name}{sign}{label}" for label in columns[k]]
        rows = []
        if how == "span":
            rows.append([*[""] * split, names[-1], *[""] * (len(columns[0]) - 1)])
        if len(over) == 2:
            top = []
            for label in columns[0]:
                top += [label, *[""] * (len(columns[1]) - 1)]
            if self.chance(0.3):  # repeated in place of spanning
                top = [label for label in columns[0] for _ in columns[1]]
            rows.append([*[""] * split, *top])
            rows.append([*head, *(columns[1] * len(columns[0]))])
        else:
            rows.append([*head, *columns[0]])
        filled = self.chance(0.5)
        before = None
        for at in np.ndindex(cells.shape[:split]):
            said = [axis[i] for axis, i in zip(stub, at, strict=True)]
            shown = list(said)
            if filled and split == 2 and before == said[0]:
                shown[0] = ""
            before = said[0]
            rows.append([*shown, *cells[at].ravel().tolist()])
        return rows

    def sections(self, names, axes, cells):
        """The first variable in headings between the rows."""
        self.titled = True
        indent = self.pick(["", "  "])
        named = self.chance(0.85)  # "Sex: Male"
        rows = [[names[1] if named else "", *axes[2]]]
        for i, outer in enumerate(axes[0]):
            rows.append([f"{names[0]}: {outer}" if named else outer])
            for j, label in enumerate(axes[1]):
                rows.append([indent + label, *cells[i, j].tolist()])
        return rows

    def pairs(self, names, axes, cells):
        """Numbers with their percentages of the row beside them."""
        self.titled = True
        count, percent = self.words["units"]
        share = 100 * self.values / self.values.sum(axis=1, keepdims=True)
        rows = [[names[0], *[c for label in axes[1] for c in (label, "")]]]
        rows.append(["", *[count, percent] * len(axes[1])])
        mark = self.format[1]
        for i, label in enumerate(axes[0]):
            both = [
                (c, f"{p:.1f}".replace(".", mark)) for c, p in zip(cells[i], share[i], strict=True)
            ]
            rows.append([label, *[c for pair in both for c in pair]])
        return rows

    def based(self, names, axes, cells):
        """Percentages of each row, and the number behind them."""
        self.titled = True
        base = self.values.sum(axis=1)
        share = np.round(100 * self.values / base[:, None], 1)
        mark = self.format[1]
        rows = [[names[0], *axes[1], self.words["units"][0]]]
        for i, label in enumerate(axes[0]):
            parts = [f"{p:.1f}".replace(".", mark) for p in share[i]]
            rows.append([label, *parts, self.text(base[i])])
        self.truth = share * base[:, None] / 100
        return rows

    def indented(self, names, axes, cells):
        """Both variables in the stub: each level of the first above those of the second."""
        self.titled = True
        indent = self.pick(["  ", "    ", "\u00a0\u00a0"])
        totals = self.values.sum(axis=1)
        rows = [
            [f"{names[0]} {self.words['by'][1]} {names[1]}", self.pick(["n", "count", "Value"])]
        ]
        if self.chance(0.5):
            rows.append([self.word, self.text(totals.sum())])
            outer, inner = indent, indent * 2
        else:
            outer, inner = "", indent
        for i, label in enumerate(axes[0]):
            rows.append([outer + label, self.text(totals[i])])
            rows += [[inner + each, c] for each, c in zip(axes[1], cells[i], strict=True)]
        return rows

    def subtotals(self, names, axes, cells):
        """Rows in two groups with subtotals, indented or not."""
        self.titled = True
        split = max(len(axes[0]) // 2, 1)
        indent = self.pick(["", "  "])
        rows = [[names[0], *axes[1]]]
        groups = [(0, split), (split, len(axes[0]))]
        rows.append([self.word, *map(self.text, self.values.sum(axis=0))])
        for k, (a, b) in enumerate(groups):
            if b - a > 1:
                rows.append([f"Group {'AB'[k]}", *map(self.text, self.values[a:b].sum(axis=0))])
            inside = indent if b - a > 1 else ""
            rows += [[inside + axes[0][i], *cells[i].tolist()] for i in range(a, b)]
        return rows

    # Files --------------------------------------------------------------------------------

    def file(self, rows, names, labels, unknown, kind):
        words = self.words
        by, and_ = words["by"]
        above = []
        if self.titled or self.chance(0.5):
            listed = f" {and_} ".join(
                [", ".join(names[:-1]), names[-1]] if len(names) > 1 else [names[0]]
            )
            if self.layout != "long":
                unit = " (in %)" if kind == "percent" else ""
                unit = " (in 1 000)" if kind == "thousands" else unit
                above.append([f"{self.pick(words['people'])} {by} {listed}{unit}"])
        if kind == "percent" and not above and self.layout != "long":
            above.append(["in %"])
        scaled = 1.0
        if kind == "thousands":
            told = any("1 000" in row[0] for row in above)
            if not told and (self.size < 20_000 or self.chance(0.5)):
                above.append(["in 1 000"])
                told = True
            scaled = 1000.0 if told else 1.0
        if self.chance(0.2):
            above.insert(0, [f"Table {int(self.rng.integers(1, 90))}"])
        if above and self.chance(0.5):
            above.append([])
        below = [[note] for note in words["notes"] if self.chance(0.4)]
        if below and self.chance(0.5):
            below.insert(0, [])
        rows = self.disturbed(rows)
        rows = [*above, *rows, *below]
        stem = f"file{int(self.rng.integers(1e6))}"
        name, content = self.encode(rows, stem)
        values = unknown * scaled if self.truth is None else self.truth
        shares = kind in ("percent", "shares")
        if shares:
            known = ~np.isnan(values)
            whole = 100.0 if kind == "percent" else 1.0
            values = values / (values.sum() if known.all() else whole)
        return Made(
            name, content, tuple(names), labels, values, shares,
            0.02 if shares or self.truth is not None else 1e-9,
            ", ".join(self.story),
        )  # fmt: skip

    def disturbed(self, rows):
        """Blank rows between, an empty column, codes beside labels, a header on every page."""
        many = len(rows)
        if self.layout == "wide" and self.chance(0.12):
            at = int(self.rng.integers(many // 2 + 1, many))
            rows = [*rows[:at], [], *rows[at:]]
            self.story.append("blank row")
        if self.layout == "wide" and self.chance(0.08):
            rows = [[*row[:1], "", *row[1:]] if row else row for row in rows]
            self.story.append("empty column")
        if self.layout == "long" and self.chance(0.2):
            head, *body = rows
            codes = {}
            k = 1 if head[0] == "Year" else 0
            made = [
                [*r[: k + 1], codes.setdefault(r[k], f"C{len(codes):02d}"), *r[k + 1 :]]
                for r in body
            ]
            rows = [[*head[: k + 1], f"{head[k]} code", *head[k + 1 :]], *made]
            self.story.append("codes")
        if self.layout == "long" and self.chance(0.2):
            rows = [
                [*rows[0], "OBS_STATUS"],
                *[[*row, self.pick(["", "p", ""])] for row in rows[1:]],
            ]
            self.story.append("status")
        return rows

    def encode(self, rows, stem):
        form = self.pick(["text", "xlsx", "ods", "gz"], p=[0.74, 0.14, 0.06, 0.06])
        self.story.append(form)
        if form in ("xlsx", "ods"):
            typed = [[self.typed(cell) for cell in row] for row in rows]
            sheets = {"Table": typed}
            if self.chance(0.3):
                sheets = {"Notes": [["These figures are invented."]], **sheets}
            return f"{stem}.{form}", (xlsx if form == "xlsx" else ods)(sheets)
        allowed = [d for d in (";", ",", "\t", "|")]
        delimiter = self.pick(allowed, p=[0.4, 0.35, 0.2, 0.05])
        self.story.append(f"delimiter {delimiter!r}")
        quoted = self.chance(0.3)
        shown = []
        for row in rows:
            cells = [str(cell) for cell in row]
            cells = [
                '"' + c.replace('"', '""') + '"'
                if (quoted and c) or delimiter in c or '"' in c
                else c
                for c in cells
            ]
            shown.append(delimiter.join(cells))
        text = "\n".join(shown) + "\n"
        if self.chance(0.08):
            text = f"sep={delimiter}\n" + text
        if self.chance(0.15):
            text = text.replace("\n", "\r\n")
        encoding = self.pick(["utf-8", "utf-8-sig", "utf-16"], p=[0.75, 0.2, 0.05])
        content = text.encode(encoding)
        suffix = ".tsv" if delimiter == "\t" and self.chance(0.5) else ".csv"
        if form == "gz":
            return f"{stem}{suffix}.gz", gzip.compress(content)
        return f"{stem}{suffix}", content

    def typed(self, cell):
        """Numbers of a workbook are numbers, but for those with flags."""
        thousands, decimal = self.format
        text = cell
        if thousands:
            text = text.replace(thousands, "")
        text = text.replace(decimal, ".")
        if not cell or not cell[0].isdigit() or len(cell) < 3:
            return cell
        try:
            return float(text)
        except ValueError:
            return cell
