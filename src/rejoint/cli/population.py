"""``rejoint population``: synthetic records that meet given tables."""

import click

from rejoint.cli import options
from rejoint.cli.group import echo, keep_best
from rejoint.cli.options import TableReader, load
from rejoint.cli.output import record_rows, write_rows
from rejoint.domain.domain import Domain
from rejoint.factorization.factorize import factorize
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.population.synthesize import synthesize

EXAMPLES = """\b
Examples:
  rejoint population model.rejoint -n 400 --tables pairs -o people.csv
  rejoint population model.rejoint -n 100 --seed 3
  rejoint population -n 400 --tables pairs -o people.csv"""


@click.command("population", epilog=EXAMPLES)
@click.argument("model", metavar="[MODEL]", required=False)
@click.option("-n", "count", type=click.IntRange(min=1), required=True, help="Records.")
@click.option("--tables", metavar="DIR|FILE", help="Tables to meet in whole numbers.")
@click.option("--numbers", is_flag=True, help="Write representative numbers in place of bins.")
@options.rows
@options.seed
@options.as_json
@options.of_tables
def command(
    model: str | None,
    count: int,
    tables: str | None,
    numbers: bool,
    output: str | None,
    seed: int,
    as_json: bool,
    table_reader: TableReader,
) -> None:
    """Make a synthetic population: records of the model that meet the tables.

    The tables are scaled to -n records and rounded so that they still add up; how many records
    would have to change cell to meet them all is reported on stderr. Without a model, one is fitted
    to the tables, as by fit-tables.
    """
    if model is None and tables is None:
        raise click.UsageError("Give a model, --tables to build one from, or both.")
    known = table_reader.read(tables) if tables else None
    pmf = load(model) if model is not None else _complete(known, seed)
    if known is not None:
        names = known.domain.names
        absent = [name for name in names if name not in pmf.domain]
        if absent:
            raise ValueError(
                f"The tables mention {', '.join(absent)}, which the model does not have."
            )
        rest = [variable for variable in pmf.domain if variable.name not in names]
        joined = Domain((*known.domain, *rest))
        pmf = pmf.project(joined.names).align(joined)
    found = synthesize(pmf, count, known, random_state=seed)
    write_rows(output, pmf.domain.names, record_rows(found.records, numbers), as_json=as_json)
    echo(found.stop, err=True)


def _complete(tables: Marginals | None, seed: int) -> LowRankPMF:
    """The joint of tables; what it is goes to stderr."""
    assert tables is not None
    fit = keep_best(factorize, tables, random_state=seed)
    echo(fit.choice, err=True)
    return fit.pmf
