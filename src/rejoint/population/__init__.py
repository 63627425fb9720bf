"""People made to fit tables: weights for those of a survey, and whole populations from a model.

placing     in which cell of each table a row falls
raking      rake: weights of a survey that meet tables
rounding    shares to whole numbers that add up
synthesis   synthesize: whole records whose tables are the given ones, as nearly as can be
pools       the rows it is made of
swapping    the search behind it: rows make room for others
exchanging  its end: records exchange values
"""

from rejoint.population.rake import Raked, rake
from rejoint.population.synthesize import Synthesis, synthesize

__all__ = ["Raked", "Synthesis", "rake", "synthesize"]
