"""Marginals: small tables of many subsets of variables, counted or given.

marginals       Marginals: count, from_tables, from_pmf, read, write, +
subsets         which tables to count, and what they cost
count           records counted into tables, chunk by chunk; tables added up
labelled_table  the forms in which a table may be given; given tables over one domain
suppression     cells that are not known, how a model fills them; small counts held back
publication     tables read from files as they are published, by these parts:
  sheet         files as sheets of cells: text, workbooks, JSON-stat, PC-Axis, archives
  grid          the grid parser: blocks of numbers with headers, stubs and notes
  facet         blocks as arrays with an axis for each variable; levels that are sums of others
  vocabulary    words of totals and units, what is counted, names of variables
  same_names    one name for one thing in all tables
folder          tables written to a folder, and read back exactly
moments         means, covariances and higher moments of numeric levels
compare         where tables disagree with each other, and how well a model meets them
"""

from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals, Projectable
from rejoint.marginals.moments import Moment

__all__ = ["Disagreement", "Marginals", "Moment", "Projectable"]
