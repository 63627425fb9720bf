"""Options, each declared once; commands name them; and what is read by them."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from inspect import cleandoc
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rejoint.domain.domain import Domain
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.io.fit_notes import records_behind
from rejoint.io.model_file import SavedModel, read_open, read_saved
from rejoint.marginals.folder import find_folder
from rejoint.marginals.marginals import Marginals, of_files
from rejoint.marginals.read.table_files import TableFiles, read_files
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.delimited import find_dialect, numbers_of, read_rows
from rejoint.records.files import Source, read_stdin
from rejoint.records.formats import BUILT_IN, READERS
from rejoint.records.frames import Frame
from rejoint.records.read import MISSING, read, read_chunks, read_frame, scan
from rejoint.records.records import Records
from rejoint.records.scan import Scan
from rejoint.records.survey_design import WeightArguments
from rejoint.text import cite, plural

#: Types of what options take; another text in capitals is only shown.
_TYPES: dict[str, Any] = {
    "N": click.IntRange(min=1),
    "SECONDS": click.FloatRange(min=0.0, min_open=True),
    "SHARE": click.FloatRange(min=0.0),
}


def option(flags: str, text: str = "", *, name: str = "", **more: Any) -> click.Option:
    """Declare an option by its flags and what it takes, as ``--rank N`` or ``--by like|score``."""
    names, takes = [name] if name else [], None
    for word in flags.split():
        if word.startswith("-"):
            names.append(word)
        else:
            takes = word
    if takes is None:
        more.setdefault("is_flag", True)
    elif takes.islower():
        more.setdefault("type", click.Choice(takes.split("|")))
    else:
        more = {"metavar": takes, "type": _TYPES.get(takes), **more}
    more.setdefault("shell_complete", _completion(takes or ""))
    default = more.get("default")
    shown = default is not None and not isinstance(default, bool)
    return click.Option(names, help=text or None, show_default=shown, **more)


several = partial(option, multiple=True)


def argument(name: str, metavar: str, **more: Any) -> click.Argument:
    """Declare an argument as shown: ``[MODEL]`` may be left out, ``FILE...`` are several."""
    many = metavar.rstrip("]").endswith("...")
    more = {"required": not metavar.endswith("]"), "nargs": -1 if many else 1, **more}
    return click.Argument([name], metavar=metavar, shell_complete=_completion(metavar), **more)


def _completion(takes: str) -> Callable[..., list[CompletionItem]] | None:
    """Return what completes a value in the shell: files, or variables and levels."""
    if re.search("FILE|DATA|MODEL|OTHER|DIR", takes):
        return lambda ctx, param, start: [CompletionItem(start, type="file")]
    return _complete_names if re.search(r"A,B|NAME,|COLUMN|VARIABLE|A=", takes) else None


def _complete_names(ctx: click.Context, param: click.Parameter, start: str) -> list[CompletionItem]:
    """Complete the last name, or the last level behind ``name=``, by the model or the data."""
    # While the value of an option is typed, click leaves arguments among the rest.
    given = [*map(ctx.params.get, ("model", "data", "source")), *ctx.args]
    path = next((path for path in given if isinstance(path, str)), "")
    before, name, last = re.fullmatch(r"((?:([^=]*)=)?(?:.*,)?)(.*)", start, re.DOTALL).groups()  # type: ignore[union-attr]
    with suppress(ValueError, OSError, StopIteration):
        words: Sequence[object]
        try:
            domain = read_saved(path).domain
            words = domain.names if name is None else domain[name].levels
        except (ValueError, KeyError):
            source = Source(path)
            words = next(read_rows(source, find_dialect(source)))[1] if name is None else ()
        return [CompletionItem(f"{before}{x}") for x in words if str(x).startswith(last)]
    return []


FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl")


def choose_format() -> Any:
    """Return the names that ``--format`` takes, with those that were added by now."""
    return click.Choice([*FORMATS, *sorted(READERS.keys() - BUILT_IN)])


#: Options by the section of a command's help in which they are; those of "" have no section.
SECTIONS: dict[str, list[click.Option]] = {
    "": [
        option("-o --output FILE", "Where to write; the name sets the format."),
        option("--rank N", "Number of classes; chosen automatically by default."),
        option(
            "--budget SECONDS",
            "Approximate time limit of the search for the number of classes; 20 by default.",
        ),
        option(
            "--max-classes N",
            "Largest number of classes of the model that answers; it sets the cost of questions, "
            "files and pages.",
        ),
        option(
            "--solver auto|ml|map|bayes",
            "Maximum likelihood (ml), with a prior (map), or averaged over the posterior (bayes).",
            default="auto",
        ),
        option(
            "--smooth/--no-smooth",
            "Whether neighboring levels of ordinal and binned columns inform each other; on by "
            "default unless --solver is ml.",
            default=None,
        ),
        option(
            "--agreement/--no-agreement",
            "Whether answers are moved towards tables of two columns that the records contradict.",
            default=True,
        ),
        option(
            "--draws/--no-draws",
            "Whether to store posterior draws, for credible intervals, in the file (some kB to 8 "
            "MB).",
            default=True,
        ),
        several(
            "--blocks A,B,...",
            "Columns that are tabulated jointly within classes, as they say nearly the same (an "
            "amount and its bracket); once for each block. They are found by default.",
            metavar="auto|A,B,...|none",
        ),
        several("--subset A,B,...", "A table of these variables."),
        option("--within SHARE", "Exit with code 4 if a table is missed by more than this share."),
        option("--numbers", "Write representative numbers in place of bins."),
        option("--data DATA", "Records to show, count or compare with the model."),
        option("--tables DIR", "Tables to compare the model with."),
        option("--plot FILE", "Plot to this file: .svg, .png, .pdf."),
        option(
            "--spreadsheet",
            "In CSV and TSV, put ' before text that a spreadsheet would run as a formula.",
        ),
        option("--seed N", "Random seed.", type=click.IntRange(min=0), default=0),
        option("--json", "Write JSON instead of text."),
    ],
    "Data file": [
        several(
            "--missing TEXT",
            "A text that marks an empty cell, in addition to the usual ones (nothing, ?, NA, NaN, "
            "null, ...). Can be given more than once.",
        ),
        option("--only-missing", "Use only --missing, not the usual texts."),
        option("--delimiter CHAR", "Delimiter between cells; guessed by default."),
        option("--encoding NAME", "Encoding of the text; guessed by default."),
        option(  # no click.Choice: formats are added later
            "--format FORMAT",
            "File format, if the file name does not show it.",
            metavar=f"[{'|'.join(FORMATS)}]",
            callback=lambda ctx, param, value: value and choose_format().convert(value, param, ctx),
            shell_complete=lambda *context: choose_format().shell_complete(*context),
        ),
        option("--names A,B,...", "Names of the columns of a file without a header."),
    ],
    "Weights": [
        option("--weight COLUMN", "Column that holds how many times each record counts."),
    ],
    "Survey design": [
        option(
            "--survey-weight COLUMN",
            "Column of survey weights (how many people each record stands for, at any scale); "
            "intervals allow for the design effect.",
        ),
        option("--strata COLUMN", "Column that holds the stratum of each record."),
        option(
            "--clusters COLUMN", "Column that holds the cluster (sampling unit) of each record."
        ),
    ],
    "Columns": [
        several("--columns A,B,...", "Use only these columns."),
        several("--without A,B,...", "Use all columns but these."),
        several("--ordinal A,B,...", "Columns whose levels have an order."),
        several(
            "--nominal A,B,...",
            "Columns whose levels have no order; each number or text is a level.",
        ),
        several("--year A,B,...", "Columns of dates of which to use the year."),
        several("--month A,B,...", "Columns of dates of which to use the month (1 to 12)."),
        several("--levels A=X,Y,...", "Levels of a column, in order."),
        several(
            "--not-applicable A,B,...",
            "Columns that do not apply to some records: cells that are empty because of another "
            "column are a level of their own. They are found by default.",
            metavar="auto|A,B,...|none",
        ),
        several(
            "--missing-level A,B,...", "Columns whose empty cells are an answer in themselves."
        ),
        several(
            "--bins [A=]N|EDGES|none",
            "Cut numbers into N quantile bins (without A=, in every column), at edges "
            "(A=0,18,65,99), or not at all. Columns of many distinct numbers are binned by "
            "default.",
        ),
    ],
    "Published tables": [
        option("--form long|cross", "The form of a text file or sheet."),
        option("--table N", "Which table of a file, from 1."),
        option("--sheet NAME|N", "The sheet of a workbook."),
        several("--skip N|A-B", "Lines to leave out: that many at the top, or from A to B."),
        option("--header-rows N", "Rows of labels on top."),
        option("--label-columns N", "Columns of labels."),
        option("--value COLUMN", "The column of the numbers."),
        several("--where VARIABLE=LABEL", "A label to keep, of a variable that is left out then."),
        several("--drop TEXT", "A column, by its header, or a label to leave out."),
        several("--totals LABEL", "A label that is a total of others; none: no label is."),
        option("--kind counts|shares|percent", "What the numbers are."),
        several("--per VARIABLE", "Percentages add up to 100 within each level of this variable."),
        several("--axis NAME|OLD=NEW", "Names of the variables in order, or a new one."),
        option("--decimal .|,", "Decimal mark.", type=click.Choice([".", ","])),
        several("--same A=B", "Variable or level A of one table is the same as B of the others."),
        several(
            "--collapse VARIABLE:NEW=A,B",
            "Levels A and B of a variable become one; NEW=N: those whose sum is below N.",
        ),
        several("--impossible V=A,W=B", "Nobody has level A of V and B of W: probability zero."),
        option(
            "--rounded N",
            "Counts were rounded to multiples of N at random; 'nearest N': to the nearest "
            "multiple.",
            type=str,
        ),
        option("--noisy", "The tables come from a sample, or noise was added to them."),
        several(
            "--missing MARK=MEANING",
            "What a mark in place of a number means: -=0, x=unknown, --=1..9; an empty text: ''=0.",
        ),
        option("--delimiter CHAR", "Delimiter between cells; guessed by default."),
        option("--encoding NAME", "Encoding of the text; guessed by default."),
    ],
}

#: Sections of what a command reads: records over columns of their own, records over a domain,
#: the same with survey weights, rows that are not records, published tables.
READS = {
    "+data": ("Data file", "Weights", "Survey design", "Columns"),
    "+survey": ("Data file", "Weights", "Survey design"),
    "+domain": ("Data file", "Weights"),
    "+file": ("Data file",),
    "+tables": ("Published tables",),
}


class Command(click.Command):
    """A command whose options are shown by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its own and the common options, then those of what it reads."""
        left = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        listed = [[param for param in SECTIONS[title] if param in left] for title in SECTIONS]
        for title, params in zip(SECTIONS, listed, strict=True):
            if not title:
                params = [param for param in left if all(param not in p for p in listed[1:])]
            rows = [row for param in params if (row := param.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title or "Options"):
                    formatter.write_dl(rows)


Run = Callable[["Options"], None]


def declare(usage: str, *own: click.Parameter) -> Callable[[Run], Command]:
    """Make a command of a function of its options; ``usage`` names arguments and shared options.

    Help and examples are its docstring. The command's own arguments and options stand before the
    shared ones, and in place of those of the same flag.
    """
    words, shared = usage.split(), {o.opts[-1]: o for o in SECTIONS[""]}
    arguments = [argument(word.strip("[].").lower(), word) for word in words if word[0] not in "-+"]
    common = [shared[word] for word in words if word.startswith("-")]
    read = [o for word in words if word[0] == "+" for title in READS[word] for o in SECTIONS[title]]
    params: dict[str | None, click.Parameter] = {}
    for param in (*arguments, *own, *common, *read):
        params.setdefault(param.name, param)

    def made(run: Run) -> Command:
        text, _, examples = cleandoc(run.__doc__ or "").partition("\n\nExamples\n--------\n")
        return Command(
            run.__module__.rpartition(".")[2].replace("_", "-"),
            params=list(params.values()),
            callback=lambda **values: run(Options(**values)),
            help=text,
            epilog=f"\b\nExamples:\n{examples}",
        )

    return made


class Options(SimpleNamespace):
    """The values of a command's options by name, and what they make ``rejoint.read`` take."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an option, or the default if the command has no such option."""
        return vars(self).get(name, default)

    def asked(self, *names: str) -> dict[str, Any]:
        """Return options of a fit, as Python names them; those not given as the defaults there."""
        values = {name: getattr(self, name) for name in names}
        for name in {"rank", "smooth"} & values.keys():
            values[name] = "auto" if values[name] is None else values[name]
        return {**values, "random_state": self.seed}

    def read_records(self, path: str, domain: Domain | None = None) -> Records:
        """Return all records of a file, over a domain or the one that its columns define."""
        rest = self.column_options() if domain is None else {"domain": domain}
        return read(path, **self.weights().given, **self.file(), **rest)

    def read_frame(self, path: str) -> Frame:
        """Return the columns of a file before encoding, with those of its weights."""
        return read_frame(path, self.weights(), **self.file())

    def read_chunks(self, path: str) -> Iterator[Records]:
        """Yield the records of a file in parts."""
        return read_chunks(path, **self.weights().given, **self.file(), **self.column_options())

    def scan(self, path: str) -> Scan:
        """Return the records of a file as a scan, for any number of passes."""
        return scan(path, **self.weights().given, **self.file(), **self.column_options())

    def weights(self) -> WeightArguments:
        """Return the columns that hold weights."""
        return WeightArguments(*map(self.get, ("weight", "survey_weight", "strata", "clusters")))

    def file(self) -> dict[str, Any]:
        """Return options of the file."""
        columns = self.get("columns", ())
        if self.only_missing and not self.missing:
            raise click.UsageError("--only-missing needs --missing: which texts are empty cells?")
        if columns and not split_names(columns):
            raise click.UsageError("--columns names no column: leave it out for all of them.")
        return {
            "missing": (*self.missing, *(() if self.only_missing else MISSING)),
            "delimiter": "\t" if self.delimiter == "\\t" else self.delimiter,
            "encoding": self.encoding,
            "format": self.format,
            "header": True if self.names is None else split_names([self.names]),
            "columns": split_names(columns) or None,
            "without": split_names(self.get("without", ())),
        }

    def column_options(self) -> dict[str, Any]:
        """Return options of columns."""
        kinds: dict[str, str] = {}
        for kind in ("ordinal", "nominal", "year", "month"):
            for name in split_names(self.get(kind, ())):
                if name in kinds:
                    both = f"--{kinds[name]} and --{kind}"
                    raise click.UsageError(f"{cite(name)} is named by both {both}.")
                kinds[name] = kind
        bins: Any = dict(map(_bins, self.get("bins", ())))
        if "" in bins and len(bins) > 1:
            text = "--bins N is for all columns: give it alone, or write NAME=N for each."
            raise click.UsageError(text)
        return {
            "kinds": kinds,
            "levels": dict(map(_levels, self.get("levels", ()))),
            "bins": bins.get("", bins),
            "not_applicable": _names_or_word(self.get("not_applicable", ()), split_names),
            "missing_level": split_names(self.get("missing_level", ())),
        }

    def block_option(self) -> Any:
        """Return the blocks, as :func:`rejoint.estimate` takes them."""
        return _names_or_word(self.blocks, lambda texts: [split_names([text]) for text in texts])

    def subsets(self) -> list[tuple[str, ...]]:
        """Return the variables of each table of ``--subset``."""
        return [tuple(split_names([text])) for text in self.subset]

    def table_options(self) -> dict[str, Any]:
        """Return options of published tables, as ``Marginals.read`` takes them."""
        names = [o.name or "" for o in SECTIONS["Published tables"]]
        given = {key: self.get(key) for key in names if self.get(key) not in (None, (), False)}
        if given.get("delimiter") == "\\t":
            given["delimiter"] = "\t"
        if len(skip := given.get("skip", ())) == 1 and skip[0].isdecimal():
            given["skip"] = int(skip[0])
        if axis := given.pop("axis", ()):
            renamed = all("=" in text for text in axis)
            given["names"] = dict(_pair("--axis", t, "OLD=NEW") for t in axis) if renamed else axis
        for key, form in (("same", "A=B"), ("missing", "MARK=MEANING")):
            if key in given:
                given[key] = dict(_pair(f"--{key}", text, form) for text in given[key])
        if "where" in given:
            pairs = [_pair("--where", text, "VARIABLE=LABEL") for text in given["where"]]
            given["where"] = {n: [b for a, b in pairs if a == n] for n, _ in pairs}
        if "impossible" in given:
            given["impossible"] = [
                dict(_pair("--impossible", part, "V=A,W=B") for part in text.split(","))
                for text in given["impossible"]
            ]
        if "collapse" in given:
            given["collapse"] = _collapse(given["collapse"])
        return given

    def read_tables(self, *paths: str) -> tuple[Marginals, TableFiles]:
        """Return the tables of some files, and how each was understood; none of a folder's own."""
        given: Any = paths[0] if len(paths) == 1 else list(paths)
        options = self.table_options()
        if find_folder(given) is not None:
            return Marginals.read(given), TableFiles(())
        files = read_files(given, **options)
        return of_files(files), files


