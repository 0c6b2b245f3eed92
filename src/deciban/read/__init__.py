"""Reads files and frames in batches, as typed columns with labels."""
