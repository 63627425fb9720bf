"""Marginals: small tables of many subsets of variables, counted or given.

marginals     Marginals: count, from_tables, from_pmf, +
store         the tables themselves: where each lies, its counts, shares, total; adding them up
covers        which tables to count, and what they cost
random_cover  a random choice of tables that covers every pair it can
counting      records counted into tables, chunk by chunk
forms         the forms in which a table may be given, read into labels and a dense array
reading       given tables over one domain, as counts or shares
moments       means, covariances and so on of numeric levels
agreement     where tables disagree on what they share
"""

from rejoint.marginals.agreement import Disagreement
from rejoint.marginals.marginals import Marginals, Projectable
from rejoint.marginals.moments import Moment

__all__ = ["Disagreement", "Marginals", "Moment", "Projectable"]
