"""Shares of several scores of the same rows."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from deciban.evaluate.scale_fit import SHARE_PENALTY, TOTAL_PENALTY, fit_shares

rng = np.random.default_rng(0)
N, K, P = 300, 3, 4
CODES = rng.integers(0, K, N)
PRIOR = np.array([0.2, 0.3, 0.5])
SCORES = [scale * np.eye(K)[CODES] + rng.normal(0, 1, (N, K)) for scale in (0.0, 0.5, 1.0, 3.0)]


def loss(shares):
    logits = sum(share * each for share, each in zip(shares, SCORES)) + np.log(PRIOR)
    away = np.asarray(shares) - 1 / P
    penalty = SHARE_PENALTY * away @ away + TOTAL_PENALTY * (np.sum(shares) - 1) ** 2
    return -log_softmax(logits, axis=1)[np.arange(N), CODES].sum() + penalty / 2


def test_shares_minimise_the_log_loss():
    found = fit_shares(SCORES, CODES, PRIOR)
    best = minimize(loss, np.full(P, 1 / P), bounds=[(0, None)] * P)
    assert found.min() >= 0
    assert found.sum() <= 1
    np.testing.assert_allclose(found, best.x / max(1.0, best.x.sum()), atol=0.01)


def test_what_is_impossible_is_left_out():
    impossible = SCORES[2].copy()
    impossible[CODES == 0, 1] = -np.inf
    found = fit_shares([SCORES[1], impossible], CODES, PRIOR)
    assert np.isfinite(found).all()
    assert found[1] > found[0]


def test_evidence_is_limited_where_all_rows_are_right():
    """A score of thousands of nats is as right as one of 12: one wrong row among new ones would cost thousands."""
    endless, enough = (nats * np.eye(K)[CODES] for nats in (5000.0, 12.0))
    nothing = np.zeros((N, K))
    alone, hedged = (
        fit_shares([endless, enough, nothing], CODES, PRIOR, surprise) @ (5000, 12, 0) for surprise in (0, 0.02)
    )
    assert alone > 1000
    assert hedged < 15
