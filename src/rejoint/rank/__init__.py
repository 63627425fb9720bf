"""How many hidden classes? The rank by held-out likelihood, BIC or evidence.

selection    Selection: what was chosen, from what, and which sizes cannot be told apart
growth       which ranks to try: more and more until the score falls, then those in between
fitting      one cheap fit, warm from a smaller one
folds        records parted into those to learn from and those held out
criteria     a score for a rank
vanishing    the classes that variational Bayes keeps
choosing     select: all together
from_tables  select_tables: the same where there are only tables
"""

from rejoint.rank.from_tables import select_tables
from rejoint.rank.select import select
from rejoint.rank.selection import Selection

__all__ = ["Selection", "select", "select_tables"]
