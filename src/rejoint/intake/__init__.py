"""From any table of data to a domain and codes.

frames     any frame, array, list or dict taken apart into named columns
inference  the variable behind a column, where nobody declared it
reading    both together: every column read, its variable found, its cells encoded
"""
