"""Saved models, safe to load from strangers: nothing in them is ever executed.

notes    what a model file says of the fit behind it
places   files written whole or not at all
archive  ``.rejoint``: a NumPy archive of plain arrays and a JSON member
plain    ``.json``: the same as text that anybody can read
"""

from rejoint.io.models import (
    SavedModel,
    read_model,
    read_open,
    read_saved,
    write_model,
    write_open,
)
from rejoint.io.notes import fit_notes
from rejoint.io.places import whole_file
from rejoint.io.schema import SCHEMA

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
