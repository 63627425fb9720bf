"""Saved models, safe to load from strangers: nothing in them is ever executed.

places   files written whole or not at all
archive  ``.rejoint``: a NumPy archive of plain arrays and a JSON member
plain    ``.json``: the same as text that anybody can read
"""

from rejoint.io.models import SavedModel, read_model, read_saved, write_model
from rejoint.io.places import whole_file
from rejoint.io.schema import SCHEMA

__all__ = ["SCHEMA", "SavedModel", "read_model", "read_saved", "whole_file", "write_model"]
