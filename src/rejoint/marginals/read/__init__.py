"""Published files into tables: structured formats, two plain forms, proposals."""
