"""Commands that are imported when they are asked for; errors and remarks in words."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from rejoint.messages import Message, Name, PythonOnly, Remark, Term

#: What the command line offers in place of names in Python.
_IN_PLACE_OF = {
    "bins": "--bins",
    "header": "--names",
    "identifiability.jacobian": "rejoint identify --local",
    "identifiability.plan": "rejoint identify --plan",
    "kinds": "--ordinal",
    "levels": "--levels",
    "LowRankPMF.save": "rejoint fit",
    "m.disagreements()": "rejoint fit-tables --json",
    "subsets": "--subset",
}


def in_options(text: str) -> str:
    """Return a message in the terms of the command line.

    Examples
    --------
    >>> in_options(Message("Say {bins}.", bins=Argument("bins", {"age": 5})))
    "Say --bins 'age=5'."
    >>> in_options(Message("or say {delimiter}.", delimiter=Argument("delimiter")))
    'or say --delimiter.'
    """
    return text.render(_option) if isinstance(text, Message) else str(text)


def _option(term: Term) -> str:
    if isinstance(term, PythonOnly):
        return ""
    if isinstance(term, Name):
        return _IN_PLACE_OF.get(term.text, term.text)
    option = _IN_PLACE_OF.get(term.name, f"--{term.name}")
    if isinstance(term.value, str):
        return f"{option} {term.value}"
    if isinstance(term.value, dict):
        ((name, value),) = term.value.items()
        shown = "0,10,20" if value == [...] else str(value).lower()
        return f"{option} '{name}={shown}'"
    return option


#: Exit codes beside 0 (done), 1 (failed) and 2 (not understood).
ENDED, FAR, INTERRUPTED = 3, 4, 130


class LazyGroup(click.Group):
    """A group whose commands are ``command`` of a module of their name, in sections.

    Examples
    --------
    >>> group = LazyGroup("rejoint", sections={"All": ["fit-tables"]})
    >>> group.get_command(click.Context(group), "fit-tables").name
    'fit-tables'
    """

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which they are shown."""
        return [name for names in self.sections.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"rejoint.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; the nearest name where there is none."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-"):
            known = self.list_commands(ctx)
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"Did you mean {near[0]!r}?" if near else "See rejoint --help."
                raise click.UsageError(f"There is no command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section."""
        for title, names in self.sections.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, c.get_short_help_str(80)) for name, c in commands if c is not None]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=12)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what goes wrong is said in a line or two."""
        with _remarks_on_stderr(), _errors_in_words():
            return super().invoke(ctx)


@contextmanager
def _remarks_on_stderr() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, Remark):
            text = message.args[0] if isinstance(message, Warning) else message
            click.echo(f"Remark: {in_options(text)}", err=True)

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
        click.echo("\nEnded by Ctrl-C: nothing is written.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise  # the reader of stdout has gone: click ends quietly
    except (ValueError, LookupError, OSError, ImportError, MemoryError) as error:
        if os.environ.get("REJOINT_TRACEBACK"):
            raise
        raise click.ClickException(_words(error)) from error


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"'{error.filename}': " if error.filename else ""
        return f"{place}{error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {error}".strip()
    return in_options(error.args[0] if error.args else type(error).__name__)
