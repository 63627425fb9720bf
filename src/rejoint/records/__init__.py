"""Records: rows of codes over a domain, from any table of data and back to it.

records    Records: codes, domain, weights
frames     any frame, array, list or dict taken apart into named columns
declarations     what the user said about columns
inference  the variable behind a column, where nobody declared it
matrices   arrays of numbers read all at once
reading    all together: every column read, its variable found, its cells encoded
checks     weights and codes as they must be
tallies    rows counted and merged
export     back to frames, and to text
files      records read from files, whole or in chunks
blocks     files as frames, some rows at a time
finding    variables and levels of files in one pass
sightings  what was seen of a column so far
scans      Scan: records read part by part, as often as needed
scanning   files, folders, queries, streams and functions as a Scan
packs      codes in a folder, from where passes are quick
sparse     SparseRecords: what is observed of each record, and nothing else
columns    columns of which only some rows are there
sources    files and standard input, unpacked
text       delimited text into rows
delimited  rows of text into columns
formats    Parquet, Arrow, JSON lines, queries
"""

from rejoint.records.discover import MISSING
from rejoint.records.frames import Backend
from rejoint.records.read import find_domain, read, read_chunks, scan
from rejoint.records.records import Records
from rejoint.records.scan import Scan
from rejoint.records.sparse import SparseRecords

__all__ = [
    "MISSING",
    "Backend",
    "Records",
    "Scan",
    "SparseRecords",
    "find_domain",
    "read",
    "read_chunks",
    "scan",
]
