"""The concentrations α and β, learnt from expected counts.

Minka's fixed point for counts n_dk drawn with weights θ_d ~ Dirichlet(α) is

    α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(n_d + Σα) − ψ(Σα)]

Expected counts are not counts: 0.01 tokens are no token in 99 documents of 100, and ψ, concave, would make far too much
of them. So, as in collapsed variational Bayes, ψ is taken where there is a token at all, P = 1 − exp(−n):

    E ψ(n + α) − ψ(α)  ≈  P · [ψ(n/P + α) − ψ(α)]

References: Minka, Estimating a Dirichlet distribution, 2000; Teh, Newman and Welling, A collapsed variational Bayesian
inference algorithm for latent Dirichlet allocation, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import psi

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.topics.completion import prior_of

LEAST, MOST = 1e-5, 1e3  # bounds of what is learnt: a topic that lost all its words would go to 0
START_BETA = 0.01
ENOUGH = 300_000  # counts that β is learnt from, evenly over the words


@dataclass(frozen=True)
class Priors:
    """α of each topic in a document, β of each word in a topic, and which of them are learnt."""

    alpha: Array  # (K,)
    beta: float
    learn_alpha: bool = True
    learn_beta: bool = True

    @classmethod
    def asked(cls, alpha: Any, beta: Any, K: int) -> Self:
        """What "learnt", a number, or for α an array says."""
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, str) and value != "learnt":
                raise HyperparameterError(f"{name}={value!r} must be 'learnt' or a number above 0.")
        learn_alpha, learn_beta = isinstance(alpha, str), isinstance(beta, str)
        start = START_BETA if learn_beta else beta
        if not (np.isscalar(start) and 0 < float(start) < np.inf):  # type: ignore[arg-type]
            raise HyperparameterError(f"beta={beta!r} must be 'learnt' or a number above 0.")
        return cls(prior_of(None if learn_alpha else alpha, K), float(start), learn_alpha, learn_beta)  # type: ignore[arg-type]

    def for_documents(self, counts: Array, steps: int = 5, sure: bool = False) -> Self:
        """α after some fixed-point steps on the expected, or `sure`, counts of some documents, (n, K)."""
        if not self.learn_alpha or not counts.size:
            return self
        counts = counts.astype(float)
        lengths, alpha = counts.sum(axis=1), self.alpha
        for _ in range(steps):
            gain = rises(counts, alpha, sure).sum(axis=0)
            alpha = np.clip(alpha * gain / max(rises(lengths, alpha.sum(), sure=True).sum(), 1e-300), LEAST, MOST)
        return replace(self, alpha=alpha)

    def for_words(self, counts: Array, steps: int = 5, sure: bool = False) -> Self:
        """β after some fixed-point steps on the expected, or `sure`, counts of words in topics, (V, K)."""
        if not self.learn_beta:
            return self
        V, totals, beta = len(counts), counts.sum(axis=0, dtype=float), self.beta
        some = counts[:: max(1, counts.size // ENOUGH)]
        there = some[some > 1e-6].astype(float)  # less adds nothing that could be seen
        for _ in range(steps):
            below = len(some) * rises(totals, V * beta, sure=True).sum()
            beta = float(np.clip(beta * rises(there, beta, sure).sum() / max(below, 1e-300), LEAST, MOST))
        return replace(self, beta=beta)


def rises(counts: Array, prior: Any, sure: bool = False) -> Array:
    """E ψ(n + prior) − ψ(prior) of expected counts; `sure` counts are no expectations.

    >>> float(rises(np.array([3.0]), 0.5, sure=True)[0].round(6)) == round(1 / 0.5 + 1 / 1.5 + 1 / 2.5, 6)
    True
    >>> float(rises(np.array([0.01]), 0.5)[0].round(4))  # about 0.01 · 1/0.5
    0.0199
    """
    if sure:
        return psi(counts + prior) - psi(prior)
    present = -np.expm1(-np.maximum(counts, 1e-12))
    return present * (psi(counts / present + prior) - psi(prior))
