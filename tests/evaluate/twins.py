"""Plain-loop twins of the figures, and the scores they are compared on."""

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

unhurried = settings(deadline=None, max_examples=60)  # a busy machine is no failure

nats = st.floats(-10_000, 10_000) | st.integers(-3, 3).map(float)  # whole numbers: ties
infinite = st.sampled_from([-math.inf, math.inf])


@st.composite
def judged(draw, score=nats | infinite, most=12):
    """Scores with ties and infinities, and flags of which at least one is of either class."""
    flags = draw(st.lists(st.booleans(), min_size=2, max_size=most).filter(lambda flags: len(set(flags)) == 2))
    return np.array(draw(st.lists(score, min_size=len(flags), max_size=len(flags)))), np.array(flags)


def some_scores(n=400, seed=0, spread=1.0, ties=False):
    """Gaussian llrs that are right at spread 1, and over-confident above it."""
    rng = np.random.default_rng(seed)
    is_h1 = rng.random(n) < 0.4
    x = rng.normal(np.where(is_h1, 1.0, -1.0), 1.0)  # the llr of N(1, 1) over N(−1, 1) is 2x
    return spread * (np.round(2 * x, 1) if ties else 2 * x), is_h1


def some_likelihoods(n=300, K=3, seed=0, spread=1.0):
    """Log-likelihoods that are right at spread 1, codes of which all occur, and an uneven log prior."""
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(K), rng.integers(0, K, n - K)]
    return spread * rng.normal(np.eye(K)[codes], 1.0), codes, np.log(np.arange(1, K + 1) / sum(range(1, K + 1)))


def softplus2(x):
    """The log2(1 + e^x) of mathematics."""
    if x == math.inf:
        return math.inf
    return (max(x, 0) + math.log1p(math.exp(-abs(x)))) / math.log(2)


def cllr_twin(llr, is_h1):
    ones = [softplus2(-x) for x, h in zip(llr, is_h1) if h]
    zeros = [softplus2(x) for x, h in zip(llr, is_h1) if not h]
    return (sum(ones) / len(ones) + sum(zeros) / len(zeros)) / 2


def pav_twin(llr, is_h1):
    """Pool by repeated search for a violation, in whole numbers; equal shares belong together."""
    scores = sorted(set(llr.tolist()))
    pools = [[[x], sum(is_h1[llr == x]), sum(~is_h1[llr == x])] for x in scores]
    at = 0
    while at < len(pools) - 1:
        (low, a1, a0), (high, b1, b0) = pools[at], pools[at + 1]
        if a1 * (b1 + b0) >= b1 * (a1 + a0):
            pools[at : at + 2] = [[low + high, a1 + b1, a0 + b0]]
            at = max(at - 1, 0)
        else:
            at += 1
    n1, n0 = sum(is_h1), sum(~is_h1)
    value = {}
    for members, h1, h0 in pools:
        llr_of_pool = -math.inf if h1 == 0 else math.inf if h0 == 0 else math.log(h1 / h0) - math.log(n1 / n0)
        value.update(dict.fromkeys(members, llr_of_pool))
    return np.array([value[x] for x in llr.tolist()])


def rates_twin(llr, is_h1):
    """Miss and false-alarm rate at every threshold, including the one above all scores."""
    thresholds = sorted(set(llr.tolist()))
    points = [(np.mean(llr[is_h1] < t), np.mean(llr[~is_h1] >= t)) for t in thresholds]
    return [*points, (1.0, 0.0)]


def dcf_twin(miss, alarm, prior, c_miss=1.0, c_fa=1.0):
    return (prior * c_miss * miss + (1 - prior) * c_fa * alarm) / min(prior * c_miss, (1 - prior) * c_fa)
