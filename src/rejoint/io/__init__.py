"""Saved models, safe to load from strangers: nothing in them is ever executed.

notes    what a model file says of the fit behind it
places   files written whole or not at all
archive  ``.rejoint``: a NumPy archive of plain arrays and a JSON member
plain    ``.json``: the same as text that anybody can read
"""

from rejoint.io.atomic import whole_file
from rejoint.io.fit_notes import fit_notes
from rejoint.io.model_file import (
    SCHEMA,
    SavedModel,
    read_model,
    read_open,
    read_saved,
    write_model,
    write_open,
)

__all__ = [
    "SCHEMA",
    "SavedModel",
    "fit_notes",
    "read_model",
    "read_open",
    "read_saved",
    "whole_file",
    "write_model",
    "write_open",
]
