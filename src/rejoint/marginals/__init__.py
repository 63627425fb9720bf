"""Marginals: small tables of many subsets of variables, counted or given.

marginals     Marginals: count, from_tables, from_pmf, +
store         the tables themselves: where each lies, its counts, shares, total; adding them up
covers        which tables to count, and what they cost
random_cover  a random choice of tables that covers every pair it can
counting      records counted into tables, chunk by chunk
forms         the forms in which a table may be given, read into labels and a dense array
reading       given tables over one domain, as counts or shares
kinds         whether numbers are counts, shares or percentages
faults        what no reading can mend, in words
weights       how much each given table counts
unknown       cells that were held back, and how a model fills them
exchange      Marginals read from files and written to a folder
files         tables read from files
folders       tables written to a folder, and read back exactly
layouts       long and wide forms of a file
margins       totals printed with a table
cells         numbers as people write them, and marks for what was held back
moments       means, covariances and so on of numeric levels
agreement     where tables disagree on what they share
comparison    how well a model meets tables
"""

from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals, Projectable
from rejoint.marginals.moments import Moment

__all__ = ["Disagreement", "Marginals", "Moment", "Projectable"]
