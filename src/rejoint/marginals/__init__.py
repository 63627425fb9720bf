"""Marginals: small tables of many subsets of variables, counted or given.

marginals       Marginals: count, from_tables, from_pmf, read, write, +
subsets         which tables to count, and what they cost
count           records counted into tables, chunk by chunk; tables added up
labelled_table  the forms in which a table may be given, read into labels and a dense array
align           given tables over one domain, as counts or shares, with their weights
suppression     cells that are not known, and how a model fills them
publication     tables read from files as they are published, by these parts:
  sheet         files as sheets of cells: text, workbooks, JSON-stat, PC-Axis, archives
  grid          the grid parser: blocks of numbers with headers, stubs and notes
  cell          numbers as they are printed, flags, marks
  facet         blocks as arrays with an axis for each variable
  totals        levels that are sums of others
  axis_name     names of variables in corners, titles and labels
  unit_word     words that say what numbers are
  same_names    one name for one thing in all tables
folder          tables written to a folder, and read back exactly
protect         small counts held back, numbers rounded
moments         means, covariances and higher moments of numeric levels
compare         where tables disagree with each other, and how well a model meets them
"""

from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals, Projectable
from rejoint.marginals.moments import Moment

__all__ = ["Disagreement", "Marginals", "Moment", "Projectable"]
