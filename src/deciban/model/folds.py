"""Folds for judging learnt rows: stratified, by groups or by time; copies of a row stay in one fold.

At most `JUDGED_ROWS` rows are judged. Rows that belong to a group of a judged row are left out together with it,
whether they are judged or not.

Equal rows are either copies of one row (a file that was concatenated twice, a class that was oversampled) or different
cases whose few columns happen to agree. Copies stay together: a row is easy to predict from its copy. Chance agreement
must not be kept together, since new rows will agree with learnt ones just as often. Equal rows count as copies if there
are more than `CHANCE` times as many pairs of them as columns that are independent within each class would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from deciban.errors import InputError
from deciban.model.ledger import Key, row_hashes
from deciban.read.batches import chosen_rows
from deciban.read.tables import Table
from deciban.statistics import Array

FOLDS = 5
JUDGED_ROWS = 10_000
HASHED_ROWS = 100_000  # with more rows, copies are looked for among the judged rows alone
CHANCE = 10.0  # times as many equal pairs as by chance, from which equal rows are copies


class Split(NamedTuple):
    """Positions of rows: judged ones, those that are left out of the sums with them, and those to choose by."""

    test: Array
    out: Array
    train: Array


def stratified(codes: Array, k: int = FOLDS, groups: ArrayLike | None = None, seed: int = 0) -> Array:
    """Return the fold of each row, shape (n,): random, with equal shares of each class; groups stay together.

    >>> stratified(np.array([0, 0, 1, 1, 0, 1]), 2).tolist()
    [1, 0, 0, 1, 0, 1]
    >>> stratified(np.array([0, 0, 1, 1, 0, 1]), 2, list("abaabb")).tolist()
    [0, 1, 0, 0, 1, 1]
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    fold = np.empty(len(codes), dtype=np.intp)
    if groups is not None:
        _, group, size = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
        if size.max() > 1:
            return _with_groups(codes, k, group, size, order)
    order = order[np.argsort(codes[order], kind="stable")]
    fold[order] = np.arange(len(codes)) % k
    return fold


def _with_groups(codes: Array, k: int, group: Array, size: Array, order: Array) -> Array:
    """Deal groups to folds, the largest first, each to the fold that has the fewest rows of its classes; then rows."""
    fold, K = np.full(len(codes), -1), int(codes.max()) + 1
    held = np.zeros((k, K))
    of_group = sp.csr_array((np.ones(len(codes)), (group, codes)), (len(size), K)).toarray()
    shuffled = np.unique(group[order], return_index=True)[1]  # place of each group in the random order
    several = np.flatnonzero(size > 1)
    dealt = np.full(len(size), -1)
    for one in several[np.lexsort((shuffled[several], -size[several]))]:
        wanted = held @ of_group[one] * len(codes) + held.sum(axis=1)
        at = int(np.argmin(wanted))
        dealt[one] = at
        held[at] += of_group[one]
    fold = dealt[group]
    for c in range(K):
        rows = order[(fold[order] < 0) & (codes[order] == c)]
        for at in np.argsort(held[:, c], kind="stable") if len(rows) else ():  # fill up to equal shares
            share = max(0, int(np.ceil((len(rows) + held[:, c].sum()) / k - held[at, c])))
            fold[rows[:share]], rows = at, rows[share:]
            held[at, c] += min(share, len(rows) + share)
    left = order[fold[order] < 0]
    fold[left] = np.arange(len(left)) % k
    return fold


def k_folds(codes: Array, k: int, together: Array | None, most: int = JUDGED_ROWS) -> Iterator[Split]:
    """Yield k splits of at most `most` rows; rows with the same number in `together` are in the same fold."""
    judged = chosen_rows(len(codes), most)
    units = len(judged) if together is None else len(np.unique(together[judged]))
    number = stratified(codes[judged], min(k, max(units, 1)), None if together is None else together[judged])
    fold = np.full(len(codes), -1)
    fold[judged] = number
    if together is not None and len(judged) < len(codes):
        of_unit = np.full(together.max() + 1, -1)
        of_unit[together[judged]] = number
        fold = of_unit[together]
    for one in range(number.max() + 1):
        yield Split(judged[number == one], np.flatnonzero(fold == one), judged[number != one])


