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
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from deciban.errors import ModelFileError
from deciban.families.protocol import Density, Family
from deciban.statistics import Stats

# packages with classes that can be stored, in the order in which a name is looked for
PACKAGES = ("store", "statistics", "families", "model", "evaluate", "read", "estimators", "text", "latent", "topics")
# former names: "OldClass" → "NewClass", "NewClass.old_field" → "new_field", or None for a field that was dropped;
# of an estimator, "NewClass.old_parameter"
FORMERLY: dict[str, str | None] = {
    "ThroughStats": "MappedStats",
    "ThroughDensity": "MappedDensity",
    "ThroughParts": "MappedDensity",
    "GaussianWithGaps.climb": "rule",
    "TopicModel.n_topics": "n_components",
    "PLSA.n_topics": "n_components",
    "ClassTopics.n_topics": "n_components",
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
CLASS = re.compile(rb"\nclass (\w+)")  # begins with letters that are searched for quickly

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
    """Import modules of deciban that define a class of this name until one is a dataclass; return whether one is."""
    return any(name in _collect() for _ in modules_with(name, [f"deciban.{package}" for package in PACKAGES]))


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


def modules_with(name: str, packages: Iterable[str]) -> Iterator[str]:
    """Import the modules of packages that define a class of this name, one at each step, and yield their names.

    Modules that need a library not installed are skipped.
    """
    for package in packages:
        for module, classes in classes_by_module(package).items():
            if classes is not None and name not in classes:
                continue
            try:
                importlib.import_module(module)
            except ImportError:
                continue
            yield module


@cache
def classes_by_module(package: str) -> dict[str, frozenset[str] | None]:
    """Return the names of the classes that each module of a package defines, read from the source without an import.

    They are None where there is no source file. Kernels are skipped: they define no classes that are stored, and
    importing them imports the compiler.

    >>> sorted(classes_by_module("deciban.statistics")["deciban.statistics.members"])
    ['Members']
    """
    found: dict[str, frozenset[str] | None] = {}
    specs = [importlib.util.find_spec(package)]
    while specs:
        spec = specs.pop()
        if spec is None or ".kernels" in spec.name:
            continue
        is_source = isinstance(spec.loader, SourceFileLoader)
        source = b"\n" + Path(str(spec.origin)).read_bytes() if is_source else None
        found[spec.name] = None if source is None else frozenset(map(bytes.decode, CLASS.findall(source)))
        inside = pkgutil.iter_modules(spec.submodule_search_locations or [], f"{spec.name}.")
        specs += [below.module_finder.find_spec(below.name, None) for below in inside]
    return found


def descendants(classes: Iterable[type]) -> Iterator[type]:
    """Yield classes and all their subclasses."""
    for cls in classes:
        yield cls
        yield from descendants(cls.__subclasses__())
