"""The classes that a model file may contain: their names, and the declared types of their fields and parameters.

**The names of dataclasses and of their fields are part of the file format.** To rename one, list its former name in
`FORMERLY`, so that files written before can still be read. A class may move to another module of deciban freely: files
contain its name without the module. A new field needs a default, which models of older files get, or the value that its
metadata names as "absent". The files in `tests/store/golden` were written by former versions and must stay readable.

A family, statistic or density defined outside deciban is stored as module and name, and can be loaded once its module
has been imported. A file never causes the import of a module outside deciban.

The annotation of a field decides what a file may hold there: an array where `Array` is declared (not a range or a list
of a size that the file claims), one of the values of a `Literal`, a number that is not NaN for `float`. Functions are
never accepted. A class gets these checks by its annotations; nothing is registered.
"""

from __future__ import annotations

import builtins
import collections.abc
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Iterable as AnyIterable
from collections.abc import Sequence as AnySequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import ModelFileError
from deciban.families.protocol import Density, Family
from deciban.statistics import LazyNames, Stats

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


# -- names -------------------------------------------------------------------------------------------------------------
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


# -- declared types ----------------------------------------------------------------------------------------------------
Predicate: TypeAlias = Callable[[Any], bool]
INTEGERS = (int, np.integer)
NUMBERS = (int, float, np.integer, np.floating)
MOST_STEPS = 10_000  # length of a range where no sequence is declared
LARGEST = 2**63  # of whole numbers where a float is declared: numpy has no logarithm of larger ones
DEEPEST = 8  # levels of nested numbers


class _Unknown:
    """A type that is imported for type checkers only, and is not a class that files may hold."""

    def __getattr__(self, name: str) -> _Unknown:
        return self

    def __getitem__(self, of: Any) -> _Unknown:
        return self

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__


class _Names(Mapping[str, Any]):
    """Names for annotations that a module imports for type checkers only: classes that files may hold."""

    def __init__(self, module: str) -> None:
        self.module = vars(sys.modules[module])

    def __getitem__(self, name: str) -> Any:
        if name in self.module or hasattr(builtins, name):
            raise KeyError(name)
        if hasattr(collections.abc, name):
            return getattr(collections.abc, name)
        try:
            return find(name)
        except ModelFileError:
            return _Unknown()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@cache
def field_types(cls: type) -> dict[str, tuple[Predicate, str]]:
    """Return the predicate of each field of a dataclass, and its type as text."""
    found = {}
    for f in fields(cls):
        owner = next(base for base in cls.__mro__ if f.name in inspect.get_annotations(base))
        right = predicate(_resolved(f.type, owner.__module__))
        if "kind" in f.metadata:  # sums, which the names of a released family lack
            right = _any_of([right, predicate(None)])
        found[f.name] = right, _text(f.type)
    return found


@cache
def parameter_types(cls: Any) -> dict[str, tuple[Predicate, str]]:
    """Return the predicate of each parameter of a class, and its type as text."""
    owner = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
    found = {}
    for name, parameter in inspect.signature(owner.__dict__["__init__"]).parameters.items():
        hint = Any if parameter.annotation is parameter.empty else parameter.annotation
        found[name] = _short(predicate(_resolved(hint, owner.__module__))), _text(hint)
    return found


@cache
def attribute_types(cls: Any) -> dict[str, tuple[Predicate, str]]:
    """Return the predicate of each fitted attribute that a class or its bases annotate, and its type as text."""
    found = {}
    for base in reversed(cls.__mro__):
        for name, hint in inspect.get_annotations(base).items():
            if name.endswith("_") and not name.startswith("_"):
                found[name] = predicate(_resolved(hint, base.__module__)), _text(hint)
    return found


def field_of_wrong_type(types: Mapping[str, tuple[Predicate, str]], given: Mapping[str, Any]) -> str | None:
    """Return the first field or parameter whose value does not have its declared type; None if all have theirs."""
    return next((name for name, value in given.items() if not types[name][0](value)), None)


def _short(right: Predicate) -> Predicate:
    return lambda value: right(value) and not (type(value) is range and len(value) > MOST_STEPS)


def _resolved(hint: Any, module: str) -> Any:
    if not isinstance(hint, str):
        return hint
    return eval(
        hint, vars(sys.modules[module]), _Names(module)
    )  # annotations of deciban's own source or a user's class


