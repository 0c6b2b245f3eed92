"""Contract of the drop-in classes: when deciban's kernels run, when scikit-learn's own code runs, and how it is logged.

A drop-in is a subclass of scikit-learn's class of the same name. It has scikit-learn's constructor, validation, tags
and attributes, and replaces the methods in which time is spent. Where the kernels lack an argument, an input is small,
or the installed scikit-learn was not tested, the inherited method runs.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import warnings
from abc import ABCMeta
from collections.abc import Container
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

from deciban import kernels
from deciban.errors import ModelFileError
from deciban.kernels.choice import compiled
from deciban.sklearn.attributes import SHAPES, check_fitted

Array = NDArray[Any]

TESTED = ("1.9",)  # versions of scikit-learn whose own tests were run against the drop-ins
WORK = 20  # operations of a value: below 50,000 values, scikit-learn's own code is about as fast
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
    """Whether a class is a drop-in that stands in the place of scikit-learn's class."""
    original = cls.original if isinstance(cls, DropInType) and cls.__module__.startswith(PACKAGE) else None
    if original is None:
        return False
    home = sys.modules.get(original.__module__)
    return home is not None and vars(home).get(cls.__name__) is cls


class DropIn(metaclass=DropInType):
    """Base class of the drop-ins."""

    if TYPE_CHECKING:  # attributes and methods of scikit-learn's class that stands further on among the parents

        def __getattr__(self, name: str) -> Any: ...

    _defaults: ClassVar[dict[str, Any] | None] = None  # of the parameters; None for a class that a user derived

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

    def fitted_shapes(self) -> dict[str, str]:
        """Return the shapes of the attributes that a model file holds, by name.

        Returns
        -------
        dict
            Description of each attribute, in the words of `deciban.store.estimators`.
        """
        return SHAPES[self._original_name(SHAPES)](self)

    def check_fitted(self) -> None:
        """Raise ModelFileError if fitted attributes that were read from a file contradict each other."""
        check_fitted(self, self._original_name(SHAPES))

    def _original_name(self, known: Container[str]) -> str:
        """Return the name of the drop-in that this class is or inherits from."""
        found = next((base.__name__ for base in type(self).__mro__ if base.__name__ in known), None)
        if found is None:
            raise ModelFileError(
                f"{type(self).__name__} cannot be saved in a model file.", remedy="Use pickle or joblib for it."
            )
        return found

    def _unsupported(self) -> str | None:
        """Return the parameter that the kernels do not have, or None."""
        return None

    def _runs(self, X: Any = None, few: bool = False) -> bool:
        """Whether deciban serves these parameters and this input, if `few` also a small one; else logs why."""
        reason = self._unsuitable(X, few)
        if reason is None or log.isEnabledFor(logging.INFO):  # the log names parameters before the size of the input
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

    Small inputs are given to scikit-learn's own code all the same, where it is as fast.

    Parameters
    ----------
    estimator : estimator
        Any estimator of scikit-learn or of deciban.

    Returns
    -------
    bool
        False for an estimator that is none of the drop-ins, or that has parameters that only scikit-learn's own
        implementation has.

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
            classes = np.array(classes.tolist())  # as scikit-learn's unique_labels has them
        return classes, codes.reshape(-1)
    return found


def place_labels(y: Array, classes: Array) -> Array | None:
    """Positions of labels among sorted classes; None if one of them is unknown."""
    found = encode_labels(y)
    if found is None or not np.isin(found[0], classes).all():
        return None
    return np.searchsorted(classes, found[0])[found[1]]
