"""Which classes a model file may name.

Every dataclass of deciban's own modules is known by its bare name, for ever, wherever it moves to. A family, statistic
or density that somebody else defines is known by module and name once its module has been imported. A file never makes
anything be imported: only deciban's own modules are, and what a file names is looked up among them.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

from deciban.errors import ModelFileError
from deciban.families.protocol import Density, Family
from deciban.statistics import Stats

# where deciban's storable classes are, the most wanted first: importing stops when a name is found
PACKAGES = (
    *("statistics", "families", "text", "model", "store", "estimators", "latent", "evaluate", "read"),
    "topics",
)
# what old files call by another name: "OldClass" → "NewClass", "NewClass.old_field" → "new_field"
FORMERLY: dict[str, str | None] = {
    "ThroughStats": "MappedStats",
    "ThroughDensity": "MappedDensity",
    "ThroughParts": "MappedDensity",
    "GaussianWithGaps.climb": "rule",
    "Text.complete": None,  # a field that is gone is ignored
}
ROOTS = (Stats, Family, Density)

_known: dict[str, type] = {}
_seen: set[str] = set()


def name_of(cls: type) -> str:
    """What a file calls a class.

    >>> from deciban import Gaussian
    >>> name_of(Gaussian)
    'Gaussian'
    """
    name = cls.__name__
    if _own(cls.__module__):
        if _known.get(name) is cls or _collect().get(name) is cls:
            return name
        raise ModelFileError(f"two classes of deciban are called {name}, so a file cannot tell them apart.")
    if issubclass(cls, ROOTS) and is_dataclass(cls):
        return f"{cls.__module__}.{cls.__qualname__}"
    raise ModelFileError(
        f"{cls.__module__}.{cls.__qualname__} cannot be stored: only families, statistics and densities that are "
        "dataclasses can. Give plain values, arrays or such classes."
    )


def find(name: str) -> type:
    """The class that a file calls so.

    >>> find("Gaussian").__name__
    'Gaussian'
    """
    name = FORMERLY.get(name) or name
    if "." in name:
        return _foreign(name)
    if name in _known or name in _collect() or _imported(name):
        return _known[name]
    raise ModelFileError(f"the model holds a {name[:80]!r}, which this deciban does not have. Upgrade deciban.")


def _foreign(name: str) -> type:
    """Somebody else's class; of several definitions by one name, such as those of a notebook, the last."""
    same = [cls for cls in descendants(ROOTS) if f"{cls.__module__}.{cls.__qualname__}" == name]
    if not same or _own(same[-1].__module__) or not is_dataclass(same[-1]):
        raise ModelFileError(
            f"the model needs {name[:80]}, which this process does not know. Import the module that defines it first."
        )
    return same[-1]


def _imported(name: str) -> bool:
    """Import deciban's own modules, one after the other, until one has a class of this name."""
    return any(name in _collect() for package in PACKAGES for _ in modules(f"deciban.{package}"))


def _own(module: str) -> bool:
    return any(module == f"deciban.{package}" or module.startswith(f"deciban.{package}.") for package in PACKAGES)


def _collect() -> dict[str, type]:
    """Deciban's dataclasses in the modules that have been imported."""
    for name in [name for name in list(sys.modules) if name.startswith("deciban.")]:
        if name not in _seen and _own(name) and not _being_imported(sys.modules[name]):
            _seen.add(name)
            _known.update((cls.__name__, cls) for cls in _dataclasses(sys.modules[name]))
    return _known


def _being_imported(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _dataclasses(module: ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and is_dataclass(value):
            yield value


def modules(package: str) -> Iterator[str]:
    """Import a package and everything in it; what lacks an optional library is passed over."""
    try:
        module = importlib.import_module(package)
    except ImportError:
        return
    yield package
    for found in pkgutil.iter_modules(getattr(module, "__path__", [])):
        yield from modules(f"{package}.{found.name}")


def descendants(classes: Any) -> Iterator[type]:
    """Classes, and all that derive from them."""
    for cls in classes:
        yield cls
        yield from descendants(cls.__subclasses__())
