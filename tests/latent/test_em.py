"""EM: when it stops, what it keeps, and its warnings."""

import numpy as np
import pytest

from deciban.errors import ConvergenceWarning, DecibanError
from deciban.latent import em


def halving(target=0.0):
    """A guess that halves its distance to the target; the objective is minus that distance."""
    return lambda guess: (target + (guess - target) / 2, -abs(guess - target))


def test_it_stops_when_a_pass_gains_too_little():
    guess, trace = em.run(halving(), 1.0, weight=1.0, max_iter=100, tol=1e-3)
    assert trace.converged
    assert trace.iterations == 11  # from 2⁻⁹ to 2⁻¹⁰ it gains less than 10⁻³
    assert guess == 2.0**-11


def test_a_loop_that_does_not_settle_says_so():
    with pytest.warns(ConvergenceWarning, match=r"still gaining 0.25, 0.12, 0.062 per row. Raise max_iter"):
        _, trace = em.run(halving(), 1.0, weight=1.0, max_iter=5, tol=1e-9)
    assert repr(trace) == "Trace(5 iterations, not converged, objective -0.0625)"


def test_an_interruption_keeps_the_best_so_far():
    step, calls = halving(), []

    def interrupted(guess):
        calls.append(guess)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(guess)

    with pytest.warns(ConvergenceWarning, match="interrupted after 3 iterations"):
        guess, trace = em.run(interrupted, 1.0, 1.0, 100, 1e-9)
    assert guess == 1 / 8
    assert trace.interrupted


def test_no_nan_leaves_the_loop():
    with pytest.raises(DecibanError, match="became nan"):
        em.run(lambda guess: (guess, np.nan), 0.0, 1.0, 10, 1e-3)


def test_a_loop_that_need_not_climb_stops_at_small_changes_either_way():
    falls = iter([0.0, 5.0, 4.0, 3.9999, 3.9999])
    _, trace = em.run(lambda guess: (guess, next(falls)), 0.0, 1.0, 10, 1e-3, monotone=False)
    assert trace.converged
    assert trace.iterations == 4


def test_the_best_start_goes_on_and_collapses_are_passed_over():
    def attempt(objective):
        def run():
            if objective is None:
                raise DecibanError("collapsed")
            return objective, em.Trace([objective])

        return run

    assert em.best_of(map(attempt, [1.0, None, 3.0, 2.0])) == (3.0, [1.0, 3.0, 2.0])
    with pytest.raises(DecibanError, match="collapsed"):
        em.best_of(map(attempt, [None, None]))

    def stop():
        raise KeyboardInterrupt

    assert em.best_of([attempt(1.0), stop, attempt(9.0)])[0] == 1.0


def test_stepwise_em_is_a_moving_average_of_sums():
    batches = [(np.array([2.0]), 2.0), (np.array([4.0]), 2.0)]
    found = em.stepwise(lambda batch, sums: batch, np.array([10.0]), batches, 4.0, 1.0)
    np.testing.assert_allclose(found, (10 / 2 + 2 * 2 / 2) * 2 / 3 + 4 * 2 / 3)


def test_a_bar_needs_a_terminal(capsys):
    em.run(halving(), 1.0, 1.0, 100, 1e-3, label="halving")
    assert capsys.readouterr().err == ""


def test_a_bar_shows_on_a_terminal_when_it_takes_long(monkeypatch, capsys):
    import sys

    from deciban import terminal

    monkeypatch.setattr(terminal, "DELAY", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    em.run(halving(), 1.0, 1.0, 100, 1e-3, label="halving")
    assert "halving" in capsys.readouterr().err
