"""The record of any estimator in a file: its parameters and fitted attributes, which have declared shapes.

A class whose attributes are arrays of one another's sizes has a method `fitted_shapes()`, which returns a description
of each attribute by its name, with the parameters of the estimator taken into account:

    "K D real"          an array of floats of these axes; a letter stands for the same size in all attributes
    "D whole"           an array of integers of at least 0
    "D factor"          an array of floats from 0 to 1e15
    "K labels"          distinct labels in ascending order
    "D names"           texts
    "D size"            an integer, the size of an axis
    "D list"            a list of as many parts, which the method `check_fitted` examines
    "number", "flag", "text"    one of these
    "other"             what the method `check_fitted` examines
    "optional …"        an attribute that may be absent

Only these attributes are saved and loaded. What shapes cannot express is checked by the method `check_fitted()`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from deciban.errors import HyperparameterError, ModelFileError
from deciban.families.parameters import check_ranges
from deciban.model.ledger import Secret
from deciban.store import registry
from deciban.store.checks import KINDS, check_types, require

LARGEST = 1e100  # of a parameter: its square and a sum of squares are finite
LARGEST_FACTOR = 1e15  # of a "factor": its square is finite in single precision, too
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
PACKAGES = ("deciban.estimators", "deciban.topics", "deciban.sklearn")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Estimator:
    """The parameters of an estimator and its fitted attributes, whose names end in `_`."""

    estimator: str  # name of its class
    parameters: dict[str, Any]
    fitted: dict[str, Any]

    @classmethod
    def of(cls, model: BaseEstimator) -> Estimator:
        """Return the record of a fitted estimator."""
        shapes: dict[str, str] = getattr(model, "fitted_shapes", dict)()
        fitted = {name: value for name, value in sorted(vars(model).items()) if _is_fitted(name) or name in shapes}
        if not any(map(_is_fitted, fitted)):
            raise ModelFileError(f"this {type(model).__name__} is not fitted. Fit it, then save it.")
        check_parameters(model)
        try:
            check_attributes(model)
        except ModelFileError as error:
            what = str(error).partition(". ")[0]
            raise ModelFileError(
                f"this {type(model).__name__} cannot be saved: {what}. Fit it to other rows."
            ) from None
        plain = {name: tuple(value) if isinstance(value, tuple) else value for name, value in fitted.items()}
        return cls(name_of(type(model)), model.get_params(deep=False), plain)

    def restored(self, check: Callable[[], None] | None = None, key: Secret = None) -> Any:
        """Return the estimator, after the checks that are still to be made; `key` is not used."""
        if check is not None:
            check()
        return self.put_together({})

    def put_together(self, absent: dict[str, Any]) -> Any:
        """Return the estimator with its parameters and attributes; `absent` holds attributes that a file may lack."""
        cls = find(str(self.estimator))
        model = unfitted(cls, self.parameters)
        require(type(self.fitted) is dict, self.estimator, "fitted attributes")
        known = registry.attribute_types(cls)
        shapes: dict[str, str] = getattr(model, "fitted_shapes", dict)()
        for name, value in (absent | self.fitted).items():
            held = getattr(cls, str(name), None)
            right = (_is_fitted(name) or name in shapes) and not isinstance(held, property) and not callable(held)
            require(right, str(name)[:80], "to be an attribute")
            setattr(model, name, value)
        check_types(self.estimator, known, {name: vars(model)[name] for name in known if name in vars(model)})
        check_attributes(model)
        return model


def unfitted(cls: type[T], parameters: Any) -> T:
    """Return an unfitted estimator with parameters of a file, which must have the declared types and ranges."""
    called = name_of(cls)
    require(type(parameters) is dict, called, "parameters")
    known = registry.parameter_types(cast(Hashable, cls))
    named = {registry.FORMERLY.get(f"{called}.{name}") or name: value for name, value in parameters.items()}
    require(set(named) <= set(known), called, "parameters that it has")
    check_types(called, known, named)
    model = cls(**named)
    check_parameters(model)
    return model


def check_parameters(model: Any) -> None:
    """Raise HyperparameterError if a parameter of an estimator does not have a value that `fit` accepts.

    The classes of `deciban.sklearn` have the constraints of scikit-learn. Others list the ranges of numbers in
    `RANGES`, and have a method `check_parameters` if there is more to check.
    """
    if hasattr(model, "_parameter_constraints"):
        try:
            model._validate_params()
        except ValueError as error:
            raise HyperparameterError(str(error)) from None
    if hasattr(model, "RANGES"):
        check_ranges(model)
    if hasattr(model, "check_parameters"):
        model.check_parameters()


def is_estimator(model: object) -> bool:
    """Whether a model is an estimator, which is stored by its parameters and fitted attributes."""
    return isinstance(model, BaseEstimator) and not isinstance(model, type)


def name_of(cls: type) -> str:
    """Return the name of an estimator in files: without its module if it is one of deciban's.

    Drop-ins for scikit-learn have names of deciban's own estimators (PCA), and are told apart by a prefix.
    """
    if cls.__module__.startswith("deciban.sklearn."):
        return f"sklearn.{cls.__name__}"
    return cls.__name__ if cls.__module__.startswith("deciban.") else f"{cls.__module__}.{cls.__qualname__}"


def find(name: str) -> Any:
    """Return the class of this name: one of deciban's, or a subclass of one in a module that has been imported."""
    for _ in chain([""], registry.modules_with(name.rpartition(".")[2], PACKAGES)):  # first without an import
        for cls in registry.descendants([BaseEstimator]):
            if name_of(cls) == name and any(base.__module__.startswith("deciban.") for base in cls.__mro__):
                return cls
    raise ModelFileError(
        f"the model is of the class {name[:80]}, which is not defined. Import its module, or upgrade deciban."
    )


