"""Chains: scaled messages, messages in logarithms and numpy versions agree on any piece."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.kernels.latent import Messages, Paths, piece_rows, worth_compiling
from kernels.agreement import thorough


@dataclass
class Piece:
    start: np.ndarray
    A: np.ndarray
    logs: np.ndarray  # (M, S), the last row for missing
    base: np.ndarray
    index: np.ndarray
    ends: np.ndarray
    fresh: bool
    final: bool
    weight: np.ndarray


@st.composite
def pieces(draw, sparse=False):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    S, M, n = draw(st.integers(1, 18)), draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 7, 60]))
    A = rng.dirichlet(np.full(S, 0.5), S)
    if sparse:
        A = np.where(rng.random((S, S)) < 0.4, 0.0, A) + 1e-3 * np.eye(S)
        A /= A.sum(axis=1, keepdims=True)
    logs = np.r_[rng.normal(-2, draw(st.sampled_from([0.3, 3.0, 300.0])), (M, S)), np.zeros((1, S))]
    count = draw(st.integers(1, min(n, 4)))
    ends = np.r_[np.sort(rng.choice(np.arange(1, n), count - 1, replace=False)), n].astype(np.int64)
    with np.errstate(divide="ignore"):
        return Piece(
            np.log(rng.dirichlet(np.ones(S))),
            np.log(A),
            logs,
            rng.normal(size=M + 1),
            rng.integers(-1, M, n),
            ends,
            draw(st.booleans()),
            draw(st.booleans()),
            rng.uniform(0.2, 3, count),
        )


def sums(piece, compiled, scaled):
    """Log-likelihoods, visits, joint, first and the messages carried either way; None if forward did not succeed."""
    messages = Messages(piece.start, piece.A, compiled, scaled)
    table = messages.table(piece.logs, piece.base)
    S, evidence, there, back = messages.S, np.zeros(len(piece.ends)), messages.carry(), messages.carry()
    there[:S] = 1 / S if messages.scaled else -np.log(S)
    back[:S] = 0.5 if messages.scaled else np.log(0.5)
    done = messages.forward(piece.index, table, piece.ends, piece.fresh, there, evidence)
    if done < (len(piece.ends) if messages.scaled else len(piece.index)):
        return None
    found = messages.sums(len(piece.logs))
    messages.backward(piece.index, table, piece.ends, piece.fresh, piece.final, back, piece.weight, *found)
    return [evidence, *messages.crop(*found), (there if messages.scaled else np.exp(there))[:S], back[:S]]


def agree(found, truth, skip=0):
    for a, b in zip(found[: len(found) - skip], truth):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@thorough
@given(pieces())
def test_the_three_arithmetics_agree(piece):
    twin = sums(piece, False, False)
    agree(sums(piece, True, False), twin)
    scaled = sums(piece, True, True)
    if scaled is not None:  # else a state vanished, and logarithms take over
        agree(scaled, twin, skip=1)  # what goes back is in other units


@thorough
@given(pieces(sparse=True))
def test_forbidden_transitions_agree_or_are_left_to_logarithms(piece):
    twin, logs, scaled = sums(piece, False, False), sums(piece, True, False), sums(piece, True, True)
    if twin is None:
        assert logs is None
        assert scaled is None
        return
    agree(logs, twin)
    if scaled is not None:
        agree(scaled, twin, skip=1)


@thorough
@given(pieces(sparse=True))
def test_best_paths_agree_with_their_twin(piece):
    found = []
    for compiled in (True, False):
        paths, carry, path = Paths(piece.start, piece.A, compiled), np.full(len(piece.start), -1.0), np.zeros(60, int)
        last = paths.best(piece.index, piece.logs, piece.ends, piece.fresh, carry)
        state = paths.follow(piece.ends, np.maximum(last, 0), path[: len(piece.index)])
        found.append([last, path, carry, state if not piece.fresh else 0])
    for ours, twin in zip(*found):
        np.testing.assert_allclose(ours, twin)


def test_a_state_that_cannot_be_reached_does_not_overflow():
    # the second state explains every step far better, but nothing leads there
    start, A = np.log([1.0, 1e-320]), np.log(np.array([[1.0, 1e-320], [1e-320, 1.0]]))
    piece = Piece(
        start,
        A,
        np.log([[1e-50, 1.0], [1.0, 1.0]]),
        np.zeros(2),
        np.zeros(200, int),
        np.array([200]),
        True,
        True,
        np.ones(1),
    )
    for compiled, scaled in ((False, False), (True, False), (True, True)):
        found = sums(piece, compiled, scaled)
        assert found is None or all(np.isfinite(part).all() for part in found[:4])


@pytest.mark.parametrize("compiled", [False, True])
def test_impossible_rows_are_reported_and_others_go_on(compiled):
    logs = np.log(np.array([[0.5, 0.5], [1e-300, 1e-300], [1.0, 1.0]]))
    logs[1] = -np.inf
    messages = Messages(np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5)), compiled, False)
    evidence = np.zeros(3)
    index, ends = np.array([0, 0, 0, 1, 0, 0]), np.array([2, 5, 6])
    done = messages.forward(index, (logs, np.zeros(3), False), ends, True, messages.carry(), evidence)
    assert done == 3
    np.testing.assert_allclose(evidence, [2 * np.log(0.5), -np.inf, np.log(0.5)])


def test_small_chains_do_not_wait_for_a_compiler_and_pieces_stay_in_the_cache():
    assert not worth_compiling(19_999)
    assert worth_compiling(20_000)
    assert piece_rows(8) == 4096
    assert piece_rows(100_000) == 256