def folds_in_time(time: ArrayLike, n: int, k: int = FOLDS, most: int = JUDGED_ROWS) -> Iterator[Split]:
    """Yield k splits: the rows, ordered by time, in k + 1 parts, of which each but the first is judged by those before.

    Rows of the same time are in the same part.

    >>> [(split.train.tolist(), split.test.tolist()) for split in folds_in_time([3, 1, 2, 4], 4, 2)]
    [([1, 2], [0]), ([0, 1, 2], [3])]
    """
    times = np.asarray(time)
    if times.shape != (n,):
        raise InputError(f"time has shape {times.shape}, but there are {n} rows. Give one for each row.")
    values, when, count = np.unique(times, return_inverse=True, return_counts=True)
    part = ((np.cumsum(count) - 1) * (k + 1) // n)[when]  # of the last row of that time
    parts = np.unique(part)
    if len(parts) < 2:
        raise InputError(f"time has {len(values)} different values, too few for a split into earlier and later rows.")
    judged = np.zeros(n, dtype=bool)
    judged[chosen_rows(n, most)] = True
    for one in parts[1:]:
        out = np.flatnonzero(part >= one)
        yield Split(np.flatnonzero((part == one) & judged), out, np.flatnonzero((part < one) & judged))


def units(table: Table, codes: Array, groups: ArrayLike | None) -> Array | None:
    """Return a number for each row, equal for rows that stay together, shape (n,); None if all may be separated."""
    n = len(codes)
    if groups is not None:
        named = np.asarray(groups)
        if named.shape != (n,):
            raise InputError(f"groups has shape {named.shape}, but there are {n} rows. Give one for each row.")
        groups = np.unique(named, return_inverse=True)[1]
    copies = copied_rows(table, codes)
    if copies is None or groups is None:
        return copies if groups is None else groups
    rows = np.arange(n)
    pairs = sp.coo_array((np.ones(2 * n), (np.r_[rows, rows], np.r_[n + copies, 2 * n + groups])), (3 * n, 3 * n))
    return connected_components(pairs, directed=False)[1][:n]


def copied_rows(table: Table, codes: Array) -> Array | None:
    """Return a number for each row, equal for copies of a row, shape (n,); None if there are no copies.

    >>> once = np.arange(40.0).reshape(20, 2)
    >>> copied_rows(Table.of(np.r_[once, once[:2]]), np.arange(22) % 2)[[0, 1, 20, 21]].tolist()
    [0, 1, 0, 1]
    >>> copied_rows(Table.of(np.tile([[0.0], [1.0]], (20, 1))), np.repeat([0, 1], 20)) is None
    True
    """
    n = len(codes)
    looked = np.arange(n) if n <= HASHED_ROWS else chosen_rows(n, JUDGED_ROWS)
    some = table if len(looked) == n else table.take(looked)
    hashes = row_hashes(some, table.columns, ("",), np.zeros(len(looked), dtype=np.intp), None, Key())
    _, first, same, size = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    pairs = float((size * (size - 1) / 2).sum())
    if not pairs or pairs <= CHANCE * _pairs_by_chance(some, codes[looked]):
        return None
    found = np.arange(n)
    found[looked] = looked[first][same]
    return found


def _pairs_by_chance(table: Table, codes: Array) -> float:
    """Return the expected number of pairs of equal rows if columns were independent within each class."""
    if table.texts or table.sparse:
        return 0.0
    size = np.bincount(codes).astype(float)
    pairs = size * (size - 1)
    equal = np.ones(len(size))  # probability that two rows of a class agree in the columns so far
    for j in range(table.shape[1]):
        if table.kind(j) == "text":
            return 0.0
        values = np.asarray(table.column(j))
        if values.dtype.kind not in "biuf":
            values = values.astype(str)
        found, value = np.unique(values, return_inverse=True)
        counts = sp.csr_array((np.ones(len(codes)), (codes, value)), (len(size), len(found)))
        agreeing = np.asarray(counts.multiply(counts).sum(axis=1)).reshape(-1) - size
        equal *= np.divide(agreeing, pairs, out=np.zeros(len(size)), where=pairs > 0)
    return float((equal * pairs).sum() / 2)
