"""Model files, safe to load from strangers: no code in them is executed.

atomic      the one writer of files and folders, whole or not at all
schema      what the JSON of a file must be
archive     zip files of plain arrays and a JSON member
load        what ``save`` wrote: a joint model or a fitted estimator
model_file  models as archives (``.rejoint``) and as text (``.json``)
saved_tables  the tables that a model was fitted to, as its file has them
saved_counts  the counts beside answers, as a model's file has them
fit_notes   notes about a fit that a model file keeps
"""

from rejoint.io.atomic import atomic_file
from rejoint.io.fit_notes import fit_notes
from rejoint.io.model_file import (
    SCHEMA,
    SavedEnsemble,
    SavedModel,
    read_open,
    read_saved,
    write_model,
    write_open,
)
from rejoint.io.saved_tables import SavedTables

__all__ = [
    "SCHEMA",
    "SavedEnsemble",
    "SavedModel",
    "SavedTables",
    "atomic_file",
    "fit_notes",
    "read_open",
    "read_saved",
    "write_model",
    "write_open",
]
