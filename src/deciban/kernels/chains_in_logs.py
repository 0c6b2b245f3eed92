"""Forward and backward messages, and best paths, of hidden Markov chains in logarithms: nothing can vanish.

Arguments as in `chain_twins`, which says what is computed.
"""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import kernel, part
from deciban.kernels.rows_compiled import exp


@part
def _shift(messages: Array, row: int, logs: Array, out: Array, to: int) -> None:
    """Write log Σ_j exp(messages[row, j] + logs[j, k]) to out[to, k]."""
    S = logs.shape[0]
    for k in range(S):
        top = -np.inf
        for j in range(S):
            v = messages[row, j] + logs[j, k]
            top = v if v > top else top
        total = 0.0
        if top > -np.inf:
            for j in range(S):
                total += exp(messages[row, j] + logs[j, k] - top)
        out[to, k] = top + math.log(total) if total > 0 else -np.inf


@part
def _normalise(messages: Array, row: int) -> float:
    """Divide a message by its sum; returns the log of the sum."""
    S, top = messages.shape[1], -np.inf
    for k in range(S):
        top = messages[row, k] if messages[row, k] > top else top
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(S):
        total += exp(messages[row, k] - top)
    total = top + math.log(total)
    for k in range(S):
        messages[row, k] -= total
    return total


@kernel
def forward(
    index: Array,
    logs: Array,
    base: Array,
    ends: Array,
    fresh: bool,
    start: Array,
    A: Array,
    alpha: Array,
    scale: Array,
    evidence: Array,
) -> int:
    """Messages of a piece of rows; the number of the first impossible row, or how many rows there are."""
    S, begin, impossible = start.size, 0, index.size
    missing = logs.shape[0] - 1
    for b in range(ends.size):
        for t in range(begin, ends[b]):
            x = index[t] if index[t] >= 0 else missing
            if t == begin and (fresh or b > 0):
                for k in range(S):
                    alpha[t + 1, k] = start[k]
            else:
                _shift(alpha, t, A, alpha, t + 1)
            for k in range(S):
                alpha[t + 1, k] += logs[x, k]
            scale[t] = _normalise(alpha, t + 1)
            evidence[b] += scale[t] + base[x]
            if scale[t] == -np.inf:
                impossible = min(impossible, t)
                break
        begin = ends[b]
    return impossible


@kernel
def backward(
    index: Array,
    logs: Array,
    ends: Array,
    fresh: bool,
    final: bool,
    A: Array,
    AT: Array,
    carry: Array,
    alpha: Array,
    scale: Array,
    weight: Array,
    visits: Array,
    joint: Array,
    first: Array,
) -> None:
    """Add weighted expected counts."""
    S, missing = first.size, logs.shape[0] - 1
    after, beta = np.empty((1, S)), np.zeros((1, S))
    for k in range(S):
        after[0, k] = carry[k]
    for b in range(ends.size - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        for t in range(ends[b] - 1, begin - 1, -1):
            x = index[t] if index[t] >= 0 else missing
            if t == ends[b] - 1 and (final or b < ends.size - 1):
                for k in range(S):
                    beta[0, k] = 0.0
            else:
                _shift(after, 0, AT, beta, 0)
                for j in range(S):
                    for k in range(S):
                        joint[j, k] += weight[b] * exp(alpha[t + 1, j] + A[j, k] + after[0, k])
            for k in range(S):
                share = weight[b] * exp(alpha[t + 1, k] + beta[0, k])
                visits[x, k] += share
                if t == begin and (fresh or b > 0):
                    first[k] += share
                after[0, k] = logs[x, k] + beta[0, k] - scale[t]
    for k in range(S):
        carry[k] = after[0, k]


@kernel
def best(
    index: Array,
    logs: Array,
    ends: Array,
    fresh: bool,
    start: Array,
    A: Array,
    carry: Array,
    pointers: Array,
    last: Array,
) -> None:
    """Best predecessors of every row and state, and each sequence's best last state."""
    S, begin, missing = start.size, 0, logs.shape[0] - 1
    after = np.empty(S)
    for b in range(ends.size):
        for t in range(begin, ends[b]):
            x = index[t] if index[t] >= 0 else missing
            for k in range(S):
                top, place = -np.inf, 0
                if t == begin and (fresh or b > 0):
                    top = start[k]
                else:
                    for j in range(S):
                        v = carry[j] + A[j, k]
                        place = j if v > top else place
                        top = v if v > top else top
                after[k] = top + logs[x, k]
                pointers[t, k] = place
            for k in range(S):
                carry[k] = after[k]
        last[b], top = -1, -np.inf
        for k in range(S):
            if carry[k] > top:
                last[b], top = k, carry[k]
        begin = ends[b]


@kernel
def follow(pointers: Array, ends: Array, last: Array, path: Array) -> int:
    """Walk the pointers back from each sequence's last state; the state before the piece."""
    state = 0
    for b in range(ends.size - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        state = last[b]
        for t in range(ends[b] - 1, begin - 1, -1):
            path[t] = state
            state = pointers[t, state]
    return state
