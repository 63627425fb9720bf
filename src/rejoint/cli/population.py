"""``rejoint population``: synthetic records that meet given tables."""

import click

from rejoint.cli.group import echo, keep_best
from rejoint.cli.options import Options, declare, load, option
from rejoint.cli.output import record_rows, write_rows
from rejoint.domain.domain import Domain
from rejoint.factorization.factorize import factorize
from rejoint.population.synthesize import synthesize


@declare(
    "[MODEL] --numbers --output --spreadsheet --seed --json +tables",
    option("-n N", "Records.", required=True),
    option("--tables DIR|FILE", "Tables to meet in whole numbers."),
)
def command(o: Options) -> None:
    """Make a synthetic population: records of the model that meet the tables.

    The tables are scaled to -n records and rounded so that they still add up; how many records
    would have to change cell to meet them all is reported on stderr. Without a model, one is fitted
    to the tables, as by fit-tables.

    Examples
    --------
      rejoint population model.rejoint -n 400 --tables pairs -o people.csv
      rejoint population model.rejoint -n 100 --seed 3
      rejoint population -n 400 --tables pairs -o people.csv
    """
    if o.model is None and o.tables is None:
        raise click.UsageError("Give a model, --tables to build one from, or both.")
    tables = o.read_tables(o.tables)[0] if o.tables else None
    if o.model is not None:
        pmf = load(o.model)
    else:
        fit = keep_best(factorize, tables, random_state=o.seed)
        echo(fit.choice, err=True)
        pmf = fit.pmf
    if tables is not None:
        names = tables.domain.names
        if absent := [name for name in names if name not in pmf.domain]:
            raise ValueError(
                f"The tables mention {', '.join(absent)}, which the model does not have."
            )
        rest = [variable for variable in pmf.domain if variable.name not in names]
        joined = Domain((*tables.domain, *rest))
        pmf = pmf.project(joined.names).align(joined)
    made = synthesize(pmf, o.n, tables, random_state=o.seed)
    write_rows(o.output, pmf.domain.names, record_rows(made.records, o.numbers), as_json=o.json)
    echo(made.stop, err=True)
