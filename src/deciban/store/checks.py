"""Checks of a model that was read from a file: it must not crash, read beyond an array, or give meaningless answers.

`structure` checks types, names and shapes, not numbers; it is applied to each value as it is read. `values` checks each
number once: finite parameters, counts of at least 0, positive divisors. Errors that only an estimate can find, such as
a covariance that is not positive definite, are found by the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from deciban.errors import Argument, ModelFileError, Remedy
from deciban.families.abilities import HasCandidates, ability, needs_all_rows
from deciban.families.bernoulli import SparseBernoulliStats
from deciban.families.fitted import Fitted
from deciban.families.fixed import KnownDensities, Released
from deciban.families.product import Product, ProductStats
from deciban.families.protocol import Density, Family
from deciban.statistics import Array, Axis, ExactSums, LazyNames, Members, Ragged, Stats
from deciban.store.registry import Predicate, field_of_wrong_type

SLACK = 1e-6  # relative: rounding of weights may leave sums this much below zero
SIMPLE = {str, int, float, bool, type(None), np.ndarray, range}  # types of values that hold no dataclass
NO_ARRAYS = SIMPLE - {np.ndarray}
MOST_UNNAMED = 2**14  # numbers along an axis without names, such as the edges of bins
NAMED = {"class", "feature", "category", "combination", "word"}  # axes that always have names
# statistics whose parts have the classes of the whole; those of a mixture are components, those of a chain states
SAME_CLASSES = ("ModelStats", "ProductStats", "MappedStats", "MixtureSums", "HMMStats")
SUMS = (np.dtype(np.float64), np.dtype(np.int64))  # types of the numbers of statistics
# raised by code whose arguments come from a file and do not fit together
MISMATCH = (AttributeError, TypeError, ValueError, IndexError, KeyError, ArithmeticError, StopIteration)

KINDS: dict[str, tuple[Callable[[Array], Any], str]] = {
    "log": (lambda x: x <= SLACK, "logarithms of probabilities"),
    "count": (lambda x: (x >= 0) & (x < np.inf), "finite and at least 0"),
    "positive": (lambda x: (x > 0) & (x < np.inf), "finite and > 0"),
    "real": (np.isfinite, "finite"),
}
# class → field → type of its value
ROLES: dict[str, dict[str, type]] = {
    "Fitted": {"family": Family, "stats": Stats},
    "FittedMixture": {"family": Family, "sums": Stats},
    "ModelStats": {"family": Stats},
    "Released": {"family": Family, "density": Density, "names": Stats},
    "MixtureDensity": {"components": Density},
}


def structure(value: object) -> None:
    """Raise ModelFileError if the parts of a value do not fit together."""
    if isinstance(value, Axis):
        _axis(value)
    elif isinstance(value, Ragged):
        require(type(value.parts) is tuple and all(isinstance(p, Axis) for p in value.parts), "Ragged", "axes as parts")
    elif isinstance(value, Stats):
        _stats(value)
    elif isinstance(value, Product):
        require(all(value.keys), "a product", "a column in each block")
    for name, kind in ROLES.get(type(value).__name__, {}).items():
        part = getattr(value, name)
        require(isinstance(part, kind), f"{type(value).__name__}.{name}", f"a {kind.__name__}")
        require(name == "names" or not (isinstance(part, Stats) and lacks_sums(part)), type(value).__name__, "its sums")
    if isinstance(value, Density):
        sizes(value)


def pattern(cls: type, given_values: Mapping[str, Any]) -> None:
    """Raise ModelFileError if a family is to read words by a pattern for which `re` may take more than linear time.

    It is checked before the family is made, which compiles the pattern.
    """
    given = given_values.get("pattern") if issubclass(cls, Family) else None
    if not isinstance(given, str):
        return
    from deciban.text.tokens import (
        TWO_OR_MORE,
        is_linear,  # a model of other columns is loaded without the modules of texts
    )

    if given != TWO_OR_MORE and not is_linear(given):
        raise ModelFileError(
            f"the pattern of words {given[:80]!r} may take very long on some texts.",
            remedy=Remedy(
                "If you trust the file, load it with ",
                Argument("trust_pattern", True),
                "; or fit with a simpler pattern.",
            ),
        )


def check_types(name: str, types: Mapping[str, tuple[Predicate, str]], given: Mapping[str, Any]) -> None:
    """Raise ModelFileError if a value does not have the declared type of its field or parameter."""
    field = field_of_wrong_type(types, given)
    if field is not None:
        require(False, f"{name}.{field}", f"to be {types[field][1]}")


def require(right: object, what: str, needs: str) -> None:
    """Raise ModelFileError that `what` needs `needs`, unless it is right."""
    if not right:
        raise ModelFileError(f"{what} needs {needs}. The file is damaged or was changed: restore a copy.")


def _axis(axis: Axis) -> None:
    require(type(axis.names) in (tuple, range, LazyNames), "an axis", "names in a tuple, or a range")
    require(type(axis.declared) is int and 0 <= axis.declared <= axis.size, "an axis", "0 … size declared names")
    if type(axis.names) is range:
        require(axis.declared == axis.size, "an axis of numbers", "all of them declared")
    if type(axis.names) is tuple:
        require(plain_names(axis.names), "an axis", "names that are texts, numbers or tuples")
        require(len(set(axis.names)) == axis.size, "an axis", "names that differ")
        require(_have_order(axis.names[axis.declared :]), "an axis", "names that have an order")


def _have_order(names: tuple[Any, ...]) -> bool:
    """Whether names can be sorted, as they are when others are added."""
    try:
        sorted(names)
    except TypeError:
        return False
    return True


def plain_names(names: tuple[Any, ...]) -> bool:
    """Whether names are texts, numbers or tuples."""
    return all(map(_name, set(map(type, names))))


def _name(kind: type) -> bool:
    return issubclass(kind, str | int | float | tuple | np.generic | None)


def _stats(stats: Stats) -> None:
    called, sizes = type(stats).__name__, dict(stats.sizes)
    require(isinstance(stats.labels.get("class"), Axis), called, "a class axis")
    used = {axis for f in stats.stats_fields() for axis in f.metadata["axes"]}
    require(used & NAMED <= set(stats.labels), called, "names along its axes")
    require(set(stats.labels) <= {"class"} | used, called, "names along no other axes")
    for f, held in stats.items():
        where = f"{called}.{f.name}"
        if held is None:  # a released family has names and no sums
            continue
        if f.metadata["kind"] == "nested":
            parts = list(held.values()) if isinstance(held, dict) else [held]
            require(all(isinstance(part, Stats) for part in parts), where, "statistics")
            own = cast(Axis, stats.labels["class"])
            if called in SAME_CLASSES:
                require(all(part.labels["class"] == own for part in parts), where, "the classes of the whole")
            far = [part for part in parts if isinstance(part, ExactSums)]
            require(all(_within(part.labels.get("class"), own) for part in far), where, "classes of the whole")
            continue
        require(isinstance(held, np.ndarray) and held.dtype in SUMS, where, "an array of doubles or integers")
        axes = f.metadata["axes"]
        require(held.ndim == len(axes), where, f"{len(axes)} axes")
        for axis, size in zip(axes, held.shape):
            names = stats.labels.get(axis)
            due = sizes.setdefault(axis, min(size, MOST_UNNAMED)) if names is None else names.size
            require(size == due, where, f"the size of its axis {axis!r}")


def _within(some: Any, whole: Axis) -> bool:
    """Whether all names of an axis are names of another one."""
    return isinstance(some, Axis) and (some == whole or set(some.names) <= set(whole.names))


def lacks_sums(stats: Stats) -> bool:
    """Whether some of the sums are missing, as in a released family."""
    sums = [value for f, value in stats.items() if value is not None or f.default is not None]
    held = [each for value in sums for each in (value.values() if isinstance(value, dict) else [value])]
    return any(lacks_sums(each) if isinstance(each, Stats) else each is None for each in held)


def sizes(density: Density) -> dict[str, int]:
    """Return the sizes of a density's axes by letter, on which its fields must agree (see `Density.shapes`)."""
    called, found = type(density).__name__, dict[str, int]()
    for name, described in density.shapes.items():
        held, axes = getattr(density, name), described.split()[:-1]
        if held is None or (name == "unlisted" and type(held) is int):
            continue
        kinds = SUMS if described.endswith("count") else SUMS[:1]
        right = isinstance(held, np.ndarray) and held.dtype in kinds and held.ndim == len(axes)
        require(right, f"{called}.{name}", f"an array of axes ({', '.join(axes)})")
        for axis, size in zip(axes, held.shape):
            require(found.setdefault(axis, size) == size, f"{called}.{name}", f"one size along {axis}")
    matrices = found.get("S", 1)
    require(matrices == 1 or matrices == found["K"], called, "one matrix, or one for each group")
    if called == "CategoricalDensity":
        found["D"] = _tables(density, found)
    for part in parts(density):
        require(isinstance(part, Density), called, "densities as parts")
    if called == "MixtureDensity":
        require(found["M"] == density.components.K, called, "as many components as weights")  # type: ignore[attr-defined]
    return {"K": density.K} | found


