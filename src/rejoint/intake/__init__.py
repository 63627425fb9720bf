"""From any table of data to a domain and codes.

frames     any frame, array, list or dict taken apart into named columns
wishes     what the user said about columns
inference  the variable behind a column, where nobody declared it
checks     weights and codes as they must be
reports    what happened while reading that the owner should know
reading    all together: every column read, its variable found, its cells encoded
"""
