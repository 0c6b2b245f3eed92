"""Base classes of the drop-ins: their contract with scikit-learn, and their additional methods.

A drop-in is a subclass of scikit-learn's class of the same name. It has scikit-learn's constructor, validation, tags
and attributes, and replaces the methods in which time is spent. Where the kernels lack an argument, an input is small,
or the installed scikit-learn was not tested, the inherited method runs. The logger tells which library runs, and why.

Drop-in classifiers add likelihood ratios, other priors, unlearning, merging and leave-one-out.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted, column_or_1d

from deciban import kernels
from deciban.errors import (
    HyperparameterError,
    MergeError,
    ModelFileError,
    NotAvailableError,
    NotLearntError,
    UnknownLabelError,
)
from deciban.evidence.decisions import resolve_prior
from deciban.evidence.scores import log_probability
from deciban.kernels.choice import compiled
from deciban.statistics import Additive
from deciban.store.checks import require
from deciban.store.estimators import LARGEST

Array = NDArray[Any]
Shapes = dict[str, str]  # attribute → description of its shape, in the notation of `deciban.store.estimators`

TESTED = ("1.9",)  # versions of scikit-learn whose own tests were run against the drop-ins
ROWS: Shapes = {"n_features_in_": "D size", "feature_names_in_": "optional D names"}
WORK = 20  # operations for each value; below 50,000 values, scikit-learn's own code is about as fast
PACKAGE = __name__.rpartition(".")[0]


class OncePerReason(logging.Filter):
    """Passes each message once in a process."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message is new."""
        message = record.getMessage()
        new = message not in self.passed
        self.passed.add(message)
        return new


def _logger() -> logging.Logger:
    """The logger of the drop-ins; `DECIBAN_LOG=info` prints it on standard error."""
    logger = logging.getLogger(PACKAGE)
    if not logger.filters:
        logger.addFilter(OncePerReason())
    level = os.environ.get("DECIBAN_LOG", "").upper()
    if level and not logger.handlers:
        logger.addHandler(logging.StreamHandler(sys.stderr))
        logger.setLevel(getattr(logging, level, logging.INFO))
        logger.propagate = False
    return logger


log = _logger()


def supported() -> bool:
    """Whether the drop-ins were tested with the installed version of scikit-learn."""
    return ".".join(sklearn.__version__.split(".")[:2]) in TESTED


if not supported():
    warnings.warn(
        f"deciban.sklearn was tested with scikit-learn {', '.join(TESTED)}, not with {sklearn.__version__}: "
        "its classes run scikit-learn's own code.",
        stacklevel=2,
    )


class DropInType(ABCMeta):
    """Type of the drop-ins. While scikit-learn is patched, a drop-in stands for scikit-learn's class in three ways.

    A class that a user derives from it is derived from scikit-learn's class; instances and subclasses of scikit-learn's
    class count as its own.
    """

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        """Create a drop-in, or a subclass of scikit-learn's class in its place."""
        theirs = tuple(getattr(base, "original", base) if is_patched(base) else base for base in bases)
        if theirs == bases or namespace.get("__module__", "").startswith(PACKAGE):
            return super().__new__(mcls, name, bases, namespace, **options)
        plain: type = type
        for base in theirs:
            plain = type(base) if issubclass(type(base), plain) else plain
        return plain(name, theirs, namespace, **options)

    @property
    def original(cls) -> type | None:
        """Scikit-learn's class of the same name; None for a class that several drop-ins share."""
        named = (base for base in cls.__mro__ if base.__name__ == cls.__name__ and not isinstance(base, DropInType))
        return next(named, None)

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.original in type(instance).__mro__ if is_patched(cls) else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls.original in subclass.__mro__ if is_patched(cls) else super().__subclasscheck__(subclass)


def is_patched(cls: type) -> bool:
    """Whether a class is a drop-in that has replaced scikit-learn's class."""
    original = cls.original if isinstance(cls, DropInType) and cls.__module__.startswith(PACKAGE) else None
    if original is None:
        return False
    home = sys.modules.get(original.__module__)
    return home is not None and vars(home).get(cls.__name__) is cls