def _tables(density: Any, found: Mapping[str, int]) -> int:
    """Return the number of features of a categorical density."""
    axis = density.axis
    fits = isinstance(axis, Ragged) and axis.size == found["M"] and len(axis.parts) == found["T"]
    require(fits, "CategoricalDensity.axis", "a name for each cell")
    if density.features is None:
        return found["T"]
    joint = type(density.features) is tuple and all(isinstance(axis, Axis) for axis in density.features)
    require(joint and found["T"] == 1, "CategoricalDensity.features", "an axis for each feature of one table")
    return len(density.features)


def parts(density: Density) -> list[Density]:
    """Return the densities that a density consists of."""
    held: list[Any] = [getattr(density, f.name) for f in fields(density)] if is_dataclass(density) else []
    inside = [list(part.values()) if isinstance(part, dict) else part for part in held]
    nested = [each for part in inside if isinstance(part, list | tuple) for each in part if isinstance(each, Density)]
    return nested + [part for part in held if isinstance(part, Density)]


def keyed_by_columns(family: Any, stats: Any) -> Any:
    """Return sums of a product that are found by the columns of a block; former files have joined names as keys."""
    if not isinstance(family, Product) or not isinstance(stats, ProductStats) or not isinstance(stats.blocks, dict):
        return stats
    former = [",".join(map(str, key)) for key in family.keys]
    if list(stats.blocks) != former or list(stats.blocks) == family.keys:
        return stats
    return replace(stats, blocks=dict(zip(family.keys, stats.blocks.values())))