def _names_or_word(texts: Sequence[str], read: Callable[[Sequence[str]], Any]) -> Any:
    """Return "auto" or False for the words auto and none, else the names."""
    words: dict[str, Any] = {"": "auto", "auto": "auto", "none": False}
    word = ",".join(texts).lower()
    return words[word] if word in words else read(texts)


def split_names(texts: Iterable[str]) -> list[str]:
    """Names between commas; quotes keep a comma."""
    return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]


def split_numbers(given: str, text: str, form: str, kind: Any, count: int = 0) -> list[Any]:
    """Numbers between commas, that many if a count is given."""
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or count not in (0, len(numbers)):
        raise click.UsageError(f"{given}: write {form}.")
    return numbers


def _levels(text: str) -> tuple[str, list[Any]]:
    name, equals, rest = text.partition("=")
    if not equals or not rest:
        raise click.UsageError(f"--levels {text}: write NAME=FIRST,SECOND,...")
    levels = split_names([rest])
    numbers: list[Any] | None = numbers_of(levels)
    return name, numbers or levels


def _bins(text: str) -> tuple[str, Any]:
    name, equals, rest = text.rpartition("=")
    if text.isdecimal():
        return "", int(text)
    if rest.lower() == "none":
        return name, None if equals else False
    form = "NAME=5, NAME=0,18,99 or NAME=none"
    edges = split_numbers(f"--bins {text}", rest if equals else "", form, float)
    if len(edges) == 1 and not edges[0].is_integer():
        raise click.UsageError(f"--bins {text}: write {form}.")
    return name, int(edges[0]) if len(edges) == 1 else edges


