"""Populations that meet tables: weights of a survey, and synthetic records from a model.

targets     the cells of records in tables, and what the tables say
rake        rake: weights of a survey that meet tables
anneal      swaps of rows and exchanges of values that bring records nearer to tables
synthesize  synthesize: whole records that meet tables
"""

from rejoint.population.rake import Raked, rake
from rejoint.population.synthesize import Synthesis, synthesize

__all__ = ["Raked", "Synthesis", "rake", "synthesize"]