def with_keys_of_blocks(value: Any) -> Any:
    """Return a fitted family or mixture whose sums are found by the columns of a block, as `keyed_by_columns` does."""
    if isinstance(value, Fitted):
        return replace(value, stats=keyed_by_columns(value.family, value.stats))
    if type(value).__name__ == "FittedMixture":
        return replace(value, sums=replace(value.sums, components=keyed_by_columns(value.family, value.stats)))
    return value


def check_features(family: Family[Any], D: int) -> None:
    """Raise ModelFileError if a hyper-parameter is an array that does not have one value for each of D features."""
    for name, described in family.shapes.items():
        held = getattr(family, name)
        if isinstance(held, np.ndarray) and held.ndim:
            wanted = [
                tuple(D if axis == "D" else 1 for axis in axes.split())
                for axes in described.rpartition(" ")[0].split("|")
            ]
            right = held.shape in wanted and held.dtype == np.float64
            require(right, f"{type(family).__name__}.{name}", f"a number for each of {D} features")
    for part in (getattr(family, f.name) for f in fields(family)):
        if isinstance(part, Family) and not isinstance(family, Released):
            check_features(part, D)


def check_family(family: Family[Any], stats: Stats) -> None:
    """Raise an error if sums do not belong to a family; families that check more than shapes have `check_sums`."""
    check: Callable[[Stats], None] | None = getattr(family, "check_sums", None)
    if check is not None and not lacks_sums(stats):
        check(stats)


def check_blocks(family: Product, stats: object) -> None:
    """Raise ModelFileError if the sums of a product are not those of its blocks."""
    fits = isinstance(stats, ProductStats) and isinstance(stats.blocks, dict) and list(stats.blocks) == family.keys
    require(fits, "a product", "the sums of its blocks")


def check_estimate(record: object) -> None:
    """Raise ModelFileError if a family that was fitted without classes cannot be estimated from its sums."""
    if isinstance(record, Fitted):
        feature = record.stats.labels.get("feature")
        if isinstance(feature, Axis):
            check_features(record.family, feature.size)
        if isinstance(record.family, Product):
            check_blocks(record.family, record.stats)
        if not isinstance(record.family, Released):
            check_family(record.family, record.stats)
            record.family.resolve(record.stats)
            record.family.estimate(record.stats, "mean")
        if isinstance(feature, Axis):
            check_empty_batch(record.family, record.stats, range(feature.size))


