"""Marginals: small tables of many subsets of variables, counted or given.

marginals       Marginals: count, from_tables, from_pmf, read, write, +
subsets         which tables to count, and what they cost
count           records counted into tables, chunk by chunk; tables added up
labelled_table  the forms in which a table may be given
align           given tables over one domain
unknown         cells that are not known, and how a model fills them
protect         small counts held back, counts rounded
read            published files: structured formats, two plain forms, descriptions
folder          tables written to a folder, and read back exactly
moments         means, covariances and higher moments of numeric levels
compare         where tables disagree with each other, and how well a model meets them
"""

from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals, Projectable
from rejoint.marginals.moments import Moment

__all__ = ["Disagreement", "Marginals", "Moment", "Projectable"]
