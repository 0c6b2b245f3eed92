"""The classes that a model file may contain, by name.

**The names of dataclasses and of their fields are part of the file format.** To rename one, list its former name in
`FORMERLY`, so that files written before can still be read. A class may move to another module of deciban freely: files
contain its name without the module. A new field needs a default, which models of older files get, or the value that its
metadata names as "absent". The files in
`tests/store/golden` were written by former versions and must stay readable.

A family, statistic or density defined outside deciban is stored as module and name, and can be loaded once its module
has been imported. A file never causes the import of a module outside deciban.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from types import ModuleType

from deciban.errors import ModelFileError
from deciban.families.protocol import Density, Family
from deciban.statistics import Stats

# packages with classes that can be stored, in the order in which they are imported until a name is found
PACKAGES = ("statistics", "families", "evaluate", "read", "store", "model", "estimators", "text", "latent", "topics")
# former names: "OldClass" → "NewClass", "NewClass.old_field" → "new_field", or None for a field that was dropped;
# of an estimator, "NewClass.old_parameter"
FORMERLY: dict[str, str | None] = {
    "ThroughStats": "MappedStats",
    "ThroughDensity": "MappedDensity",
    "ThroughParts": "MappedDensity",
    "GaussianWithGaps.climb": "rule",
    "TopicModel.n_topics": "n_components",
    "PLSA.n_topics": "n_components",
    "Mixture.seed": "random_state",
    "ClassTopics.seed": "random_state",
    "PCA.n": "n_components",
    "Fisher.n": "n_components",
    "Text.complete": None,
    "NormalDensity.mean": "shift",
    "StudentDensity.mean": "shift",
    "DiagonalNormal.mean": "shift",
    "DiagonalStudent.mean": "shift",
    "SphericalStudent.mean": "shift",
}
ROOTS = (Stats, Family, Density)

_known: dict[str, type] = {}  # dataclasses of deciban found so far, by name
_seen: set[str] = set()  # modules in which they were looked for


def name_of(cls: type) -> str:
    """Return the name of a class in files.

    >>> from deciban import Gaussian
    >>> name_of(Gaussian)
    'Gaussian'
    """
    name = cls.__name__
    if _own(cls.__module__):
        if _known.get(name) is cls or _collect().get(name) is cls:
            return name
        raise ModelFileError(
            f"two classes of deciban have the name {name}, so it cannot be stored. Rename one of them."
        )
    if issubclass(cls, ROOTS) and is_dataclass(cls):
        return f"{cls.__module__}.{cls.__qualname__}"
    raise ModelFileError(
        f"{cls.__module__}.{cls.__qualname__} cannot be stored: only families, statistics and densities that are "
        "dataclasses can be. Use numbers, text, arrays or such classes."
    )


def names() -> dict[type, str]:
    """Return the names in files of the classes of deciban that have been imported."""
    return {cls: name for name, cls in _collect().items()}


def find(name: str) -> type:
    """Return the class with this name in files.

    >>> find("Gaussian").__name__
    'Gaussian'
    """
    name = FORMERLY.get(name) or name
    if "." in name:
        return _foreign(name)
    if name in _known or name in _collect() or _imported(name):
        return _known[name]
    raise ModelFileError(
        f"the model contains the class {name[:80]!r}, which this version does not have. Upgrade deciban."
    )


def _foreign(name: str) -> type:
    """Return a class defined outside deciban; of several definitions of one name, as in a notebook, the last."""
    same = [cls for cls in descendants(ROOTS) if f"{cls.__module__}.{cls.__qualname__}" == name]
    if not same or _own(same[-1].__module__) or not is_dataclass(same[-1]):
        raise ModelFileError(
            f"the model contains the class {name[:80]}, which is not defined. Import the module that defines it first."
        )
    return same[-1]


def _imported(name: str) -> bool:
    """Import modules of deciban one by one until one has a class of this name; return whether one has."""
    imported = (module for package in PACKAGES for module in modules(f"deciban.{package}"))
    return any(name in (_known if module in _seen else _collect()) for module in imported)


def _own(module: str) -> bool:
    """Whether a module belongs to the packages above."""
    return any(module == f"deciban.{package}" or module.startswith(f"deciban.{package}.") for package in PACKAGES)


def _collect() -> dict[str, type]:
    """Return the dataclasses of all modules of deciban that have been imported."""
    for name in [name for name in list(sys.modules) if name.startswith("deciban.")]:
        if name not in _seen and _own(name):
            with suppress(ImportError):  # an import in another thread, for which this one waits, may fail
                _known.update((cls.__name__, cls) for cls in _dataclasses(importlib.import_module(name)))
                _seen.add(name)
    return _known


def _dataclasses(module: ModuleType) -> Iterator[type]:
    """Yield the dataclasses that a module defines."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and is_dataclass(value):
            yield value


def modules(package: str) -> Iterator[str]:
    """Import a package and all its modules, and yield their names.

    Kernels define no classes that are stored, and importing them imports the compiler; they are skipped, and so are
    modules that need a library not installed.
    """
    try:
        module = importlib.import_module(package)
    except ImportError:
        return
    yield package
    for name in _submodules(*getattr(module, "__path__", [])):
        if name != "kernels":
            yield from modules(f"{package}.{name}")


@cache
def _submodules(*folders: str) -> tuple[str, ...]:
    """Return the names of the modules in a package's folders."""
    return tuple(found.name for found in pkgutil.iter_modules(folders))


def descendants(classes: Iterable[type]) -> Iterator[type]:
    """Yield classes and all their subclasses."""
    for cls in classes:
        yield cls
        yield from descendants(cls.__subclasses__())
