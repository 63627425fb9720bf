"""The query language: a question as text, for Python, the command line and the explorer alike.

errors    QueryError: what is wrong, and a caret under the place
tokens    words, quoted texts and signs
query     a question as an object: frozen, with one canonical text, and as JSON
grammar   tokens into a question
binding   a question in the terms of a domain: positions, likelihoods
levels    labels and comparisons into levels of a variable

Nothing here knows of models: `LowRankPMF.ask` answers.
"""

from rejoint.language.bind import BoundQuery, bind
from rejoint.language.grammar import MAX_SAMPLE, parse
from rejoint.language.query import Query
from rejoint.language.tokens import MAX_LENGTH, QueryError

__all__ = ["MAX_LENGTH", "MAX_SAMPLE", "BoundQuery", "Query", "QueryError", "bind", "parse"]
