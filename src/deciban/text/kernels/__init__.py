"""Text to ids of words and n-grams; ids to counts, sparse rows and scores.

`streams`, `ordering` and `scripts` are numpy and plain Python; all other modules import numba, and are imported when a
large input arrives.
"""
