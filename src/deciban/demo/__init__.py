"""A demonstration on files that every installation has: `python -m deciban.demo`."""
