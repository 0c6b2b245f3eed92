"""Topics of scikit-learn on deciban's kernels: the E-step over all documents is one compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.decomposition as theirs
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.decomposition._lda import _update_doc_distribution
from sklearn.decomposition._online_lda_fast import _dirichlet_expectation_1d, _dirichlet_expectation_2d, mean_change

from deciban.kernels.choice import compiled
from deciban.kernels.variational import ITERATIONS, variational_shares
from deciban.sklearn.dropin import Array, DropIn

TOGETHER = 8  # documents for which one iteration of numpy takes less time than one of each


class LatentDirichletAllocation(DropIn, theirs.LatentDirichletAllocation):
    """Latent Dirichlet allocation by variational Bayes, with scikit-learn's interface, starts and iterations.

    Topics of a fit agree with scikit-learn's to about 1e-10. Documents are divided among threads (`set_threads`);
    results do not depend on their number. With `n_jobs` other than 1, scikit-learn's own code runs. For better topics
    in less time, see `deciban.TopicModel`.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics.
    doc_topic_prior, topic_word_prior : float, default=None
        Parameters of the Dirichlet priors of topic shares and of words; 1 / n_components if None.
    learning_method : {"batch", "online"}, default="batch"
        Whether topics are updated after all documents or after each mini-batch.
    learning_decay, learning_offset : float, default=0.7 and 10.0
        Exponent and offset of the weights of mini-batches.
    max_iter : int, default=10
        Number of passes over all documents.
    batch_size : int, default=128
        Number of documents in a mini-batch.
    evaluate_every : int, default=-1
        Number of passes after which perplexity is computed; never if it is not positive.
    total_samples : float, default=1e6
        Number of documents in all, for `partial_fit`.
    perp_tol, mean_change_tol : float, default=0.1 and 1e-3
        Changes of the perplexity, and of the shares of a document, below which iterations end.
    max_doc_update_iter : int, default=100
        Largest number of iterations of a document.
    n_jobs : int, default=None
        Number of processes.
    verbose : int, default=0
        What is printed.
    random_state : int, RandomState instance or None, default=None
        Source of random numbers.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Parameters of the posterior of the topics: pseudo-counts of words.
    exp_dirichlet_component_ : ndarray of shape (n_components, n_features)
        Exponential of the expected log probability of words.
    bound_ : float
        Perplexity of the learnt documents at the end.
    n_batch_iter_, n_iter_ : int
        Numbers of mini-batches and of passes.
    doc_topic_prior_, topic_word_prior_ : float
        Priors used.

    Examples
    --------
    >>> X = [[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 1, 2, 3]]
    >>> LatentDirichletAllocation(2, random_state=0).fit_transform(X).round(1)
    array([[0.9, 0.1],
           [0.9, 0.1],
           [0.1, 0.9],
           [0.1, 0.9]])
    """

    def _unsupported(self) -> str | None:
        return "n_jobs is given" if effective_n_jobs(self.n_jobs) != 1 else None

    def _e_step(self, X: Any, cal_sstats: bool, random_init: bool, parallel: Any = None) -> tuple[Array, Array | None]:
        entries = X.nnz if sp.issparse(X) else X.size
        if not self._runs():
            return super()._e_step(X, cal_sstats, random_init, parallel)
        if not compiled(entries * self.n_components * ITERATIONS):
            return self._small_e_step(X, cal_sstats, random_init)
        n, K = X.shape[0], self.n_components
        gamma = self.random_state_.gamma(100.0, 0.01, (n, K)) if random_init else np.ones((n, K))
        rows = X if sp.issparse(X) else sp.csr_array(X)
        options = self.doc_topic_prior_, self.max_doc_update_iter, self.mean_change_tol, np.finfo(X.dtype).eps
        words = self.exp_dirichlet_component_.T
        sums = variational_shares(rows.data, rows.indices, rows.indptr, words, gamma, *options, learn=cal_sstats)
        gamma = gamma.astype(X.dtype, copy=False)
        if not cal_sstats:
            return gamma, None
        return gamma, (sums.T * self.exp_dirichlet_component_).astype(self.components_.dtype, copy=False)

    def _small_e_step(self, X: Any, cal_sstats: bool, random_init: bool) -> tuple[Array, Array | None]:
        """E-step in numpy: all documents together, and those that need many iterations one by one."""
        (n, _), K, topics = X.shape, self.n_components, self.exp_dirichlet_component_
        source, options = self.random_state_ if random_init else None, (self.doc_topic_prior_, self.mean_change_tol)
        if n < TOGETHER:  # scikit-learn's loop, without joblib around it
            gamma, sums = _update_doc_distribution(
                X, topics, options[0], self.max_doc_update_iter, options[1], cal_sstats, source
            )
            return gamma, sums * topics if cal_sstats else None
        gamma = (np.ones((n, K)) if source is None else source.gamma(100.0, 0.01, (n, K))).astype(X.dtype, copy=False)
        rows = sp.csr_array(X)
        left, after = share_together(rows, topics, gamma, *options, self.max_doc_update_iter)
        share_alone(rows, topics, gamma, left, *options, self.max_doc_update_iter - after)
        if not cal_sstats:
            return gamma, None
        shares = expected_shares(gamma)
        return gamma, (Ratios(rows, topics.T).of(shares).T @ shares).T * topics


class Ratios:
    """Counts of documents divided by the expected probabilities of their words."""

    def __init__(self, rows: sp.csr_array, words: Array) -> None:
        self.rows, self.eps = rows, np.finfo(rows.dtype).eps
        self.document = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))  # of each entry
        self.words = words.take(rows.indices, axis=0)  # (entries, K)
        self.ratio = sp.csr_array((rows.data.copy(), rows.indices, rows.indptr), shape=rows.shape)

    def of(self, shares: Array) -> sp.csr_array:
        """Return the (n, V) ratios under these shares; the next call overwrites them."""
        expected = np.einsum("ek,ek->e", shares.take(self.document, axis=0), self.words)
        np.divide(self.rows.data, expected + self.eps, out=self.ratio.data)
        return self.ratio


def share_together(
    rows: sp.csr_array, topics: Array, gamma: Array, prior: float, tolerance: float, most: int
) -> tuple[Array, int]:
    """Update γ of all documents, until few are left; return these and the number of iterations."""
    words, live, own, before = np.ascontiguousarray(topics.T), np.arange(len(gamma)), gamma, 0
    while before < most and len(live) >= TOGETHER:
        ratios = Ratios(rows if own is gamma else rows[live], words)
        own, shares, going = gamma[live], expected_shares(gamma[live]), np.ones(len(live), dtype=bool)
        while before < most and 2 * np.count_nonzero(going) > len(going):
            updated = shares * (ratios.of(shares) @ words) + own.dtype.type(prior)
            changed = ~(np.abs(updated - own).mean(axis=1) < tolerance)
            own = np.where(going[:, None], updated, own)  # a document keeps its γ once it has changed little
            shares, before = expected_shares(own), before + 1
            going &= changed
        gamma[live], live = own, live[going]
    return live, before


def share_alone(
    rows: sp.csr_array, topics: Array, gamma: Array, documents: Array, prior: float, tolerance: float, most: int
) -> None:
    """Update γ of some documents, one after the other."""
    kind, eps = "float" if rows.dtype == np.float32 else "double", np.finfo(rows.dtype).eps
    expect, change = (
        _dirichlet_expectation_1d[kind],
        mean_change[kind],
    )  # chosen once: the choice takes longer than a call
    for d, shares in zip(documents, expected_shares(gamma[documents]), strict=True):
        entries = slice(rows.indptr[d], rows.indptr[d + 1])
        counts, words, own = rows.data[entries], topics.take(rows.indices[entries], axis=1), gamma[d]
        by_word = words.T
        for _ in range(most):
            last, own = own, shares * (counts / (shares @ words + eps) @ by_word)
            expect(own, prior, shares)  # adds the prior to `own`
            if change(last, own) < tolerance:
                break
        gamma[d] = own


def expected_shares(gamma: Array) -> Array:
    """Return exp(ψ(γ) − ψ(Σ γ)), with scikit-learn's approximation of ψ."""
    return np.exp(_dirichlet_expectation_2d(gamma))
