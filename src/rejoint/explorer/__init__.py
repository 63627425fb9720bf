"""The explorer: a page that holds a model and answers in the browser.

open         a file, a model or data, read into the document that the page shows
document     what the page is given: the model and what is known beyond it, as JSON
page_tables  what the page is given of a model's tables: which there are, ranges of its bars
table_as_read  each table as it was read
page         the page with its files, or as one file that works from disk
server       the page served from this machine

:func:`write_page` makes it one file that works from disk, :func:`serve` shows it from this machine.
"""

from rejoint.explorer.document import document
from rejoint.explorer.page import page, write_page
from rejoint.explorer.server import serve

__all__ = ["document", "page", "serve", "write_page"]
