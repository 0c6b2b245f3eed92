"""Fits by other engines: the sums of a model computed by a cluster or where a table lies, by one plan."""
