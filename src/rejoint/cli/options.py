"""Options that several commands share, and the files that they name."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from io import BytesIO
from typing import Any

import click

from rejoint.cli.output import spreadsheet_option
from rejoint.domain.domain import Domain
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.io.fit_notes import records_behind
from rejoint.io.model_file import SavedModel, read_open, read_saved
from rejoint.marginals.folder import find_folder
from rejoint.marginals.marginals import Marginals, of_files
from rejoint.marginals.read.description import FORMS, KINDS, Reading
from rejoint.marginals.read.table_files import TableFiles, read_files
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.delimited import numbers_of
from rejoint.records.discover import MISSING
from rejoint.records.files import read_stdin
from rejoint.records.formats import BUILT_IN, READERS
from rejoint.records.frames import Frame
from rejoint.records.read import read, read_chunks, read_frame, scan
from rejoint.records.records import Records
from rejoint.records.scan import Scan
from rejoint.records.survey_design import WeightArguments
from rejoint.text import cite, plural

Callback = Callable[..., Any]

as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
seed = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
)


def output_option(what: str, *, required: bool = False) -> Callable[[Callback], Callback]:
    """``-o``: where to write; stdout by default or for ``-``."""
    return click.option("-o", "--output", metavar="FILE", required=required, help=what)


def rows_to(what: str) -> Callable[[Callback], Callback]:
    """``-o`` and ``--spreadsheet`` of a command that writes rows."""
    return lambda command: output_option(what)(spreadsheet_option(command))


rows = rows_to(
    "Output file; its name sets the format: .csv, .tsv, .jsonl, .parquet, .arrow; .gz compresses."
)
model = output_option("The model file; .json writes it as text.", required=True)
rank = click.option(
    "--rank", type=click.IntRange(min=1), help="Number of classes; chosen automatically by default."
)
max_classes = click.option(
    "--max-classes",
    type=click.IntRange(min=1),
    help="Largest number of classes of the model that answers; it sets the cost of questions, "
    "files and pages.",
)

budget = click.option(
    "--budget",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="SECONDS",
    help="Approximate time limit of the search for the number of classes; 20 by default.",
)
solver = click.option(
    "--solver",
    type=click.Choice(["auto", "ml", "map", "bayes"]),
    default="auto",
    show_default=True,
    help="Maximum likelihood (ml), with a prior (map), or averaged over the posterior (bayes).",
)
smooth = click.option(
    "--smooth/--no-smooth",
    default=None,
    help="Whether neighboring levels of ordinal and binned columns inform each other; on by "
    "default unless --solver is ml.",
)

agreement = click.option(
    "--agreement/--no-agreement",
    default=True,
    help="Whether answers are moved towards tables of two columns that the records contradict.",
)

blocks = click.option(
    "--blocks",
    multiple=True,
    metavar="auto|A,B,...|none",
    help="Columns that are tabulated jointly within classes, as they say nearly the same (an "
    "amount and its bracket); once for each block. They are found by default.",
)

draws = click.option(
    "--draws/--no-draws",
    default=True,
    help="Whether to store posterior draws, for credible intervals, in the file (some kB to 8 MB).",
)


def within(what: str) -> Callable[[Callback], Callback]:
    """``--within``: the limit beyond which a command exits with code 4."""
    return click.option("--within", type=click.FloatRange(min=0.0), help=what)


subsets = click.option(
    "--subset", "subsets", multiple=True, metavar="A,B,...", help="A table of these variables."
)

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl")


def choose_format() -> Any:
    """Return the names that ``--format`` takes, with those that were added by now."""
    return click.Choice([*FORMATS, *sorted(READERS.keys() - BUILT_IN)])


_TEXT = [
    click.option(
        "--delimiter", metavar="CHAR", help="Delimiter between cells; guessed by default."
    ),
    click.option("--encoding", metavar="NAME", help="Encoding of the text; guessed by default."),
]
_FILE = [
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT",
        help="A text that marks an empty cell, in addition to the usual ones (nothing, ?, NA, NaN, "
        "null, ...). Can be given more than once.",
    ),
    click.option("--only-missing", is_flag=True, help="Use only --missing, not the usual texts."),
    *_TEXT,
    click.option(  # no click.Choice: formats are added later
        "--format",
        metavar=f"[{'|'.join(FORMATS)}]",
        callback=lambda ctx, param, value: value and choose_format().convert(value, param, ctx),
        shell_complete=lambda *found: choose_format().shell_complete(*found),
        help="File format, if the file name does not show it.",
    ),
    click.option(
        "--names", metavar="A,B,...", help="Names of the columns of a file without a header."
    ),
]

_WEIGHT = click.option(
    "--weight", metavar="COLUMN", help="Column that holds how many times each record counts."
)

_SURVEY = [
    click.option(
        "--survey-weight",
        metavar="COLUMN",
        help="Column of survey weights (how many people each record stands for, at any scale); "
        "intervals allow for the design effect.",
    ),
    click.option(
        "--strata", metavar="COLUMN", help="Column that holds the stratum of each record."
    ),
    click.option(
        "--clusters",
        metavar="COLUMN",
        help="Column that holds the cluster (sampling unit) of each record.",
    ),
]

_COLUMNS = [
    click.option("--columns", multiple=True, metavar="A,B,...", help="Use only these columns."),
    click.option("--without", multiple=True, metavar="A,B,...", help="Use all columns but these."),
    click.option(
        "--ordinal", multiple=True, metavar="A,B,...", help="Columns whose levels have an order."
    ),
    click.option(
        "--nominal",
        multiple=True,
        metavar="A,B,...",
        help="Columns whose levels have no order; each number or text is a level.",
    ),
    click.option(
        "--year",
        multiple=True,
        metavar="A,B,...",
        help="Columns of dates of which to use the year.",
    ),
    click.option(
        "--month",
        multiple=True,
        metavar="A,B,...",
        help="Columns of dates of which to use the month (1 to 12).",
    ),
    click.option(
        "--levels", multiple=True, metavar="A=X,Y,...", help="Levels of a column, in order."
    ),
    click.option(
        "--not-applicable",
        multiple=True,
        metavar="auto|A,B,...|none",
        help="Columns that do not apply to some records: cells that are empty because of another "
        "column are a level of their own. They are found by default.",
    ),
    click.option(
        "--missing-level",
        multiple=True,
        metavar="A,B,...",
        help="Columns whose empty cells are an answer in themselves.",
    ),
    click.option(
        "--bins",
        multiple=True,
        metavar="[A=]N|EDGES|none",
        help="Cut numbers into N quantile bins (without A=, in every column), at edges "
        "(A=0,18,65,99), or not at all. Columns of many distinct numbers are binned by default.",
    ),
]


@dataclass(frozen=True)
class DataReader:
    """Options for reading a data file and for its columns.

    Examples
    --------
    >>> DataReader(bins=("age=3", "size=none")).column_options()["bins"]
    {'age': 3, 'size': None}
    """

    missing: Sequence[str] = ()
    only_missing: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    format: str | None = None
    names: str | None = None
    weight: str | None = None
    survey_weight: str | None = None
    strata: str | None = None
    clusters: str | None = None
    columns: Sequence[str] = ()
    without: Sequence[str] = ()
    ordinal: Sequence[str] = ()
    nominal: Sequence[str] = ()
    year: Sequence[str] = ()
    month: Sequence[str] = ()
    levels: Sequence[str] = ()
    bins: Sequence[str] = ()
    not_applicable: Sequence[str] = ()
    missing_level: Sequence[str] = ()

    def read(self, path: str, domain: Domain | None = None) -> Records:
        """Return all records of a file, over a domain or the one that its columns define."""
        rest = self.column_options() if domain is None else {"domain": domain}
        return read(path, **self.weights().given, **self.file(), **rest)

    def frame(self, path: str) -> Frame:
        """Return the columns of a file before encoding, with those of its weights."""
        return read_frame(path, self.weights(), **self.file())

    def chunks(self, path: str) -> Iterator[Records]:
        """Yield the records of a file in parts."""
        return read_chunks(path, **self.weights().given, **self.file(), **self.column_options())

    def scan(self, path: str) -> Scan:
        """Return the records of a file as a scan, for any number of passes."""
        return scan(path, **self.weights().given, **self.file(), **self.column_options())

    def weights(self) -> WeightArguments:
        """Return the columns that hold weights."""
        return WeightArguments(self.weight, self.survey_weight, self.strata, self.clusters)

    def file(self) -> dict[str, Any]:
        """Return options of the file, as ``rejoint.read`` takes them."""
        if self.only_missing and not self.missing:
            raise click.UsageError("--only-missing needs --missing: which texts are empty cells?")
        if self.columns and not split_names(self.columns):
            raise click.UsageError("--columns names no column: leave it out for all of them.")
        delimiter = "\t" if self.delimiter == "\\t" else self.delimiter
        return {
            "missing": (*self.missing, *(() if self.only_missing else MISSING)),
            "delimiter": delimiter,
            "encoding": self.encoding,
            "format": self.format,
            "header": True if self.names is None else split_names([self.names]),
            "columns": split_names(self.columns) or None,
            "without": split_names(self.without),
        }

    def column_options(self) -> dict[str, Any]:
        """Return options of columns, as ``rejoint.read`` takes them."""
        kinds: dict[str, str] = {}
        for kind in ("ordinal", "nominal", "year", "month"):
            for name in split_names(getattr(self, kind)):
                if name in kinds:
                    both = f"--{kinds[name]} and --{kind}"
                    raise click.UsageError(f"{cite(name)} is named by both {both}.")
                kinds[name] = kind
        bins: Any = dict(map(_bins, self.bins))
        if "" in bins:
            if len(bins) > 1:
                raise click.UsageError(
                    "--bins N is for all columns: give it alone, or write NAME=N for each."
                )
            bins = bins[""]
        applies = split_names(self.not_applicable)
        plain: Any = {"auto": "auto", "none": False}.get(",".join(applies).lower(), applies)
        return {
            "kinds": kinds,
            "levels": dict(map(_levels, self.levels)),
            "bins": bins,
            "not_applicable": plain if applies else "auto",
            "missing_level": split_names(self.missing_level),
        }


def read_blocks_option(texts: Sequence[str]) -> Any:
    """Return what ``--blocks`` asks for, as :func:`rejoint.estimate` takes it."""
    named = [split_names([text]) for text in texts]
    plain: dict[str, Any] = {"": "auto", "auto": "auto", "none": False}
    return plain.get(",".join(texts).lower(), named)


def split_names(texts: Iterable[str]) -> list[str]:
    """Names between commas; quotes keep a comma.

    Examples
    --------
    >>> split_names(['a,"b,c"', "d"])
    ['a', 'b,c', 'd']
    """
    return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]


def _levels(text: str) -> tuple[str, list[Any]]:
    name, found, rest = text.partition("=")
    if not found or not rest:
        raise click.UsageError(f"--levels {text}: write NAME=FIRST,SECOND,...")
    levels = split_names([rest])
    numbers: list[Any] | None = numbers_of(levels)
    return name, numbers or levels


def _bins(text: str) -> tuple[str, Any]:
    name, found, rest = text.rpartition("=")
    if text.isdecimal():
        return "", int(text)
    if text.lower() == "none":
        return "", False
    if found and rest.lower() == "none":
        return name, None
    try:
        edges = [float(edge) for edge in rest.split(",")] if found else []
    except ValueError:
        edges = []
    if not edges or (len(edges) == 1 and not edges[0].is_integer()):
        raise click.UsageError(f"--bins {text}: write NAME=5, NAME=0,18,99 or NAME=none.")
    return name, int(edges[0]) if len(edges) == 1 else edges


def _gather(made: type, argument: str, given: Sequence[Any], callback: Callback) -> Callback:
    """Add options to a command, which become one argument: an object of a dataclass.

    An option that the command has already, by a name that the dataclass has, is of both.
    """
    shared = {param.name for param in getattr(callback, "__click_params__", [])}
    keys = {field.name for field in fields(made)}

    @wraps(callback)
    def gathered(*args: Any, **values: Any) -> Any:
        mine = {key: values[key] for key in keys & values.keys()}
        others = {key: value for key, value in values.items() if key not in keys - shared}
        return callback(*args, **{argument: made(**mine)}, **others)

    found: Callback = gathered
    for option in reversed(given):
        found = option(found)
    return found


#: Options of a data file whose columns have no meaning yet; they become ``reader``.
of_data = partial(_gather, DataReader, "reader", [*_FILE, _WEIGHT, *_SURVEY, *_COLUMNS])

#: Options of a data file whose columns a model explains.
of_domain = partial(_gather, DataReader, "reader", [*_FILE, _WEIGHT])

#: The same options with survey weights, for comparing records with a model.
of_survey = partial(_gather, DataReader, "reader", [*_FILE, _WEIGHT, *_SURVEY])

#: Options of a data file whose rows are not records.
of_file = partial(_gather, DataReader, "reader", _FILE)


def _several(flag: str, metavar: str, text: str) -> Callback:
    return click.option(flag, multiple=True, metavar=metavar, help=text)


_MEANINGS = _several(
    "--missing",
    "MARK=MEANING",
    "What a mark in place of a number means: -=0, x=unknown, --=1..9; an empty text: ''=0.",
)
_TABLES = [
    click.option("--form", type=click.Choice(FORMS), help="The form of a text file or sheet."),
    click.option("--table", type=click.IntRange(min=1), help="Which table of a file, from 1."),
    click.option("--sheet", metavar="NAME|N", help="The sheet of a workbook."),
    _several("--skip", "N|A-B", "Lines to leave out: that many at the top, or from A to B."),
    click.option("--header-rows", type=click.IntRange(min=1), help="Rows of labels on top."),
    click.option("--label-columns", type=click.IntRange(min=1), help="Columns of labels."),
    click.option("--value", metavar="COLUMN", help="The column of the numbers."),
    _several("--where", "VARIABLE=LABEL", "A label to keep, of a variable that is left out then."),
    _several("--drop", "TEXT", "A column, by its header, or a label to leave out."),
    _several("--totals", "LABEL", "A label that is a total of others; none: no label is."),
    click.option("--kind", type=click.Choice(KINDS), help="What the numbers are."),
    _several("--per", "VARIABLE", "Percentages add up to 100 within each level of this variable."),
    _several("--axis", "NAME|OLD=NEW", "Names of the variables in order, or a new one."),
    click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark."),
    _several("--same", "A=B", "Variable or level A of one table is the same as B of the others."),
    _several(
        "--collapse",
        "VARIABLE:NEW=A,B",
        "Levels A and B of a variable become one; NEW=N: those whose sum is below N.",
    ),
    _several("--impossible", "V=A,W=B", "Nobody has level A of V and B of W: probability zero."),
    click.option(
        "--rounded",
        metavar="N",
        help="Counts were rounded to multiples of N at random; 'nearest N': to the nearest "
        "multiple.",
    ),
    click.option(
        "--noisy", is_flag=True, help="The tables come from a sample, or noise was added to them."
    ),
]


@dataclass(frozen=True)
class TableReader:
    """Options for reading published tables.

    Examples
    --------
    >>> TableReader(same=("Men=Male",), missing=("x=1..4",)).options()
    {'same': {'Men': 'Male'}, 'missing': {'x': '1..4'}}
    """

    form: str | None = None
    table: int | None = None
    sheet: str | None = None
    skip: Sequence[str] = ()
    header_rows: int | None = None
    label_columns: int | None = None
    value: str | None = None
    where: Sequence[str] = ()
    drop: Sequence[str] = ()
    totals: Sequence[str] = ()
    kind: str | None = None
    per: Sequence[str] = ()
    axis: Sequence[str] = ()
    decimal: str | None = None
    same: Sequence[str] = ()
    collapse: Sequence[str] = ()
    impossible: Sequence[str] = ()
    missing: Sequence[str] = ()
    rounded: str | None = None
    noisy: bool = False
    delimiter: str | None = None
    encoding: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the options as ``Marginals.read`` takes them."""
        given: dict[str, Any] = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) not in (None, (), False)
        }
        if self.delimiter == "\\t":
            given["delimiter"] = "\t"
        if len(self.skip) == 1 and self.skip[0].isdecimal():
            given["skip"] = int(self.skip[0])
        if names := given.pop("axis", ()):
            given["names"] = names
            if all("=" in text for text in names):
                given["names"] = dict(_pair("--axis", text, "OLD=NEW") for text in names)
        for key, form in (("same", "A=B"), ("missing", "MARK=MEANING")):
            if key in given:
                given[key] = dict(_pair(f"--{key}", text, form) for text in given[key])
        if self.where:
            pairs = [_pair("--where", text, "VARIABLE=LABEL") for text in self.where]
            given["where"] = {n: [b for a, b in pairs if a == n] for n, _ in pairs}
        if self.impossible:
            given["impossible"] = [
                dict(_pair("--impossible", part, "V=A,W=B") for part in text.split(","))
                for text in self.impossible
            ]
        if self.collapse:
            given["collapse"] = _collapse(self.collapse)
        return given

    def read(self, *paths: str) -> Marginals:
        """The tables of a folder, of some files, or of one that holds several."""
        return self.read_with_readings(*paths)[0]

    def read_with_readings(self, *paths: str) -> tuple[Marginals, tuple[Reading, ...]]:
        """The tables, and how each was understood; nothing of this for a written folder."""
        made, files = self.read_with_files(*paths)
        return made, files.readings

    def read_with_files(self, *paths: str) -> tuple[Marginals, TableFiles]:
        """The tables, and what was read from their files."""
        given: Any = paths[0] if len(paths) == 1 else list(paths)
        options = self.options()
        if find_folder(given) is not None:
            return Marginals.read(given), TableFiles(())
        files = read_files(given, **options)
        return of_files(files), files


