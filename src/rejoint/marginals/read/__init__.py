"""Published files into tables: structured formats, long and cross forms, descriptions, proposals."""
