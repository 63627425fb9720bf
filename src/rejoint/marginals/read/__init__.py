"""Published files into tables: what is declared or proved is read, what is open is asked.

cells        numbers, marks, and labelled arrays as files have them
grid         files, folders, archives; text and workbooks as cells
pc_axis      PC-Axis
json_stat    JSON-stat
sdmx         SDMX-CSV and TSV of Eurostat; listed cells as arrays
description  what a file does not say, as options and as TOML
forms        long and cross forms, described or proposed
interpret    totals, marks, kind and rounding of an array
table_files  all files together: names, levels, shares within levels
"""
