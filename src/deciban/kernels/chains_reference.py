"""The numpy twins of the kernels for hidden Markov chains, in logarithms throughout.

    forward    log α_t(k) = log Σ_j α_{t−1}(j) A(j,k) + log f(x_t|k) − log s_t       s_t makes α_t sum to one
    backward   log β_t(j) = log Σ_k A(j,k) w_{t+1}(k),    w_t(k) = f(x_t|k) β_t(k)/s_t
    posterior  γ_t(k) = α_t(k) β_t(k),    ξ_t(j,k) = α_t(j) A(j,k) w_{t+1}(k),    log-likelihood Σ log s_t
    best path  δ_t(k) = max_j δ_{t−1}(j) + log A(j,k) + log f(x_t|k)

A piece is some consecutive rows: `ends` says where its sequences end; its first row begins a sequence if `fresh`, else
alpha[0] brings the message of the row before; its last row ends one if `final`, else `carry` brings w of the row after.
Row t is described by row index[t] of a table, the last one where that is −1 (missing). `alpha` (n + 1, S) and `scale`
(n,) hold the messages of a piece between the two passes, those of row t in alpha[t + 1].
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array

quiet = np.errstate(divide="ignore", invalid="ignore")


def _log_sum(values: Array) -> Array:
    """Log Σ exp over the first axis; −inf where nothing is there."""
    top = values.max(axis=0)
    top = np.where(np.isneginf(top), 0.0, top)
    return np.log(np.exp(values - top).sum(axis=0)) + top


@quiet
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
    """Messages of a piece, log-likelihoods added to `evidence`; the first impossible row, or the number of rows."""
    begin, impossible = 0, len(index)
    for b, end in enumerate(ends):
        for t in range(begin, end):
            if t == begin and (fresh or b > 0):
                message = start
            else:
                message = _log_sum(alpha[t][:, None] + A)
            message = message + logs[index[t]]
            scale[t] = _log_sum(message)
            evidence[b] += scale[t] + base[index[t]]
            if np.isneginf(scale[t]):
                impossible = min(impossible, t)
                break
            alpha[t + 1] = message - scale[t]
        begin = end
    return impossible


@quiet
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
    """Add weighted expected counts: `visits` per row of the table and state, `joint` per pair, `first` per state."""
    for b in range(len(ends) - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        for t in range(ends[b] - 1, begin - 1, -1):
            beta = np.zeros(len(first))
            if t < ends[b] - 1 or not (final or b < len(ends) - 1):
                beta = _log_sum(carry[:, None] + AT)
                joint += weight[b] * np.exp(alpha[t + 1][:, None] + A + carry)
            share = weight[b] * np.exp(alpha[t + 1] + beta)
            visits[index[t]] += share
            carry[:] = logs[index[t]] + beta - scale[t]
        if fresh or b > 0:
            first += share


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
    """Best predecessors of every row and state, and each sequence's best last state: −1 where all are impossible."""
    begin = 0
    for b, end in enumerate(ends):
        for t in range(begin, end):
            if t == begin and (fresh or b > 0):
                reached, pointers[t] = start, 0
            else:
                each = carry[:, None] + A
                reached, pointers[t] = each.max(axis=0), each.argmax(axis=0)
            carry[:] = reached + logs[index[t]]
        last[b] = carry.argmax() if carry.max() > -np.inf else -1
        begin = end


def follow(pointers: Array, ends: Array, last: Array, path: Array) -> int:
    """Walk the pointers back from each sequence's last state; returns the state before the piece."""
    state = 0
    for b in range(len(ends) - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        state = last[b]
        for t in range(ends[b] - 1, begin - 1, -1):
            path[t] = state
            state = pointers[t, state]
    return state
