"""Choice of the number of hidden classes, by held-out likelihood, BIC or evidence.

select       select: the rank of records by a criterion
selection    Selection: the rank chosen, the table of criteria, and why
held_out     the search: ranks of growing size, judged by records that were held out
run_off      the chains that answer where the rank is not given
criteria     AIC, BIC, aBIC and evidence of fits to all records
folds        records divided into those to learn from and those held out
from_tables  select_tables: the rank where there are only tables
"""

from rejoint.rank.from_tables import select_tables
from rejoint.rank.select import select
from rejoint.rank.selection import Selection

__all__ = ["Selection", "select", "select_tables"]
