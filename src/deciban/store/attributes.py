"""Declared shapes of the fitted attributes of an estimator, as checks of attributes that were read from a file.

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

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deciban.store.checks import KINDS, require

LARGEST = 1e100  # of a parameter: its square and a sum of squares are finite
LARGEST_FACTOR = 1e15  # of a "factor": its square is finite in single precision, too
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


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
