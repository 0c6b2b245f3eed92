"""Families that learn in threads and in forked processes, and rows for them."""

import numpy as np

from deciban import Gaussian, Multinomial, Text

rng = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(60)])


def numbers(n):
    return rng.normal(2.0, 1.0, (n, 3))


def counts(n):
    return rng.poisson(2.0, (n, 20)) + 1


def texts(n):
    return [" ".join(rng.choice(WORDS, 12)) for _ in range(n)]


KINDS = {
    "gaussian": (lambda: Gaussian("full"), numbers),
    "multinomial": (Multinomial, counts),
    "text": (lambda: Text("multinomial", "counts", 1.0, vocabulary="growing"), texts),
}
