"""Decompositions of scikit-learn: principal components from sums, and topics on deciban's kernels.

Principal components: rows are added, removed and merged without reading the others again. Solver "full" decomposes the
centred rows. Where there are at least twice as many rows as columns, and the eigenvalues of the covariance are far
enough from 0 and from each other for ten digits, the same components come from the eigenvectors of the sums of
products, in a tenth of the time. Solver "covariance_eigh" works from products already.

Topics: the E-step over all documents is one compiled loop.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn.decomposition as theirs
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.base import _fit_context
from sklearn.decomposition._lda import _update_doc_distribution
from sklearn.decomposition._online_lda_fast import _dirichlet_expectation_1d, _dirichlet_expectation_2d, mean_change
from sklearn.decomposition._pca import _infer_dimension
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from deciban.errors import MergeError, NotAvailableError, NotLearntError
from deciban.kernels.choice import compiled
from deciban.kernels.latent import ITERATIONS, variational_shares
from deciban.sklearn.dropin import ROWS, Array, DropIn, Shapes, check_arrays
from deciban.sklearn.moments import Moments
from deciban.statistics import Additive
from deciban.store.checks import require
from deciban.store.estimators import LARGEST

TOGETHER = 8  # documents from which on one numpy iteration for all is faster than one for each
LEAST = 2e-5  # least eigenvalue and least gap, relative to the largest eigenvalue, that keep ten digits


class PCA(DropIn, Additive, theirs.PCA):
    """Principal component analysis with scikit-learn's interface, and with rows that can be added and removed.

    Solver "full" of rows that are at least twice as many as the columns uses sums of products where these keep ten
    digits. Sparse rows and the other solvers are left to scikit-learn. After "full" and "covariance_eigh", one of
    which "auto" takes for most tables, `partial_fit`, `unlearn` and `+` change the components without the learnt rows.

    Parameters
    ----------
    n_components : int, float or "mle", default=None
        Number of components, the share of the variance that they have, or Minka's estimate; all if None.
    copy : bool, default=True
        Whether rows are left unchanged.
    whiten : bool, default=False
        Whether transformed rows have variance 1.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        How components are found.
    tol : float, default=0.0
        Tolerance of solver "arpack".
    iterated_power : int or "auto", default="auto"
        Number of power iterations of solver "randomized".
    n_oversamples : int, default=10
        Number of further random vectors of solver "randomized".
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Normaliser of solver "randomized".
    random_state : int, RandomState instance or None, default=None
        Source of random numbers of solvers "arpack" and "randomized".

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Directions of largest variance, the largest first.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (n_components,)
        Variance along each direction, its share, and the singular values of the centred rows.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    n_components_ : int
        Number of components.
    n_samples_ : int or float
        Number of rows, or sum of their weights.
    noise_variance_ : float
        Mean variance of the directions that were left out.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5.0, 1.0, 0.1]
    >>> one, other = PCA(2).fit(X[:60]), PCA(2).fit(X[60:])
    >>> bool(np.allclose((one + other).components_, PCA(2).fit(X).components_))
    True
    """

    _spectrum: tuple[Array, Array] | None  # all singular values and directions; None after a truncated solver

    def fitted_shapes(self) -> Shapes:
        own = {"components_": "C D real", "mean_": "D real", "n_components_": "C size", "n_samples_": "number"}
        own |= dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), "C count")
        own |= {"_spectrum": "optional other", "_fit_svd_solver": "optional text"}
        return {**ROWS, **own, "noise_variance_": "number"}

    def check_fitted(self) -> None:
        held = self.__dict__.setdefault("_spectrum", None)  # not in former files
        self.__dict__.setdefault("_fit_svd_solver", self.svd_solver)
        variances = np.append(np.asarray(self.explained_variance_, dtype=float), self.noise_variance_)
        right = ((variances == 0) | (variances >= 1 / LARGEST)).all()  # their inverses are finite
        require(right and self.n_samples_ >= 1, "PCA", "a number of rows, and variances of at least 0")
        if held is not None:
            require(type(held) is tuple and len(held) == 2, "_spectrum", "singular values and directions")
            check_arrays(held[:1], [None], "_spectrum", lambda values: (values >= 0).all())
            check_arrays(held[1:], [(len(held[0]), self.n_features_in_)], "_spectrum")
            _check_orthonormal(held[1], "_spectrum")
        _check_orthonormal(self.components_, "components_")

    def _unsupported(self) -> str | None:
        return None if self.svd_solver in ("auto", "full") else f"svd_solver={self.svd_solver!r}"

    def _fit(self, X: Any) -> Any:
        self._spectrum = None
        found = super()._fit(X)
        if self._fit_svd_solver in ("full", "covariance_eigh") and not sp.issparse(X):
            self._spectrum = np.asarray(found[1]), np.asarray(found[2])
        return found

    def _fit_full(self, X: Any, n_components: Any, xp: Any, is_array_api_compliant: bool) -> Any:
        n, D = X.shape
        suits = self._fit_svd_solver == "full" and n >= 2 * D and (isinstance(n_components, str) or n_components <= D)
        if suits and self._runs(X):
            moments = Moments.of(X, np.zeros(n, dtype=np.intp), None, 1)
            values, vectors = np.linalg.eigh(moments.scatter[0])
            if keeps_digits(values[::-1], D if isinstance(n_components, str) or n_components < 1 else n_components):
                S, Vt = self._set_moments(n, moments.mean[0], n_components, X.dtype, values, vectors)
                return None, S, Vt, X, False, xp
        return super()._fit_full(X, n_components, xp, is_array_api_compliant)

    def _set_moments(
        self, n: float, mean: Array, n_components: Any, dtype: Any, values: Array, vectors: Array
    ) -> tuple[Array, Array]:
        """Set attributes from ascending eigenvalues of the scatter; return all singular values and directions."""
        D = len(values)
        values = np.maximum(values[::-1], 0.0)
        _, Vt = svd_flip(None, np.ascontiguousarray(vectors[:, ::-1].T), u_based_decision=False)
        variance = values / (n - 1)
        ratio = variance / variance.sum()
        if isinstance(n_components, str):
            n_components = _infer_dimension(variance, n)
        elif 0 < n_components < 1:
            n_components = int(np.searchsorted(np.cumsum(ratio), n_components, side="right")) + 1
        rest = variance[n_components:]
        self.noise_variance_ = rest.mean().astype(dtype) if n_components < min(n, D) else 0.0
        self.n_samples_, self.n_components_ = n, n_components
        self.mean_ = mean.astype(dtype)
        self.components_ = Vt[:n_components].astype(dtype)
        self.explained_variance_ = variance[:n_components].astype(dtype)
        self.explained_variance_ratio_ = ratio[:n_components].astype(dtype)
        self.singular_values_ = np.sqrt(values[:n_components]).astype(dtype)
        return np.sqrt(values), Vt

    def get_precision(self) -> Array:
        """Return the inverse of the covariance that the components and the noise variance describe.

        scikit-learn's own form divides by each explained variance minus the noise variance; where one of these
        differences is 0, which is an error there, the covariance itself is inverted here.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Inverse covariance.
        """
        noise = float(self.noise_variance_)
        if noise > 0 and (np.asarray(self.explained_variance_) <= noise).any():
            return np.linalg.inv(self.get_covariance())
        return super().get_precision()

    # -- sums --------------------------------------------------------------------------------------------------------
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows; the components are then those of all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows.

        Returns
        -------
        PCA
            The transformer.
        """
        new = not hasattr(self, "components_")
        more, dtype = self._moments_of(X, sample_weight, reset=new)
        return self._resolve(more if new else self._learnt().plus(more), dtype if new else self.mean_.dtype)

    def unlearn(self, X: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt before; the components are then those of the other rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights with which the rows were learnt.

        Returns
        -------
        PCA
            The transformer.

        Raises
        ------
        NotLearntError
            If the sums show that a row was never learnt, or fewer than two rows are left. Nothing is changed.
        """
        check_is_fitted(self)
        left = self._learnt().without(self._moments_of(X, sample_weight, reset=False)[0])
        if left.weight[0] <= 1:
            raise NotLearntError("fewer than two rows would be left.")
        return self._resolve(left, self.mean_.dtype)

    def __add__(self, other: Self) -> Self:
        """Return the components of the rows of both."""
        if type(other) is not type(self) or other.get_params() != self.get_params():
            raise MergeError("PCA objects can be added if they have the same parameters.")
        check_is_fitted(self)
        check_is_fitted(other)
        if other.n_features_in_ != self.n_features_in_:
            raise MergeError("the PCA objects were fitted on different numbers of features.")
        return deepcopy(self)._resolve(self._learnt().plus(other._learnt()), self.mean_.dtype)

    def _moments_of(self, X: Any, sample_weight: Any, reset: bool) -> tuple[Moments, Any]:
        """Moments of rows, and the type of the attributes of a fit to them."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
        weight = None if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, X), dtype=float)
        return Moments.of(X, np.zeros(len(X), dtype=np.intp), weight, 1), X.dtype

    def _learnt(self) -> Moments:
        """Moments of the learnt rows."""
        if getattr(self, "_spectrum", None) is None:
            raise NotAvailableError(
                f"solver {self._fit_svd_solver!r} does not find all directions: rows cannot be added or removed. "
                "Fit with svd_solver='covariance_eigh'."
            )
        S, Vt = (np.asarray(each, dtype=float) for each in self._spectrum)  # type: ignore[union-attr]
        mean, scatter = np.asarray(self.mean_, dtype=float), (Vt.T * S**2) @ Vt
        return Moments(np.array([float(self.n_samples_)]), mean[None], scatter[None])

    def _resolve(self, moments: Moments, dtype: Any) -> Self:
        """Find the components of moments."""
        (n,), (mean,), (scatter,) = moments.weight.tolist(), moments.mean, moments.scatter
        D = len(mean)
        if n <= 1:
            raise NotAvailableError("components need two rows or more. Learn them together in the first call.")
        most = min(D, int(np.ceil(n)))
        wanted = most if self.n_components is None else self.n_components
        if not isinstance(wanted, str) and wanted > most:
            raise NotAvailableError(f"n_components={wanted} is more than min(rows, columns)={most}. Learn more.")
        self._fit_svd_solver = "covariance_eigh"
        self._spectrum = self._set_moments(n, mean, wanted, dtype, *np.linalg.eigh(scatter))
        return self