def check_empty_batch(family: Family[Any], stats: Stats, columns: Sequence[Any]) -> None:
    """Raise ModelFileError if learning 0 rows fails or changes the sums, or if a released family cannot score 0 rows.

    Families without sums that can be extended are left out, and so are texts, whose features are words.
    """
    try:
        _check_empty_batch(family, stats, columns)
    except MISMATCH as error:
        raise not_together(error) from None


def not_together(error: Exception) -> ModelFileError:
    """Return the error for a family and sums of which each may be right by itself."""
    return ModelFileError(
        f"the family and the sums in the file do not belong together ({error}). "
        "The file was changed: restore a copy, or fit the model again."
    )


def _check_empty_batch(family: Family[Any], stats: Stats, columns: Sequence[Any]) -> None:
    if ability(family, HasCandidates) is not None or needs_all_rows(family) or isinstance(family, KnownDensities):
        return
    X: Any = np.empty((0, len(columns)))
    if isinstance(stats, SparseBernoulliStats):
        X = csr_array(X.shape)
    if isinstance(family, Released):
        family.density.log_density(family.encode(X, columns))
        return
    members = Members.hard(np.empty(0, dtype=np.intp), cast(Axis, stats.labels["class"]))
    both = stats + family.collect(family.encode(X, columns, stats), members)
    features = stats.labels.get("feature")
    require(features is None or both.labels["feature"] == features, "the axis of features", "the names of the columns")
    require(both.same(stats), type(stats).__name__, "to be the same with no rows added")


def values(model: object, at: str = "") -> None:
    """Raise ModelFileError if a number is not finite, has the wrong sign, or contradicts others.

    A class whose numbers have to fulfil more than its declared kinds implements `validate`, which raises an error.
    """
    for value in dataclasses_of(model):
        validate: Callable[[], None] | None = getattr(value, "validate", None)
        if validate is not None:
            validate()
    for where, held, owner, name in arrays(model, at):
        if held.dtype.kind not in "fiu" or not held.size:
            continue
        kind = getattr(owner, "shapes", {}).get(name, "").split()[-1:]
        if kind:
            good, needs = KINDS[kind[0]]
            right = good(held)
        elif isinstance(owner, Stats):
            how = next(f.metadata for f in owner.stats_fields() if f.name == name)
            right, needs = np.isfinite(held), "finite"
            if how.get("gaps"):
                right, needs = ~np.isinf(held), "finite or missing"
            if how["floor"]:
                right, needs = right & (held >= -SLACK * max(1.0, float(np.max(held)))), "finite and at least 0"
        elif isinstance(owner, Family):
            right, needs = np.isfinite(held), "finite"
        else:
            right, needs = ~np.isnan(held), "numbers"
        if not np.all(right):
            place = tuple(int(i) for i in np.argwhere(~right)[0])
            raise ModelFileError(
                f"{where}{list(place)} is {held[place]:.6g}; all of it must be {needs}. "
                "The file is damaged or was changed: restore a copy, or fit the model again."
            )


@cache
def field_names(cls: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a dataclass, None for other classes."""
    return tuple(f.name for f in fields(cls)) if is_dataclass(cls) else None


def dataclasses_of(value: object) -> Iterator[object]:
    """Yield every dataclass of a value."""
    names = field_names(cast(Any, type(value)))
    if names is not None:
        yield value
        parts: Iterable[object] = [getattr(value, name) for name in names]
    elif isinstance(value, Mapping):
        parts = value.values()
    else:
        parts = value if isinstance(value, list | tuple) and not set(map(type, value)) <= SIMPLE else ()
    for part in parts:
        if type(part) not in SIMPLE:
            yield from dataclasses_of(part)


def arrays(value: object, at: str, owner: object = None, name: str = "") -> Iterator[tuple[str, Array, object, str]]:
    """Yield path, array, the dataclass that holds it, and the name of its field, for every array of a value."""
    if isinstance(value, np.ndarray):
        yield at, value, owner, name
        return
    names = field_names(cast(Any, type(value)))
    if names is not None:
        for each in names:
            part = getattr(value, each)
            if type(part) not in NO_ARRAYS:
                yield from arrays(part, f"{at}.{each}".lstrip("."), value, each)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from arrays(part, f"{at}[{str(key)[:40]!r}]", owner, name)
    elif isinstance(value, list | tuple) and not set(map(type, value)) <= NO_ARRAYS:
        for i, part in enumerate(value):
            if type(part) not in NO_ARRAYS:
                yield from arrays(part, f"{at}[{i}]", owner, name)
