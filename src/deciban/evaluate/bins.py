"""Bins that hold about equally many rows, whatever the order they come in."""

from __future__ import annotations

import numpy as np

from deciban.errors import InputError
from deciban.evaluate.checks import Codes
from deciban.score import Array


def equal_mass_bins(values: Array, bins: int) -> Codes:
    """The bin of each value; equal values share one, so that there may be fewer bins than asked for.

    >>> equal_mass_bins(np.array([.2, .9, .2, .4, .2]), 2).tolist()
    [0, 1, 0, 1, 0]
    """
    if bins < 1:
        raise InputError(f"bins is {bins}. Ask for at least one.")
    ranked = np.sort(values)
    cuts = np.arange(1, bins) * len(values) // bins  # how many values should lie below each cut
    cuts = np.searchsorted(ranked, ranked[cuts[cuts > 0] - 1], side="right")  # to the end of the tie that a cut splits
    return np.searchsorted(np.unique(ranked[cuts[cuts < len(values)]]), values, side="right")
