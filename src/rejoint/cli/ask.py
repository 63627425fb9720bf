"""``rejoint ask``: questions to a model, in the query language."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click
import numpy as np

from rejoint.cli.group import echo, in_options
from rejoint.cli.options import Options, argument, declare, load, option
from rejoint.cli.output import echo_json, record_rows, to_plain, write_rows
from rejoint.language.query import Name
from rejoint.pmf.answer import Answer
from rejoint.pmf.answer import text as format_answer
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.files import read_stdin
from rejoint.records.records import Records

#: Rows of an answer that a terminal shows; a pipe gets all.
_ROWS = 40


@declare(
    "MODEL --output --spreadsheet --seed --json",
    argument("questions", "[QUESTION...]"),
    option("--bits", "Report entropy and information in bits instead of nats."),
    option(
        "--level SHARE",
        "Level of the credible intervals that models with posterior draws give (Bayes fits).",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        default=0.9,
    ),
)
def command(o: Options) -> None:
    """Answer questions: P(...), E(...), argmax ..., sample ..., H(...), MI(...).

    What is asked stands left of the bar, what is given right of it: P(a, b | c = x, d in {y, z},
    not e = w, age >= 40). Quote names and labels that are not plain words. Without a QUESTION, each
    line of stdin is one; on a terminal there is a prompt, which Ctrl-D ends. For a file of `fit-
    target`, the joint model answers; `predict` uses the models that predict its target. For a file
    of `fit`, P and E are the best of what the records say and what the model says, with both beside
    the answer: the file has tables of one and two variables, or the records (`fit --keep-records`).
    The model alone answers everything else. For a file of `fit-tables`, each answer states its
    basis: published, implied, identified, or open, with the range over all joints with these
    tables.

    Examples
    --------
      rejoint ask patients.rejoint "P(lung = yes | smoke = yes)"
      rejoint ask patients.rejoint "P(lung | smoke, xray = yes)" --json
      rejoint ask patients.rejoint "argmax bronc, xray | dysp = yes" "MI(smoke; lung)" --bits
      rejoint ask patients.rejoint "P(lung, smoke)" -o table.csv
      rejoint ask patients.rejoint "P(bronc | smoke)" --level 0.5
    """
    if not o.questions and o.model == "-":
        raise click.UsageError("The model comes from stdin: give the question as an argument.")
    pmf = load(o.model)
    is_prompt = not o.questions and sys.stdin is not None and sys.stdin.isatty()
    lines = o.questions
    if not lines and not is_prompt:
        lines = read_stdin().decode(errors="replace").splitlines()
    questions = [text for text in lines if text.strip()]
    if not questions and not is_prompt:
        raise click.UsageError(
            "There is no question: give one as an argument, or one per line on stdin."
        )
    if o.output and len(questions) != 1:
        raise click.UsageError("-o needs exactly one question.")
    rows = _ROWS if sys.stdout.isatty() else sys.maxsize
    plains: list[Any] = []
    is_wrong = False
    for text in _prompt(pmf) if is_prompt else questions:
        try:
            answer = pmf.ask(text, bits=o.bits, level=o.level, random_state=o.seed)
        except (ValueError, LookupError) as error:
            if len(questions) == 1:
                raise
            is_wrong = True
            words = in_options(error.args[0])
            plains.append({"query": text, "error": words})
            echo(f"Error: {words}", err=True)
            continue
        if o.output:
            _write(answer, o.output)
        elif not o.json:
            echo(("\n" if plains and not is_prompt else "") + format_answer(answer, rows))
        plains.append(answer.to_json() if o.json else None)
    if o.json:
        echo_json(plains[0] if len(plains) == 1 else plains)
    if is_wrong and not is_prompt:
        raise click.exceptions.Exit(1)


def _prompt(pmf: LowRankPMF) -> Iterator[str]:
    """Yield questions that are typed, with history, and completion of variables and levels."""
    with suppress(ImportError):  # there is none on Windows
        import readline

        words = [*pmf.domain.names, *(str(level) for v in pmf.domain for level in v.levels)]
        words = [str(Name(word)) for word in dict.fromkeys(words)]
        readline.set_completer(
            lambda start, k: dict(enumerate(w for w in words if w.startswith(start))).get(k)
        )
        readline.set_completer_delims(" ()|,;={}")
        readline.parse_and_bind("tab: complete")
    with suppress(EOFError):
        while True:
            if text := input("? ").strip():
                yield text


def _write(answer: Answer, output: str) -> None:
    """The rows of a table (labels, a number, perhaps its bounds) or of sampled records."""
    value = answer.value
    if isinstance(value, Records):
        write_rows(output, value.names, record_rows(value))
        return
    if not isinstance(value, np.ndarray):
        raise ValueError(
            f"The answer to {answer.query} is not a table: leave out -o, or use --json."
        )
    tables: dict[str, Any] = {answer.column: value}
    limits: Any = answer.bounds if answer.interval is None else answer.interval
    if limits is not None:
        tables |= {"low": limits.low, "high": limits.high}
    if answer.counted is not None:
        tables |= {name: getattr(answer, name) for name in ("counted", "records", "model")}
    cells = [np.broadcast_to(np.asarray(table), value.shape) for table in tables.values()]
    rows = (
        [to_plain(axis.levels[i]) for axis, i in zip(answer.axes, at, strict=True)]
        + [float(table[at]) for table in cells]
        for at in np.ndindex(value.shape)
    )
    write_rows(output, [*(axis.name for axis in answer.axes), *tables], rows)
