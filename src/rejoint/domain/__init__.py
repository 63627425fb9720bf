"""Variables and domains: names, levels, kinds; labels into codes and back.

domain    Domain: all variables of a problem, by name and in order
variable  Variable: one of them, its levels, encode and decode
dates     text that is a date, and its year or month
labels    labels and bins: what is missing, the order of levels, levels checked
columns   columns of any library as numbers, or as codes into labels
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
