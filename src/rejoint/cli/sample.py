"""``rejoint sample``: records drawn from a model."""

from typing import Any

import click

from rejoint.cli import options
from rejoint.cli.options import load
from rejoint.cli.output import record_rows, write_rows
from rejoint.domain.domain import Domain
from rejoint.language.bind import bind
from rejoint.text import cite

EXAMPLES = """\b
Examples:
  rejoint sample patients.rejoint -n 5 --seed 1
  rejoint sample patients.rejoint -n 1000 --given "smoke = yes, dysp in {yes, no}" -o smokers.csv"""


@click.command("sample", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option(
    "-n", "count", type=click.IntRange(min=0), default=10, show_default=True, help="Records."
)
@click.option(
    "--given", metavar="CONDITIONS", help='Conditions that all of them meet: "a = x, b >= 3".'
)
@click.option("--numbers", is_flag=True, help="Write representative numbers in place of bins.")
@options.rows
@options.seed
@options.as_json
def command(
    model: str,
    count: int,
    given: str | None,
    numbers: bool,
    output: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Draw records from a model; the same seed gives the same ones."""
    pmf = load(model)
    records = pmf.sample(count, evidence(given, pmf.domain), random_state=seed)
    write_rows(output, records.names, record_rows(records, numbers), as_json=as_json)


def evidence(text: str | None, domain: Domain) -> dict[str, Any]:
    """Conditions of the query language as likelihoods by name."""
    if not text:
        return {}
    bound = bind(f"sample 1 | {text}", domain)
    if bound.by:
        name = domain.names[bound.by[0]]
        raise ValueError(f"--given {text}: {cite(name)} needs a value, such as {name} = ...")
    return {domain.names[n]: likelihood for n, likelihood in bound.evidence.items()}
