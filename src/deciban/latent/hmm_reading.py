"""Sequences as given: one table with lengths or a list of sequences, states known or not, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.features.labels import encode_labels
from deciban.features.weights import row_weights
from deciban.latent.hmm_rows import Rows
from deciban.latent.hmm_sequences import Sequences, is_list_of_sequences, join
from deciban.statistics import Array


def read_rows(
    family: Any,
    X: Any,
    lengths: Any,
    y: Any = None,
    sample_weight: Any = None,
    sequence_weight: Any = None,
    stats: Any = None,
) -> tuple[Rows, tuple[Any, ...]]:
    """Encoded rows, and the names of the states where some are known; sequences of weight 0 are as if absent."""
    X, sizes = join(X, lengths)
    block = family.encode(X, (), stats) if stats is not None else family.encode(X, ())
    sequences = Sequences.of(sizes, block.shape[0], sequence_weight)
    if is_list_of_sequences(y):
        y, theirs = join(y, None)
        if list(theirs) != sequences.lengths.tolist():
            raise InputError("the sequences of y are not as long as those of X. Give one state a step.")
    weight = row_weights(sample_weight, sequences.n)
    names, states = ((), None) if y is None else read_states(y, sequences.n)
    if not sequences.weight.all():
        kept = np.repeat(sequences.weight > 0, sequences.lengths)
        block, some = block[np.flatnonzero(kept)], sequences.weight > 0
        sequences = Sequences(np.cumsum(sequences.lengths[some]), sequences.weight[some])
        weight = None if weight is None else weight[kept]
        if states is not None:
            used = np.unique(states[kept & (states >= 0)])
            states = np.where(states >= 0, np.searchsorted(used, states), -1)[kept]
            names = tuple(names[at] for at in used)
    return Rows(family, block, sequences, weight, states), names


def read_states(y: Any, n: int) -> tuple[tuple[Any, ...], Array]:
    """The sorted names of the states that are known, and each step's place among them; −1 where it is not known.

    >>> read_states(["b", None, "a"], 3)
    (('a', 'b'), array([ 1, -1,  0]))
    """
    given = np.asarray(y) if isinstance(y, np.ndarray) or hasattr(y, "dtype") else np.asarray(list(y), dtype=object)
    if given.shape != (n,):
        raise InputError(
            f"y has shape {given.shape}, but there are {n} steps: give one state a step, None where it is not known. "
            "Lengths go by name: fit(X, lengths=…)."
        )
    if given.dtype.kind == "f":
        unknown = np.isnan(given)
    elif given.dtype.kind in "iu":
        unknown = given == -1
    else:
        unknown = np.array([name is None or name != name or (type(name) is int and name == -1) for name in given])
    codes = np.full(n, -1, dtype=np.intp)
    if unknown.all():
        raise InputError("y names no state at all. Leave y out to find the states.")
    names, codes[~unknown] = encode_labels(given[~unknown].tolist(), int((~unknown).sum()))
    return names, codes