class DropIn(metaclass=DropInType):
    """Base class of the drop-ins."""

    if TYPE_CHECKING:  # attributes and methods of scikit-learn's class, which is a later base class

        def __getattr__(self, name: str) -> Any: ...

    _defaults: ClassVar[dict[str, Any] | None] = None  # defaults of the parameters; None for classes of users

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        parameters = inspect.signature(cls.__init__).parameters
        own = cls.__module__.startswith(PACKAGE)
        cls._defaults = {name: parameters[name].default for name in sorted(parameters)} if own else None

    def _validate_params(self) -> None:
        """Check the parameters that differ from their defaults, which are valid.

        scikit-learn checks all of them in every fit, which takes up to a fifth of the time of a fit of few rows.
        """
        if self._defaults is None:
            super()._validate_params()  # type: ignore[misc]
            return
        given = vars(self)
        changed = {name: given[name] for name, value in self._defaults.items() if given.get(name, value) is not value}
        if changed:
            validate_parameter_constraints(self._parameter_constraints, changed, type(self).__name__)

    def fitted_shapes(self) -> Shapes:
        """Return the shapes of the attributes that a model file holds, by name.

        Returns
        -------
        dict
            Description of each attribute, in the notation of `deciban.store.estimators`.

        Raises
        ------
        ModelFileError
            If model files cannot hold this class.
        """
        raise ModelFileError(
            f"{type(self).__name__} cannot be saved in a model file.", remedy="Use pickle or joblib for it."
        )

    def check_fitted(self) -> None:
        """Raise ModelFileError if fitted attributes that were read from a file contradict each other."""

    def _unsupported(self) -> str | None:
        """Return a parameter that the kernels do not support, or None."""
        return None

    def _runs(self, X: Any = None, few: bool = False) -> bool:
        """Whether the kernels run for these parameters and this input, also small ones if `few`; log why not."""
        reason = self._unsuitable(X, few)
        if reason is None or log.isEnabledFor(logging.INFO):  # the log prefers a reason among the parameters
            reason = self._reason() or reason
        return self._log(reason)

    def _log(self, reason: str | None) -> bool:
        """Log which library runs, scikit-learn if there is a reason; return whether deciban does."""
        if log.isEnabledFor(logging.INFO):
            engine = "deciban" if reason is None else f"scikit-learn, because {reason}"
            log.info("%s: %s", type(self).__name__, engine)
        return reason is None

    def _reason(self) -> str | None:
        if not supported():
            return f"scikit-learn {sklearn.__version__} was not tested"
        if sklearn.get_config()["array_api_dispatch"]:
            return "array_api_dispatch is on"
        return self._unsupported()

    def _unsuitable(self, X: Any, few: bool = False) -> str | None:
        """Return why an input is left to scikit-learn, or None."""
        if X is None:
            return None
        shape = getattr(X, "shape", None)
        if shape is None or len(shape) != 2:
            return "the input is not an array"
        if few:
            return None
        size = getattr(X, "nnz", None)
        values = shape[0] * shape[1] if size is None else size
        return None if compiled(WORK * values) else "the input is small"


def is_accelerated(estimator: BaseEstimator) -> bool:
    """Whether deciban's kernels serve an estimator with its present parameters.

    Small inputs always run scikit-learn's own code, which is as fast for them.

    Parameters
    ----------
    estimator : estimator
        Any estimator of scikit-learn or of deciban.

    Returns
    -------
    bool
        False for an estimator that is not a drop-in, or with parameters that only scikit-learn's own code supports.

    Examples
    --------
    >>> from deciban.sklearn import LinearDiscriminantAnalysis, is_accelerated
    >>> is_accelerated(LinearDiscriminantAnalysis())
    True
    >>> is_accelerated(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
    False
    """
    return isinstance(type(estimator), DropInType) and estimator._reason() is None


def encode_labels(y: Array) -> tuple[Array, Array] | None:
    """Sorted classes and the class code of each label; None for labels that scikit-learn should check."""
    y = np.asarray(y)
    if y.ndim != 1 or y.dtype.kind not in "iubUO" or not len(y):
        return None
    found = kernels.encode_integers(y) if y.dtype.kind in "iub" else None
    if found is None:
        try:
            classes, codes = np.unique(y, return_inverse=True)
        except TypeError:
            return None
        if y.dtype.kind == "O":
            if not all(isinstance(each, str) for each in classes):
                return None
            classes = np.array(classes.tolist())  # of the type that scikit-learn's unique_labels returns
        return classes, codes.reshape(-1)
    return found


def place_labels(y: Array, classes: Array) -> Array | None:
    """Positions of labels among sorted classes; None if one of them is unknown."""
    found = encode_labels(y)
    if found is None or not np.isin(found[0], classes).all():
        return None
    return np.searchsorted(classes, found[0])[found[1]]


