"""The record of any estimator in a file: its parameters and fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar, cast

from sklearn.base import BaseEstimator

from deciban.errors import HyperparameterError, ModelFileError
from deciban.families.parameters import check_ranges
from deciban.model.ledger import Secret
from deciban.store import declared, registry
from deciban.store.attributes import check_attributes
from deciban.store.checks import of_declared_types, require

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
        known = declared.of_attributes(cls)
        shapes: dict[str, str] = getattr(model, "fitted_shapes", dict)()
        for name, value in (absent | self.fitted).items():
            held = getattr(cls, str(name), None)
            right = (_is_fitted(name) or name in shapes) and not isinstance(held, property) and not callable(held)
            require(right, str(name)[:80], "to be an attribute")
            setattr(model, name, value)
        of_declared_types(self.estimator, known, {name: vars(model)[name] for name in known if name in vars(model)})
        check_attributes(model)
        return model


def unfitted(cls: type[T], parameters: Any) -> T:
    """Return an unfitted estimator with parameters of a file, which must have the declared types and ranges."""
    called = name_of(cls)
    require(type(parameters) is dict, called, "parameters")
    known = declared.of_parameters(cast(Hashable, cls))
    named = {registry.FORMERLY.get(f"{called}.{name}") or name: value for name, value in parameters.items()}
    require(set(named) <= set(known), called, "parameters that it has")
    of_declared_types(called, known, named)
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
