"""Declared types of dataclass fields and of parameters, as predicates of values that were read from a file.

The annotation of a field decides what a file may hold there: an array where `Array` is declared (not a range or a list
of a size that the file claims), one of the values of a `Literal`, a number that is not NaN for `float`. Functions are
never accepted. A class gets these checks by its annotations; nothing is registered.
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Iterable as AnyIterable
from collections.abc import Sequence as AnySequence
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import ModelFileError
from deciban.statistics import LazyNames
from deciban.store import registry

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
            return registry.find(name)
        except ModelFileError:
            return _Unknown()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@cache
def of_fields(cls: type) -> dict[str, tuple[Predicate, str]]:
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
def of_parameters(cls: Any) -> dict[str, tuple[Predicate, str]]:
    """Return the predicate of each parameter of a class, and its type as text."""
    owner = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
    found = {}
    for name, parameter in inspect.signature(owner.__dict__["__init__"]).parameters.items():
        hint = Any if parameter.annotation is parameter.empty else parameter.annotation
        found[name] = _short(predicate(_resolved(hint, owner.__module__))), _text(hint)
    return found


@cache
def of_attributes(cls: Any) -> dict[str, tuple[Predicate, str]]:
    """Return the predicate of each fitted attribute that a class or its bases annotate, and its type as text."""
    found = {}
    for base in reversed(cls.__mro__):
        for name, hint in inspect.get_annotations(base).items():
            if name.endswith("_") and not name.startswith("_"):
                found[name] = predicate(_resolved(hint, base.__module__)), _text(hint)
    return found


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
