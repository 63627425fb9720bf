"""Commands that are imported when they run; errors, remarks and Ctrl-C."""

import errno
import io
import os
import re
import sys
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from shlex import quote
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from rejoint.messages import FitInterrupted, Remark
from rejoint.text import cite, clean_text

#: What the command line offers in place of arguments whose option has another name.
_OPTIONS = {
    "header": "--names",
    "kinds": "--ordinal, --nominal, --year, --month",
    "n_init": "--starts",
    "names": "--axis",
    "sample_weight": "--weight",
    "subsets": "--subset",
}

#: Arguments that are options of the same name.
_SAME = (
    "agreement|bins|blocks|clusters|collapse|criterion|decimal|delimiter|drop|encoding|form|format|"
    "header_rows|impossible|kind|label_columns|levels|max_classes|missing|missing_level|noisy|"
    "not_applicable|older|order|per|rank|rounded|same|sample|sheet|skip|solver|strata|"
    "survey_weight|table|totals|value|weighting|where"
)

#: What it offers in place of functions, and of advice that only Python can follow.
_ADVICE = {
    "identifiability.jacobian": "rejoint identify --local",
    "identifiability.plan": "rejoint identify --plan",
    "LowRankPMF.save": "rejoint fit",
    "m.disagreements()": "rejoint fit-tables --json",
    ", and transform drops it (keep_empty_features=False)": "",
    ", and transform drops them (keep_empty_features=False)": "",
    ", and give its pmf to rejoint.estimate as start": "",
    "rejoint.estimate": "rejoint fit",
    "; give a domain to encode an empty table": "",
    "; pmf.reduce()": "",
    " (certificate.other)": "",
    " (pmf.gaps)": "",
}

#: Arguments that not every command with a fit in it has as an option: others name ``rejoint fit``.
OF_FIT = ("agreement", "max_classes", "n_init", "solver")

_NAME = rf"\b(?:{'|'.join(_OPTIONS)}|{_SAME})\b"
_VALUE = r"""'[^']*'|"[^"]*"|\{[^{}]*\}|\[[^\[\]]*\]|True|False|None|\d[\d_]*(?!\.\d)"""
#: An argument with ``=``; names of arguments with which a message begins.
_ARGUMENT = re.compile(rf"(?<![\w'\"{{-])({_NAME})=(?:({_VALUE})|(?![\w'\"]))")
_FIRST = re.compile(rf"(?:(?:{_NAME})(?:, | or )?)+(?=:| (?:is|has|must|are) )")


def in_options(text: str) -> str:
    """Return a message in the terms of the command line: ``rank=3`` becomes ``--rank 3``."""
    for advice, option in _ADVICE.items():
        text = text.replace(advice, option)
    first = _FIRST.match(text)
    if first is not None:
        names = re.sub(_NAME, lambda name: _option(name[0], ...), first[0])
        text = names + text[first.end() :]
    return _ARGUMENT.sub(
        lambda found: _option(found[1], ... if found[2] is None else literal_eval(found[2])), text
    )


def _option(name: str, value: Any) -> str:
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    context = click.get_current_context(silent=True)
    if context is not None and name in OF_FIT and not isinstance(context.command, click.Group):
        has_option = any(option in parameter.opts for parameter in context.command.params)
        option = option if has_option else f"rejoint fit {option}"
    if name == "not_applicable" and value is False:
        return f"{option} none"
    if value is False:
        return option.replace("--", "--no-", 1)
    if isinstance(value, str) or type(value) is int:
        return f"{option} {quote(str(value))}"
    if isinstance(value, dict):
        ((key, use),) = value.items()
        if name == "kinds":
            return f"--{use} '{key}'"
        example = "A,B,C" if name == "levels" else "0,10,20"
        shown = example if use == [...] else str(use)
        return f"{option} '{key}={shown if isinstance(use, str | list) else shown.lower()}'"
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return " ".join(f"{option} '{text}'" for text in value) or option
    return option


def echo(text: object = "", *, err: bool = False) -> None:
    r"""Print text for people; labels and names of files in it may have any characters.

    Examples
    --------
    >>> echo("a\x1b[31mb")
    a�[31mb
    """
    click.echo(clean_text(str(text)), err=err)


T = TypeVar("T")