def _text(hint: Any) -> str:
    return hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))


def predicate(hint: Any) -> Predicate:
    """Return whether a value has the type `hint`; hints that are not known accept every value except functions.

    >>> predicate(tuple[int, int])((1, 2)), predicate(tuple[int, int])((1, 2.5))
    (True, False)
    >>> predicate(float | None)(float("nan")), predicate(float | None)(None)
    (False, True)
    """
    if hint is None or hint is type(None):
        return lambda value: value is None
    if hint == ArrayLike:
        return _numbers
    if isinstance(hint, str):  # a forward reference inside another hint
        return _plain
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _any_of([predicate(each) for each in args])
    if origin is Literal:
        return lambda value: any(type(value) is type(each) and value == each for each in args)
    if origin is ClassVar or isinstance(hint, TypeVar):
        return _plain
    kind = origin or hint
    if kind in PLAIN:
        return PLAIN[kind]
    if not isinstance(kind, type):
        return _plain
    if issubclass(kind, np.ndarray):
        return lambda value: isinstance(value, np.ndarray)
    if issubclass(kind, tuple):
        return _tuple(args)
    if kind in (list, set, frozenset, AnySequence, AnyIterable):
        return _sequence(kind, args[0] if args else Any)
    if issubclass(kind, Mapping):
        key, part = args or (Any, Any)  # keys other than texts were texts in former files
        return _mapping(predicate(key if key is str else Any), predicate(part))
    if kind.__module__.startswith("numpy._typing"):  # parts of ArrayLike, inside another union
        return _numbers
    if getattr(kind, "_is_protocol", False):
        return _plain
    return lambda value: isinstance(value, kind)


def _plain(value: Any) -> bool:
    return not isinstance(value, types.FunctionType | type) and not (type(value) is range and len(value) > MOST_STEPS)


def _number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < LARGEST
    return isinstance(value, NUMBERS) and value == value


PLAIN: dict[Any, Predicate] = {
    Any: _plain,
    object: _plain,
    float: _number,
    int: lambda value: isinstance(value, INTEGERS) and not isinstance(value, bool),
    bool: lambda value: isinstance(value, bool | np.bool_),
    str: lambda value: isinstance(value, str),
    Callable: lambda value: False,
}


def _any_of(each: list[Predicate]) -> Predicate:
    return lambda value: any(right(value) for right in each)


def _all(right: Predicate, element: Any, values: Any) -> bool:
    """Whether all elements are right; sequences of one plain type are decided by their types."""
    if element is Any:
        return True
    if element in (str, int):
        return set(map(type, values)) <= {element} or all(map(right, values))
    return all(map(right, values))


def _tuple(args: tuple[Any, ...]) -> Predicate:
    if not args:
        return lambda value: isinstance(value, tuple)
    if len(args) == 2 and args[1] is ...:
        right = predicate(args[0])
        return lambda value: isinstance(value, tuple) and _all(right, args[0], value)
    each = [predicate(arg) for arg in args]
    return lambda value: (
        isinstance(value, tuple) and len(value) == len(each) and all(ok(part) for ok, part in zip(each, value))
    )


def _sequence(kind: type, element: Any) -> Predicate:
    """Lists and tuples for any kind of sequence; ranges only for sequences of any type or of integers."""
    right = predicate(element)
    made: tuple[type, ...] = (kind,) if kind is list else (tuple, list, frozenset, set, LazyNames)
    if element in (Any, int) and kind is not list:
        made = (*made, range)
    return lambda value: isinstance(value, made) and (isinstance(value, range) or _all(right, element, value))


def _mapping(key: Predicate, part: Predicate) -> Predicate:
    return lambda value: isinstance(value, dict) and all(key(k) and part(v) for k, v in value.items())


def _numbers(value: Any, depth: int = 0) -> bool:
    """What `ArrayLike` stands for in deciban: a number, an array, or nested sequences of numbers; not a range."""
    if isinstance(value, list | tuple):
        return depth < DEEPEST and all(_numbers(part, depth + 1) for part in value)
    if isinstance(value, range):
        return len(value) <= MOST_STEPS
    return value is None or isinstance(value, str | np.ndarray) or _number(value)