# -- checks of attributes that were read from a file -------------------------------------------------------------------
def check_arrays(
    parts: Iterable[Any],
    shapes: Iterable[tuple[int, ...] | None],
    name: str,
    good: Callable[[Any], Any] = lambda array: True,
    finite: bool = True,
) -> None:
    """Check a list of arrays of floats; None stands for any length of an array of one axis."""
    for part, shape in zip(parts, shapes, strict=True):
        right = isinstance(part, np.ndarray) and part.dtype in (np.float64, np.float32)
        right = right and (part.ndim == 1 if shape is None else part.shape == shape)
        right = right and bool((np.abs(part) <= LARGEST).all() if finite else not np.isnan(part).any())
        require(right and good(part), name, "arrays of numbers that fit together")


# -- additions to classifiers ------------------------------------------------------------------------------------------
ROUNDING = 1e-12  # share of the learnt weight that counts as 0 after rows were removed


class Ratios(DropIn):
    """Likelihood ratios between classes, or between the components of a mixture."""

    classes_: Array

    def _log_likelihood(self, X: Any) -> Array:
        """Return log f(x|class), up to a term that all classes share: shape (n, K)."""
        raise NotImplementedError

    def _log_prior(self, prior: Any = None) -> Array:
        """Return the log class probabilities in the scores, or those given."""
        raise NotImplementedError

    def _names(self) -> Array:
        return self.classes_

    def _position(self, name: Any) -> int:
        found = np.flatnonzero(self._names() == name)
        if not len(found):
            raise UnknownLabelError(f"{name!r} is no class of this {type(self).__name__}: {self._names().tolist()}.")
        return int(found[0])

    def llr(self, X: Any, positive: Any = None, negative: Any = None) -> Array:
        """Return log-likelihood ratios, which do not depend on class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        positive, negative : label, default=None
            The two classes. With two classes in all, the second over the first if not given. With more classes and
            `negative` not given, against all others, in the proportions that were learnt.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of the ratios.
        """
        check_is_fitted(self)
        K = len(self._names())
        if positive is None and K != 2:
            raise HyperparameterError(f"there are {K} classes: name the class of the numerator.")
        scores = self._log_likelihood(X)
        top = 1 if positive is None else self._position(positive)
        if negative is not None:
            return scores[:, top] - scores[:, self._position(negative)]
        others = np.flatnonzero(np.arange(K) != top)
        weights = self._log_prior()[others]
        return scores[:, top] - kernels.log_sum_exp(scores[:, others] + weights - np.logaddexp.reduce(weights))


class Evidence(Ratios):
    """Posteriors under other class probabilities than the learnt ones."""

    def fitted_shapes(self) -> Shapes:
        return {**ROWS, "classes_": "K labels"}

    def check_fitted(self) -> None:
        for name in ("priors", "class_prior"):
            prior = getattr(self, name, None)
            require(prior is None or np.shape(prior) == self.classes_.shape, name, "a probability for each class")

    def _less_prior(self, joint: Array) -> Array:
        """Return joint log probabilities without the log prior; a class without rows has no density, -inf."""
        own = self._log_prior()
        none = np.isneginf(own)
        return np.where(none, -np.inf, joint - np.where(none, 0.0, own)) if none.any() else joint - own

    def _as_log_prior(self, prior: Any, names: Array | None = None) -> Array:
        """Check class probabilities, an array or {class: probability}; the rest is shared by classes not named."""
        return log_probability(resolve_prior(prior, self.classes_ if names is None else names))

    def predict(self, X: Any, prior: Any = None) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_classes,) or dict, default=None
            Class probabilities in place of the learnt ones.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        if prior is None:
            return super().predict(X)  # type: ignore[misc]
        return self.classes_[(self._log_likelihood(X) + self._log_prior(prior)).argmax(axis=1)]

    def _posterior(self, X: Any, prior: Any, logs: bool) -> Array:
        """Return posterior probabilities, or their logarithms: (n, K)."""
        if prior is None:
            return super().predict_log_proba(X) if logs else super().predict_proba(X)  # type: ignore[misc]
        return (kernels.log_softmax if logs else kernels.softmax)(self._log_likelihood(X) + self._log_prior(prior))

    def predict_proba(self, X: Any, prior: Any = None) -> Array:
        """Return posterior probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_classes,) or dict, default=None
            Class probabilities in place of the learnt ones.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probability of each class.
        """
        return self._posterior(X, prior, logs=False)

    def predict_log_proba(self, X: Any, prior: Any = None) -> Array:
        """Return log posterior probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_classes,) or dict, default=None
            Class probabilities in place of the learnt ones.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log probability of each class.
        """
        return self._posterior(X, prior, logs=True)


