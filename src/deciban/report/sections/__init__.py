"""Sections of the page: each is HTML made from the material of a report."""
