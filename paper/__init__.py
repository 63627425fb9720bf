"""Every table and figure of the paper, redone: one script for each (``python -m paper.table4``)."""
