"""Topics of scikit-learn on deciban's kernels: the E-step over all documents is one compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.decomposition as theirs
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.decomposition._lda import _update_doc_distribution

from deciban.kernels.choice import compiled
from deciban.kernels.variational import ITERATIONS, variational_shares
from deciban.sklearn.dropin import Array, DropIn


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
        """E-step by scikit-learn's loop over documents, called without joblib, which takes longer to start."""
        options = self.doc_topic_prior_, self.max_doc_update_iter, self.mean_change_tol, cal_sstats
        source = self.random_state_ if random_init else None
        gamma, sums = _update_doc_distribution(X, self.exp_dirichlet_component_, *options, source)
        if cal_sstats:
            sums = sums.astype(self.components_.dtype, copy=False) * self.exp_dirichlet_component_
        return gamma, sums
