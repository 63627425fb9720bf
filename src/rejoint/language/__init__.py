"""The query language: questions as text, for Python, the command line and the explorer.

tokens        words, quoted texts and signs; QueryError, with a caret under the place
query         Query, a question as an object: frozen, with one canonical text, and as JSON
grammar       parse: from tokens to a question
bind          BoundQuery, a question with the positions of variables and likelihoods of levels

Nothing here depends on models; `LowRankPMF.ask` answers.
"""

from rejoint.language.bind import BoundQuery, bind
from rejoint.language.grammar import MAX_SAMPLE, parse
from rejoint.language.query import Query
from rejoint.language.tokens import MAX_LENGTH, QueryError

__all__ = ["MAX_LENGTH", "MAX_SAMPLE", "BoundQuery", "Query", "QueryError", "bind", "parse"]
