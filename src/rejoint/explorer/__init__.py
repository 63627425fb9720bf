"""The explorer: a page that holds a model and answers in the browser.

:func:`write_page` makes it one file that works from disk, :func:`serve` shows it from this machine.
"""

from rejoint.explorer.document import document
from rejoint.explorer.page import page, write_page
from rejoint.explorer.server import serve

__all__ = ["document", "page", "serve", "write_page"]