def _pair(option: str, text: str, form: str) -> tuple[str, str]:
    name, found, rest = text.rpartition("=") if option == "--missing" else text.partition("=")
    if not found or not rest.strip():
        raise click.UsageError(f"{option} {text}: write {form}.")
    return name.strip(), rest.strip()


def _collapse(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    collapse: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, _, rest = text.partition(":")
        group, members = _pair("--collapse", rest, "VARIABLE:NEW=A,B")
        listed = [part.strip() for part in members.split(",")]
        below = numbers_of(listed) if len(listed) == 1 else None
        collapse.setdefault(name.strip(), {})[group] = below[0] if below else listed
    return collapse


def of_tables(callback: Callback) -> Callback:
    """Options of published tables, which become ``table_reader``; above options of data files.

    ``--missing``, ``--delimiter`` and ``--encoding`` are those of both, where a command reads
    records too.
    """
    there = {param.name for param in getattr(callback, "__click_params__", [])}
    options = [*_TABLES, *([] if "delimiter" in there else [_MEANINGS, *_TEXT])]
    return _gather(TableReader, "table_reader", options, callback)


def load_saved(path: str) -> SavedModel:
    """Read the contents of a model file or of stdin."""
    if path == "-":
        return read_open(BytesIO(read_stdin()), "standard input")
    return read_saved(path)


def load_with_notes(path: str) -> tuple[LowRankPMF, Mapping[str, Any]]:
    """Read a joint model and its notes, from a file or from stdin."""
    saved = load_saved(path)
    note_estimator(saved, path)
    return LowRankPMF.of_saved(saved), saved.notes


def load(path: str) -> LowRankPMF:
    """Read a joint model from a file or from stdin."""
    return load_with_notes(path)[0]


def load_predictor(path: str) -> tuple[LowRankPMF, LabelEnsemble | None, Mapping[str, Any]]:
    """Read a joint model, the models that predict targets if there are any, and notes."""
    saved = load_saved(path)
    note_estimator(saved, path)
    ensemble = saved.ensemble and LabelEnsemble.of_saved(saved.ensemble, saved.domain)
    return LowRankPMF.of_saved(saved), ensemble, saved.notes


ESTIMATORS = {
    "imputer": "an imputer, which `rejoint impute` uses",
    "recommender": "a recommender, which `rejoint recommend` uses",
}
"""What the file of an estimator holds beside a joint model."""


def note_estimator(saved: SavedModel, path: str) -> None:
    """Say that the joint model is used, where a file has an estimator beside it."""
    if saved.estimator is not None:
        what = ESTIMATORS.get(saved.estimator.kind, f"another model ({saved.estimator.kind})")
        whose = " of anybody's ratings" if saved.estimator.kind == "recommender" else ""
        remark(f"{path} has {what}; here its joint model{whose} is used.")


def source_name(data: str) -> str | None:
    """Return the name of a data file for the notes; None for stdin and queries.

    Examples
    --------
    >>> source_name("a.csv"), source_name("-"), source_name("duckdb:SELECT 1")
    ('a.csv', None, None)
    """
    return None if data == "-" or data.startswith("duckdb:") else data


def origin(notes: Mapping[str, Any]) -> str:
    """Describe what a model was fitted to; empty if its file does not say.

    Examples
    --------
    >>> origin({"records": 20.0, "source": "a.csv"}), origin({"source": "a.csv"})
    ('20 records of a.csv', 'a.csv')
    """
    parts = []
    if records := records_behind(notes):
        parts.append(plural(round(records), "record"))
    if notes.get("tables"):
        parts.append(plural(len(notes["tables"]), "table"))
    if notes.get("source"):
        parts.append(f"of {notes['source']}" if parts else str(notes["source"]))
    return " ".join(parts) if len(parts) < 3 else f"{parts[0]} in {parts[1]} {parts[2]}"
