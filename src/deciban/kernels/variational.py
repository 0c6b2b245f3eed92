"""E-step of variational Bayes for latent Dirichlet allocation: topic shares of documents, and expected word counts.

    γ_dk = α + e_dk Σ_w c_dw B_wk / (e_d · B_w + ε)        e_d = exp(ψ(γ_d) − ψ(Σ_k γ_dk))

with B = exp E[log p(w|k)], repeated for each document until γ changes little. The expected counts of word w and topic k
are B_wk Σ_d e_dk c_dw / (e_d · B_w + ε).

Reference: Hoffman, Blei & Bach, Online learning for latent Dirichlet allocation, 2010.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.parallel import added, entry_chunks
from deciban.kernels.sparse import checked_csr

ITERATIONS = 20  # of a document, for the choice of chunks


def variational_shares(
    data: Array,
    indices: Array,
    indptr: Array,
    words: Array,
    gamma: Array,
    prior: float,
    most: int,
    tolerance: float,
    eps: float,
    learn: bool,
) -> Array:
    """Update γ (n, K) in place for documents as CSR rows; return Σ_d e_dk c_dw / (e_d · B_w + ε), (V, K), or zeros.

    `words` is B, (V, K); `most` is the largest number of iterations, and `learn` whether sums are wanted.
    """
    from deciban.kernels.variational_compiled import document_shares

    words = readable(words, np.float64)
    V, K = words.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    data = readable(data, np.float64)

    def expect(rows: slice) -> tuple[Array]:
        sums = np.zeros((V if learn else 0, K))
        limits = indptr[rows.start : rows.stop + 1]
        document_shares(data, indices, limits, words, gamma[rows], prior, most, tolerance, eps, sums)
        return (sums,)

    return added(expect, entry_chunks(indptr, ITERATIONS * 4 * K, V * K if learn else 0))[0]
