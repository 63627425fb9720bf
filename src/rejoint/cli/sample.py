"""``rejoint sample``: records drawn from a model."""

from typing import Any

import click

from rejoint.cli.options import Options, declare, load, option
from rejoint.cli.output import record_rows, write_rows
from rejoint.domain.domain import Domain
from rejoint.language.bind import bind
from rejoint.text import cite


@declare(
    "MODEL --numbers --output --spreadsheet --seed --json",
    option("-n N", "Records.", type=click.IntRange(min=0), default=10),
    option("--given CONDITIONS", 'Conditions that all of them meet: "a = x, b >= 3".'),
)
def command(o: Options) -> None:
    """Draw records from a model; the same seed gives the same ones.

    Examples
    --------
      rejoint sample patients.rejoint -n 5 --seed 1
      rejoint sample patients.rejoint -n 99 --given "smoke = yes, dysp in {yes, no}" -o smokers.csv
    """
    pmf = load(o.model)
    records = pmf.sample(o.n, evidence(o.given, pmf.domain), random_state=o.seed)
    write_rows(o.output, records.names, record_rows(records, o.numbers), as_json=o.json)


def evidence(text: str | None, domain: Domain) -> dict[str, Any]:
    """Conditions of the query language as likelihoods by name."""
    if not text:
        return {}
    bound = bind(f"sample 1 | {text}", domain)
    if bound.by:
        name = domain.names[bound.by[0]]
        raise ValueError(f"--given {text}: {cite(name)} needs a value, such as {name} = ...")
    return {domain.names[n]: likelihood for n, likelihood in bound.evidence.items()}
