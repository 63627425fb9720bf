"""``rejoint identify``: what tables can say about a model of some rank."""

from pathlib import Path
from typing import Any

import click

from rejoint import identifiability
from rejoint.cli.group import echo, in_options
from rejoint.cli.options import Options, argument, declare, load, option, split_numbers
from rejoint.cli.output import echo_json, show_table
from rejoint.domain.domain import Domain
from rejoint.identifiability.model_verdict import model_verdict


@declare(
    "--subset --json +tables",
    argument("source", "[MODEL|DIR]"),
    option("--levels I,J,...", "Number of levels of each variable."),
    option("--order N", "All tables of this many variables; 3 by default."),
    option("--rank N", "Number of classes to check."),
    option("--local", "Also test whether the classes are locally unique."),
    option("--plan", "Find a few tables that determine --rank, in addition to the given ones."),
    option("--all", "Also show bounds that are printed but not proved."),
)
def command(o: Options) -> None:
    """Show up to which number of classes tables determine a model.

    The variables and tables are those of --levels with --order or --subset (variables x0, x1,
    ...), of a folder of tables, or of a MODEL, whose own classes are examined as well: with the
    tables it was fitted to, or those of --order or --subset.

    Examples
    --------
      rejoint identify --levels 3,3,3,3,3,3 --order 3 --rank 5
      rejoint identify --levels 2,2,2,2 --order 2 --rank 2 --local
      rejoint identify patients.rejoint
      rejoint identify triples --rank 3
    """
    if (o.source is None) == (o.levels is None):
        raise click.UsageError("Give exactly one of a MODEL, a DIR of tables, or --levels.")
    if o.order and o.subset:
        raise click.UsageError("Give --order or --subset, not both.")
    asked: dict[str, Any] = {"order": o.order, "subsets": o.subsets()}
    asked = {key: value for key, value in asked.items() if value}
    model, verdict, rank = None, None, o.rank
    if o.levels is not None:
        form = "whole numbers, such as 3,3,2"
        base = Domain.of_shape(split_numbers(f"--levels {o.levels}", o.levels, form, int))
    elif o.source != "-" and Path(o.source).is_dir():
        tables, _ = o.read_tables(o.source)
        base, asked = tables.domain, asked or {"subsets": tables.subsets}
    else:
        model = load(o.source)
        base, rank = model.domain, rank or model.rank
        if not asked and model.tables is not None:
            verdict = model_verdict(model) if model.rank == rank else None
            asked = {"subsets": model.tables.named_subsets(base)}
    asked = asked or {"order": min(3, len(base))}
    if rank is None and (o.local or o.plan):
        raise click.UsageError(f"--{'local' if o.local else 'plan'} needs --rank.")
    report = identifiability.report(base, rank=rank, **asked)
    details: list[Any] = [] if verdict is None else [verdict]
    if verdict is None and model is not None and model.rank == rank:
        details.append(identifiability.certify(model, **asked))
    if o.local and rank is not None:
        details.append(identifiability.jacobian(base, rank, **asked))
    plan = None
    if o.plan and rank is not None:
        given = asked.get("subsets", ())
        plan = identifiability.plan(base, rank, order=o.order or 3, given=given)
    bounds = (*report.bounds, *report.limits)
    if o.json:
        echo_json(
            {
                "rank": report.rank,
                "proved": report.best.rank,
                "counting": report.counting,
                "verdict": in_options(report.verdict),
                "details": [in_options(detail.verdict) for detail in details],
                "bounds": [
                    {"name": b.name, "rank": b.rank, "proved": b.proved, "rests_on": b.assumptions}
                    for b in bounds
                ],
                **({} if plan is None else {"plan": plan.subsets}),
            }
        )
        return
    rows = [(b.name, b.standing, b.groups, b.rank) for b in bounds if o.all or b.proved]
    show_table(("result", "", "groups", "rank"), rows, left=3)
    echo(f"\n{in_options(report.verdict)}")
    for detail in details:
        echo(in_options(str(detail)))
    if plan is not None:
        names = "; ".join(", ".join(subset) for subset in plan.subsets) or "none are missing"
        echo(f"Tables to add for rank {plan.rank}: {names}.")
