"""Words in alphabetical order: by code point, which in UTF-8 is the order of the bytes."""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array


def _eight_bytes(text: Array, offsets: Array, words: Array, depth: int) -> Array:
    """Bytes depth … depth + 7 of some words as big-endian numbers, padded with 0."""
    at = np.minimum(offsets[words] + depth, len(text) - 8)
    everywhere = np.ndarray(len(text) - 7, ">u8", text, strides=(1,))
    left = np.clip(offsets[words + 1] - offsets[words] - depth, 0, 8).astype(np.uint64)
    # A shift by 64 is undefined: two shifts by half.
    half = 4 * (8 - left)
    return everywhere[at].astype(np.uint64) >> half >> half << half << half


def _by_both(group: Array, key: Array) -> Array:
    """Order by group, then key. Two plain sorts are several times faster than `np.lexsort`."""
    by_key = np.argsort(key)
    sorted_key = key[by_key]
    rank = np.empty(len(key), np.int64)
    rank[by_key] = np.cumsum(np.append(0, sorted_key[1:] != sorted_key[:-1]))
    return np.argsort(group * len(key) + rank)


def alphabetical(text: Array, offsets: Array) -> Array:
    """Return the numbers of the words text[offsets[i] : offsets[i + 1]] in alphabetical order.

    Words are compared eight bytes at a time, and only ties further. At least eight bytes must follow the last word.

    >>> text = np.frombuffer(b"todayto" + bytes(8), np.uint8)
    >>> alphabetical(text, np.array([0, 5, 7]))
    array([1, 0])
    """
    order = np.arange(len(offsets) - 1)
    lengths = np.diff(offsets)
    tied = order.copy()  # positions in the order that are not final
    group = np.zeros(len(order), np.int64)  # equal for words whose bytes so far are equal
    depth = 0
    while len(tied):
        key = _eight_bytes(text, offsets, order[tied], depth)
        by_key = np.argsort(key) if depth == 0 else _by_both(group, key)
        order[tied] = order[tied][by_key]
        key, group = key[by_key], group[by_key]
        new = np.append(True, (key[1:] != key[:-1]) | (group[1:] != group[:-1]))
        alone = new & np.append(new[1:], True)
        group = np.cumsum(new)[~alone]
        tied = tied[~alone]
        depth += 8
        if len(tied) and lengths[order[tied]].max() <= depth:
            # Equal but for zero bytes at the end: the shorter word comes first.
            order[tied] = order[tied][_by_both(group, lengths[order[tied]])]
            break
    return order
