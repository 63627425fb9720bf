"""Variables and domains: names, levels, kinds; labels into codes and back.

domain    Domain: all variables of a problem, by name and in order
order     where variables and levels asked for lie in a domain
variable  Variable: one of them, its levels, encode and decode
levels    the labels that a variable is declared with
labels    what a cell may hold, what is missing, the order of levels
bins      intervals of numbers as levels
columns   the two forms that every column is read into: numbers, or codes into labels
arrays    NumPy arrays and Python lists into these forms
series    columns of anything, pandas, polars and pyarrow too, into these forms
encoding  these forms into the codes of given levels
"""

from rejoint.domain.domain import Domain, level_order, positions, refuse_duplicates
from rejoint.domain.labels import Bin, Level
from rejoint.domain.variable import HandleUnknown, Kind, Variable
from rejoint.messages import Remark, remark

__all__ = [
    "Bin",
    "Domain",
    "HandleUnknown",
    "Kind",
    "Level",
    "Remark",
    "Variable",
    "level_order",
    "positions",
    "refuse_duplicates",
    "remark",
]
