"""What Marginals are made of: tables as given by users, as held, and where they disagree.

forms      the forms in which a table may be given, read into labels and a dense array
reading    given tables over one domain
kinds      counts and shares told apart
store      the tables themselves: where each lies, its counts, shares, total
sums       adding them up
moments    means, covariances and so on of numeric levels
agreement  where tables disagree on what they share
"""