def _pair(flag: str, text: str, form: str) -> tuple[str, str]:
    name, equals, rest = text.rpartition("=") if flag == "--missing" else text.partition("=")
    if not equals or not rest.strip():
        raise click.UsageError(f"{flag} {text}: write {form}.")
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


def load_saved(path: str) -> SavedModel:
    """Read the contents of a model file or of stdin."""
    if path == "-":
        return read_open(BytesIO(read_stdin()), "standard input")
    return read_saved(path)


ESTIMATORS = {
    "imputer": "an imputer, which `rejoint impute` uses; here its joint model",
    "recommender": "a recommender, which `rejoint recommend` uses; here its joint model of "
    "anybody's ratings",
}
"""What the file of an estimator holds, and which joint model it has."""


def load_predictor(path: str) -> tuple[LowRankPMF, LabelEnsemble | None, Mapping[str, Any]]:
    """Read a joint model, the models that predict targets if there are any, and notes."""
    saved = load_saved(path)
    if saved.estimator is not None:
        kind = saved.estimator.kind
        what = ESTIMATORS.get(kind, f"another model ({kind}); here its joint model")
        remark(f"{path} has {what} is used.")
    ensemble = saved.ensemble and LabelEnsemble.of_saved(saved.ensemble, saved.domain)
    return LowRankPMF.of_saved(saved), ensemble, saved.notes


def load(path: str) -> LowRankPMF:
    """Read a joint model from a file or from stdin."""
    return load_predictor(path)[0]


def source_name(data: str) -> str | None:
    """Return the name of a data file for the notes; None for stdin and queries."""
    return None if data == "-" or data.startswith("duckdb:") else data


def origin(notes: Mapping[str, Any]) -> str:
    """Describe what a model was fitted to; empty if its file does not say."""
    records, tables = records_behind(notes), notes.get("tables")
    parts = [plural(round(records), "record")] if records else []
    parts += [plural(len(tables), "table")] if tables else []
    behind = " in ".join(parts)
    if source := notes.get("source"):
        return f"{behind} of {source}" if behind else str(source)
    return behind
