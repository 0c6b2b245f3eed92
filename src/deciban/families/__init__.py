"""Families: statistics, prior, estimate, density and leave-one-out of the distributions of a class, one file each."""