def _is_fitted(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.endswith("_") and not name.startswith("_")


# -- shapes of fitted attributes ---------------------------------------------------------------------------------------
def check_attributes(model: Any) -> None:
    """Raise ModelFileError if fitted attributes do not have the shapes that the class declares."""
    called, held = type(model).__name__, vars(model)
    shapes: Callable[[], Mapping[str, str]] | None = getattr(model, "fitted_shapes", None)
    if shapes is not None:
        sizes: dict[str, int] = {}
        for name, described in shapes().items():
            optional = described.startswith("optional ")
            if name in held or not optional:
                require(name in held, called, f"its attribute {name!r}")
                _check(held[name], described.removeprefix("optional ").split(), sizes, f"{called}.{name}")
    if hasattr(model, "check_fitted"):
        model.check_fitted()


def _check(value: Any, described: list[str], sizes: dict[str, int], where: str) -> None:
    """Check one attribute; `sizes` holds the sizes of axes met before."""
    *axes, kind = described
    if kind in ("flag", "text", "other"):
        fits = kind == "other" or isinstance(value, str if kind == "text" else bool | np.bool_)
        require(fits, where, f"to be a {kind}")
        return
    if kind == "number":
        right = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        require(right and abs(value) <= LARGEST, where, f"to be a number of at most {LARGEST:g}")
        return
    if kind == "size":
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        require(whole and value >= 0, where, "to be a size")
        shape: tuple[int, ...] = (int(value),)
    elif kind == "list":
        require(type(value) is list, where, "to be a list")
        shape = (len(value),)
    else:
        require(isinstance(value, np.ndarray) and value.ndim == len(axes), where, f"axes ({', '.join(axes)})")
        _check_numbers(value, kind, where)
        shape = value.shape
    for axis, size in zip(axes, shape):
        require(sizes.setdefault(axis, size) == size, where, f"one size along {axis}")


def _check_numbers(array: np.ndarray[Any, Any], kind: str, where: str) -> None:
    if kind == "labels":
        right = array.dtype.kind in "biufUO" and len(array) > 0
        require(right and bool((array[1:] > array[:-1]).all()), where, "distinct labels in ascending order")
        return
    if kind == "names":
        require(array.dtype == object and all(type(name) is str for name in array), where, "texts")
        return
    good, needs = KINDS["count" if kind in ("whole", "factor") else kind]
    right = array.dtype == np.int64 if kind == "whole" else array.dtype in FLOATS
    require(right, where, "an array of numbers")
    require(np.all(good(array)), where, f"numbers that are {needs}")
    largest = LARGEST_FACTOR if kind == "factor" else LARGEST
    require(kind == "log" or np.all(np.abs(array) <= largest), where, f"numbers of at most {largest:g}")
