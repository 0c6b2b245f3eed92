"""Hidden Markov chains: messages forward and backward, and best paths, a piece of consecutive rows at a time.

`chains_reference` defines what is computed. Compiled messages come in two arithmetics. Plain numbers (`scaled`) are an
order of magnitude faster and as exact, unless the probability of a state underflows that no later transition restores:
`Messages.forward` detects that case, and the caller starts again in logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels import chains_reference
from deciban.kernels.choice import Array, compiled, readable

# What one step of the twins weighs against compiling: twenty thousand take half a second.
STEP = 50

# Numbers that a piece's messages may fill: they should stay in the cache between the two passes.
PIECE = 2**15

# Transitions above this bring back whatever plain numbers lose.
RESTORING = 1e-30
VANISHING = 1e-200


def piece_rows(S: int) -> int:
    """How many rows make a piece."""
    return max(256, PIECE // max(S, 8))


def worth_compiling(steps: int) -> bool:
    """Whether chains of this many steps in all, over all passes, are worth the compiler."""
    return compiled(steps * STEP)


class Messages:
    """The messages of one chain over one piece at a time.

    `logs` of a piece are the (M, S) log densities that index[t] points into, `base` (M,) what all states share.
    """

    def __init__(self, log_start: Array, log_transitions: Array, use_kernel: bool, scaled: bool) -> None:
        self.S = len(log_start)
        self.compiled, self.scaled = use_kernel, scaled and use_kernel
        self.width = self.S
        if self.scaled:
            self.width = -(-self.S // 4) * 4  # states that cannot be fill the vectors
            self.start, self.A = _padded(np.exp(log_start), self.width), _padded(np.exp(log_transitions), self.width)
            self.restoring = float(np.exp(log_transitions.min())) >= RESTORING
        else:
            self.start, self.A = readable(log_start, np.float64), readable(log_transitions, np.float64)
        self.AT = np.ascontiguousarray(self.A.T)
        self.body: Any = chains_reference
        if self.compiled:
            from deciban.kernels import chains_in_logs, chains_scaled

            self.body = chains_scaled if self.scaled else chains_in_logs
        rows = piece_rows(self.S)
        self.alpha, self.scale = np.empty((rows + 1, self.width)), np.empty(rows)
        self._room, self._offset = np.empty((0, self.width)), np.empty(0)

    def table(self, logs: Array, base: Array) -> tuple[Array, Array, bool]:
        """What forward and backward read in place of logs and base; in plain numbers, whether a state is faint there.

        The answer is valid until the next call with as many rows or fewer.
        """
        if not self.scaled:
            return logs, base, False
        if len(self._room) < len(logs):
            self._room, self._offset = np.empty((len(logs), self.width)), np.empty(len(logs))
        room, offset = self._room[: len(logs)], self._offset[: len(logs)]
        faint = self.body.likelihoods(readable(logs, np.float64), readable(base, np.float64), room, offset)
        return room, offset, bool(faint)

    def sums(self, M: int) -> tuple[Array, Array, Array]:
        """Empty sums that `backward` adds to: visits (M, ·), joint and first; `crop` says what was found."""
        return np.zeros((M, self.width)), np.zeros((self.width, self.width)), np.zeros(self.width)

    def crop(self, visits: Array, joint: Array, first: Array) -> tuple[Array, Array, Array]:
        """(M, S) visits, (S, S) transitions and (S,) starts."""
        return visits[:, : self.S], joint[: self.S, : self.S], first[: self.S]

    def carry(self) -> Array:
        """Room for a message between two pieces."""
        return np.zeros(self.width)

    def forward(
        self, index: Array, table: tuple[Array, Array, bool], ends: Array, fresh: bool, carry: Array, evidence: Array
    ) -> int:
        """Messages of the piece; how many of its rows (its sequences, if scaled) can be vouched for.

        `carry` comes as the message of the row before and leaves as that of the last row.
        """
        n = len(index)
        self.alpha[0] = carry
        done = self.body.forward(
            index, table[0], table[1], ends, fresh, self.start, self.A, self.alpha, self.scale, evidence
        )
        carry[:] = self.alpha[n] * self.scale[n - 1] if self.scaled else self.alpha[n]
        lossy = self.scaled and not self.restoring
        if lossy and done == len(ends) and (table[2] or self.body.least(self.alpha, n) < VANISHING):
            return 0
        return int(done)

    def backward(
        self,
        index: Array,
        table: tuple[Array, Array, bool],
        ends: Array,
        fresh: bool,
        final: bool,
        carry: Array,
        weight: Array,
        visits: Array,
        joint: Array,
        first: Array,
    ) -> None:
        """Add the expected counts of the piece whose forward messages were made last."""
        self.body.backward(
            index,
            table[0],
            ends,
            fresh,
            final,
            self.A,
            self.AT,
            carry,
            self.alpha,
            self.scale,
            weight,
            visits,
            joint,
            first,
        )


class Paths:
    """Best paths through one chain, over one piece at a time."""

    def __init__(self, log_start: Array, log_transitions: Array, use_kernel: bool) -> None:
        self.start, self.A = readable(log_start, np.float64), readable(log_transitions, np.float64)
        self.body: Any = chains_reference
        if use_kernel:
            from deciban.kernels import chains_in_logs

            self.body = chains_in_logs
        S = len(log_start)
        kind = np.uint8 if S <= 256 else np.uint16 if S <= 65536 else np.int64
        self.pointers = np.empty((piece_rows(S), S), dtype=kind)

    def best(self, index: Array, logs: Array, ends: Array, fresh: bool, carry: Array) -> Array:
        """(B,) the best last state of each sequence in the piece, −1 where it is impossible."""
        last = np.empty(len(ends), dtype=np.int64)
        self.body.best(index, logs, ends, fresh, self.start, self.A, carry, self.pointers, last)
        return last

    def follow(self, ends: Array, last: Array, path: Array) -> int:
        """Write the path of the piece that `best` saw last; returns the state before it."""
        return int(self.body.follow(self.pointers, ends, last, path))


def _padded(values: Array, width: int) -> Array:
    room = np.zeros((width,) * values.ndim)
    room[tuple(slice(0, size) for size in values.shape)] = values
    return room