class LeaveOneOut:
    """Leave-one-out answers of classifiers."""

    classes_: Array
    _log_prior: Any

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        """Return log-likelihoods of rows without them, (n, K), and the weights of the classes."""
        raise NotAvailableError(f"{type(self).__name__} has no leave-one-out scores.")

    def leave_one_out(
        self, X: Any, y: Any, method: Literal["predict_proba", "predict_log_proba", "predict"] = "predict_proba"
    ) -> Array:
        """Answer for each learnt row as the classifier fitted without it would, without refitting.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were learnt, each with weight 1.
        y : array-like of shape (n_samples,)
            Their labels.
        method : {"predict_proba", "predict_log_proba", "predict"}, default="predict_proba"
            What to return.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Probabilities, their logarithms, or labels.
        """
        check_is_fitted(self)
        codes = self._known_codes(y)
        try:
            scores, count = self._left_out(X, codes)
        except HyperparameterError as error:  # alpha=0: without the row, some of its values have probability 0
            raise NotAvailableError(
                f"{type(self).__name__} with these parameters has no leave-one-out scores: {error}"
            ) from None
        scores = scores + self._left_out_prior(np.asarray(count, dtype=float), codes)
        if method == "predict":
            return self.classes_[scores.argmax(axis=1)]
        return (kernels.softmax if method == "predict_proba" else kernels.log_softmax)(scores)

    def _left_out_prior(self, count: Array, codes: Array) -> Array:
        """Return log class probabilities without each row: (n, K), or (K,) if they were not learnt."""
        if not self._learns_prior():
            return self._log_prior()
        left = np.repeat(count[None, :], len(codes), axis=0)
        left[np.arange(len(codes)), codes] -= 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(left / left.sum(axis=1, keepdims=True))

    def _learns_prior(self) -> bool:
        given = getattr(self, "priors", None) is not None or getattr(self, "class_prior", None) is not None
        return not given and getattr(self, "fit_prior", True)

    def _known_codes(self, y: Any, names: Array | None = None) -> Array:
        y, names = column_or_1d(y), self.classes_ if names is None else names
        codes = place_labels(y, names)
        if codes is None and y.dtype.kind == "f" and np.isin(y, names).all():
            codes = np.searchsorted(names, y)
        if codes is None:
            raise UnknownLabelError(f"y holds labels that this classifier does not know; it knows {names.tolist()}.")
        return codes


class Sums(LeaveOneOut, Additive):
    """Unlearning and merging of classifiers whose fitted attributes are sums over rows."""

    class_count_: Array
    _take: Any
    _sums: Any
    _merge: Any

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt before; the classifier is then as if they had not been learnt.

        A number that was added to variances (`epsilon_`) is kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights with which the rows were learnt.

        Returns
        -------
        estimator
            The classifier.

        Raises
        ------
        NotLearntError
            If the sums show that a row was never learnt. The classifier is unchanged.
        NotAvailableError
            If no row would be left. The classifier is unchanged.
        """
        check_is_fitted(self)
        self._take(X, y, sample_weight, -1.0)
        return self

    def __add__(self, other: Self) -> Self:
        """Return the classifier of the rows of both."""
        if type(other) is not type(self) or other.get_params() != self.get_params():  # type: ignore[attr-defined]
            raise MergeError("classifiers can be added if they have the same class and parameters.")
        check_is_fitted(self)
        check_is_fitted(other)
        if other.n_features_in_ != self.n_features_in_:  # type: ignore[attr-defined]
            raise MergeError("the classifiers were fitted on different numbers of features.")
        both = deepcopy(self)
        both.classes_ = np.union1d(self.classes_, other.classes_)
        K = len(both.classes_)
        mine, theirs = (
            each._select_classes(each._sums(), np.searchsorted(both.classes_, each.classes_), K)
            for each in (self, other)
        )
        both._merge(mine, theirs)
        return both

    def _select_classes(self, sums: tuple[Array, ...], at: Array, K: int) -> tuple[Array, ...]:
        """Place the sums of each class at positions among K classes; others are 0."""
        placed = tuple(np.zeros((K, *each.shape[1:])) for each in sums)
        for new, old in zip(placed, sums):
            new[at] = old
        return placed

    def _require_rows(self, count: Array) -> None:
        """Refuse weights of classes without any row: there would be no class probabilities."""
        if not (count > ROUNDING * max(1.0, np.abs(self.class_count_).max(initial=0.0))).any():
            raise NotAvailableError(
                f"{type(self).__name__} would have no rows left. Keep some of them, or use a new classifier."
            )

    def _never_learnt(self) -> NotLearntError:
        return NotLearntError("rows to unlearn were never learnt: counts would fall below 0.")
