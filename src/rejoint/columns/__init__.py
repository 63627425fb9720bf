"""One column at a time: its labels, its bins, and the way from any source to codes.

bins      intervals of numbers as levels
labels    what a cell may hold, what is missing, the order of levels
levels    the labels that a variable is declared with
forms     the two forms that every column is read into: numbers, or codes into labels
arrays    NumPy arrays and Python lists into these forms
series    columns of anything, pandas, polars and pyarrow too, into these forms
encoding  these forms into the codes of given levels
"""
