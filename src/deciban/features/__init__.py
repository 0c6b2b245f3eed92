"""Columns as given, turned into what families work on."""
