import os

from hypothesis import settings

# Timings vary too much on shared machines for a deadline per example to mean anything.
settings.register_profile("rejoint", deadline=None)
settings.load_profile("rejoint")

# Figures are drawn to files only; must be said before matplotlib is first imported.
os.environ.setdefault("MPLBACKEND", "Agg")
