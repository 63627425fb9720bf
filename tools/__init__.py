"""Tools for work on the package; not part of it."""
