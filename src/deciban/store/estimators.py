"""scikit-learn's faces as files: any estimator of deciban, as asked for and as fitted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from deciban.errors import ModelFileError
from deciban.store import registry
from deciban.store.checks import require

HOMES = ("deciban.estimators", "deciban.topics", "deciban.sklearn")


@dataclass(frozen=True, eq=False)
class Estimator:
    """The parameters of an estimator, and its fitted attributes: those whose names end in `_`."""

    estimator: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]

    @classmethod
    def of(cls, model: Any) -> Estimator:
        """An estimator as a file holds it."""
        fitted = {name: value for name, value in sorted(vars(model).items()) if _is_fitted(name)}
        if not fitted:
            raise ModelFileError(f"this {type(model).__name__} is not fitted. Fit it, then save it.")
        return cls(name_of(type(model)), model.get_params(deep=False), fitted)

    def restored(self, check: Callable[[], None] | None = None, key: Any = None) -> Any:
        """The estimator; what is not checked yet is checked now."""
        if check is not None:
            check()
        return self.put_together({})

    def with_parameters(self, cls: Any) -> Any:
        """Return an unfitted estimator with the parameters of the record."""
        require(type(self.parameters) is type(self.fitted) is dict, self.estimator, "parameters and attributes")
        known = inspect.signature(cls.__init__).parameters
        require(set(self.parameters) <= set(known), self.estimator, "parameters that it has")
        return cls(**self.parameters)

    def put_together(self, absent: dict[str, Any]) -> Any:
        """An estimator of the class named, with its parameters and attributes; `absent` may be left out of files."""
        cls = find(str(self.estimator))
        model = self.with_parameters(cls)
        for name, value in (absent | self.fitted).items():
            held = getattr(cls, str(name), None)
            right = _is_fitted(name) and not isinstance(held, property) and not callable(held)
            require(right, str(name)[:80], "to be an attribute")
            setattr(model, name, value)
        return model


def is_estimator(model: Any) -> bool:
    """Whether a model is an estimator that can be stored as it is."""
    return isinstance(model, BaseEstimator) and not isinstance(model, type)


def name_of(cls: type) -> str:
    """What a file calls an estimator: by its bare name where it is deciban's."""
    return cls.__name__ if cls.__module__.startswith("deciban.") else f"{cls.__module__}.{cls.__qualname__}"


def find(name: str) -> Any:
    """The estimator that a file calls so: deciban's, or one derived from it in a module that has been imported."""
    for _ in _homes():
        for cls in registry.descendants([BaseEstimator]):
            if name_of(cls) == name and any(base.__module__.startswith("deciban.") for base in cls.__mro__):
                return cls
    raise ModelFileError(
        f"the model is a {name[:80]}, which this process does not know. Import its module, or upgrade deciban."
    )


def _homes() -> Iterator[str]:
    yield ""  # what has been imported already
    for home in HOMES:
        yield from registry.modules(home)


def _is_fitted(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.endswith("_") and not name.startswith("_")
