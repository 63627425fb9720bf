"""Records: rows of codes over a domain, from any table of data and back to it.

records    Records: codes, domain, weights; the base class of all forms of records
merge      identical rows merged into one
survey_design  copies, survey weights, strata and clusters; the design effect
sparse     SparseRecords: the observed cells of each record, and nothing else
scan       Scan: records read part by part, as often as needed; packs of them in a folder
frames     any frame, array, list or dict as named columns, and back
infer      the variable behind a column, from what is declared or seen
empty_cells  cells that do not apply, by the level of another column that says so
encode     the codes of a table
files      Source: files and standard input, unpacked
delimited  delimited text into columns, by pyarrow where it is installed
formats    Parquet, Arrow, JSON lines, queries, and formats that users add
read       read, read_chunks, scan: files, folders, queries and streams as records
"""

from rejoint.records.formats import add_format
from rejoint.records.frames import Backend
from rejoint.records.infer import ColumnRule
from rejoint.records.read import MISSING, read, read_chunks, scan
from rejoint.records.records import Records
from rejoint.records.scan import Scan
from rejoint.records.sparse import SparseRecords
from rejoint.records.survey_design import SurveyDesign

__all__ = [
    "MISSING",
    "Backend",
    "ColumnRule",
    "Records",
    "Scan",
    "SparseRecords",
    "SurveyDesign",
    "add_format",
    "read",
    "read_chunks",
    "scan",
]
