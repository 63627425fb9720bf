"""How many hidden classes? The rank by held-out likelihood, BIC or evidence."""

from rejoint.rank.from_tables import select_tables
from rejoint.rank.select import select
from rejoint.rank.selection import Selection

__all__ = ["Selection", "select", "select_tables"]