#: Exit codes beside 0 (done), 1 (failed) and 2 (not understood).
EXIT_ENDED, EXIT_FAR, EXIT_INTERRUPTED = 3, 4, 130

_ENDED_BY_CTRL_C = "rejoint.ended_by_ctrl_c"  # in the meta of click's context


class LazyGroup(click.Group):
    """A group whose commands are ``command`` of a module of their name, in sections.

    Parameters
    ----------
    *args, **more
        As ``click.Group`` takes them.
    sections : mapping
        For each title the commands and their short help.

    Examples
    --------
    >>> group = LazyGroup("rejoint", sections={"All": {"fit-tables": "Learn a model."}})
    >>> group.get_command(click.Context(group), "fit-tables").name
    'fit-tables'
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.sections = sections
        self.helps = {name: text for part in sections.values() for name, text in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order in which they are shown."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a name; None if there is none."""
        if cmd_name not in self.helps:
            return None
        module = import_module(f"rejoint.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant; an error names the nearest where there is none."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and name not in self.helps:
            near = get_close_matches(name, self.helps, 1)
            hint = f"Did you mean {cite(near[0])}?" if near else "See rejoint --help."
            raise click.UsageError(f"There is no command {cite(name)}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section, without importing them."""
        for title, helps in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(list(helps.items()), col_max=12)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing it."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, text in self.helps.items()
            if name.startswith(incomplete)
        ]

    def main(self, *args: Any, **more: Any) -> Any:
        """Run as a program, whichever streams are open."""
        _replace_closed_streams()
        return super().main(*args, **more)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Read the options of the group."""
        with _errors_in_words():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; report errors in one or two lines."""
        with _remarks_on_stderr(), _errors_in_words():
            value = super().invoke(ctx)
            if ctx.meta.get(_ENDED_BY_CTRL_C):
                raise click.exceptions.Exit(EXIT_ENDED)
            return value


def keep_best(fit: Callable[..., T], *args: Any, **options: Any) -> T:
    """Run a fit. Ctrl-C ends it with the best so far; the command goes on and exits with 3."""
    try:
        return fit(*args, **options)
    except FitInterrupted as interrupted:
        click.get_current_context().meta[_ENDED_BY_CTRL_C] = True
        found: T = interrupted.result
        return found


def is_ended() -> bool:
    """Whether Ctrl-C has ended a fit of this command."""
    return _ENDED_BY_CTRL_C in click.get_current_context().meta


@contextmanager
def until_ctrl_c() -> Iterator[None]:
    """Serve until Ctrl-C, which is not an error here."""
    try:
        yield
    except KeyboardInterrupt:
        echo("Ended.", err=True)


@contextmanager
def _remarks_on_stderr() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, Remark):
            text = message.args[0] if isinstance(message, Warning) else message
            echo(f"Remark: {in_options(text)}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", Remark)
        warnings.showwarning = show
        yield


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Turn what users can cause into one message; bugs keep their traceback."""
    try:
        yield
    except KeyboardInterrupt:
        echo("\nEnded by Ctrl-C: nothing is written.", err=True)
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    except click.ClickException as error:
        error.message = clean_text(error.message)  # type: ignore[misc]
        raise
    except BrokenPipeError:
        raise  # the reader of stdout has gone: click ends quietly
    except (ValueError, LookupError, OSError, ImportError, MemoryError) as error:
        if os.environ.get("REJOINT_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            # What is left in the buffer of standard output would fail again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise click.ClickException(clean_text(_words(error))) from error


class _ClosedStream(io.RawIOBase):
    """What stands for a standard output that was closed: writing to it is an error."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise OSError(errno.EBADF, "It is closed", "standard output")


def _replace_closed_streams() -> None:
    """Open streams that are closed; else the next file would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (open until the end)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_ClosedStream(), "utf-8", write_through=True)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"'{error.filename}': " if error.filename else ""
        return f"{place}{error.strerror}."
    if isinstance(error, MemoryError):
        told = in_options(error.args[0]) if error.args else ""
        return f"There is not enough memory. {told}".strip()
    if isinstance(error, UnicodeError):  # whose first argument is the encoding
        return f"Text cannot be read or written: {error}."
    return in_options(error.args[0] if error.args else type(error).__name__)
