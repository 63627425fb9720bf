"""Choice of the number of hidden classes, by held-out likelihood, BIC or evidence.

select       select: the rank of records by a criterion
selection    Selection: the rank chosen, the table of criteria, and why
curve        the search: ranks of growing size, judged by records that were held out
criteria     AIC, BIC, aBIC and evidence of fits to all records
from_tables  select_tables: the rank where there are only tables
"""

from rejoint.rank.from_tables import select_tables
from rejoint.rank.select import select
from rejoint.rank.selection import Selection

__all__ = ["Selection", "select", "select_tables"]