def _check_orthonormal(rows: Any, name: str) -> None:
    """Raise ModelFileError unless rows are orthonormal, to about two digits."""
    products = np.asarray(rows, dtype=float) @ np.asarray(rows, dtype=float).T
    require(np.abs(products - np.eye(len(rows))).max(initial=0.0) < 1e-2, name, "orthonormal directions")


def keeps_digits(values: Array, kept: int) -> bool:
    """Whether the first directions are far enough from the others, by descending eigenvalues, to be found from sums."""
    least = LEAST * values[0]
    return bool(kept > 0 and values[kept - 1] > least and (values[:-1] - values[1:])[:kept].min(initial=np.inf) > least)


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
        n, K = X.shape[0], self.n_components
        topics = self.exp_dirichlet_component_[:, : X.shape[1]]  # scikit-learn accepts rows without the last words
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
        self.document = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))  # document of each entry
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
    """Update γ of all documents until few have not converged; return these and the number of iterations."""
    words, live, own, before = np.ascontiguousarray(topics.T), np.arange(len(gamma)), gamma, 0
    while before < most and len(live) >= TOGETHER:
        ratios = Ratios(rows if own is gamma else rows[live], words)
        own, shares, going = gamma[live], expected_shares(gamma[live]), np.ones(len(live), dtype=bool)
        while before < most and 2 * np.count_nonzero(going) > len(going):
            updated = shares * (ratios.of(shares) @ words) + own.dtype.type(prior)
            changed = ~(np.abs(updated - own).mean(axis=1) < tolerance)
            own = np.where(going[:, None], updated, own)  # γ of a converged document does not change
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
    )  # looked up once, because the lookup takes longer than a call
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
