"""The sums of a model by GROUP BY, in the database of the table.

    categories, zeros and ones, counts, bins, pairs    SELECT label, cell, COUNT(*) … GROUP BY label, cell
    Gaussians                                          Σ1, Σ(x−o), Σ(x−o)(x−o)ᵀ of each label, about the frozen origin

The result of the first kind is a small table with weights. Families read it as they read rows, so that categories,
missing values and bins mean the same in a database as elsewhere, and counts are equal to the bit. Ranges of numbers are
represented by their smallest value. Several columns share a query while their combinations are few.

Gaussian rows beyond the frozen reach are fetched and summed in Python, without rounding (decision 0023).

The sums of other parts of a model need a scan of their columns: texts, dates, numbers written as text, other families;
and parts with a value outside the domain of the family, so that the error of the scan names the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from math import prod
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from deciban.engines.sql_scores import case, literal, name, transformed, within
from deciban.errors import DecibanError, EngineError
from deciban.families.bernoulli import Bernoulli, BernoulliStats, Gaps
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.gaussian import DiagonalStats, Gaussian, GaussianStats
from deciban.families.interactions import Interactions, InteractionStats
from deciban.families.poisson import Poisson
from deciban.families.product import Expert, Product, ProductStats
from deciban.families.protocol import Family
from deciban.families.transformed import MappedStats, Transformed
from deciban.model.model import ModelStats, class_axis, collect, lesson
from deciban.read.batches import Batch
from deciban.read.codes import encode_labels
from deciban.read.columns import NAMES, NUMBERS
from deciban.read.schema import Schema
from deciban.read.tables import Table, TypedColumns, TypedTable
from deciban.statistics import Array, Axis

ROWS = "deciban_rows"  # name of the table in queries
SUM = "deciban "  # prefix of the names of sums in a result
MOST_GROUPS = 2**12  # expected combinations of cells that one query counts
Type = Literal["integer", "real", "decimal", "boolean", "text", "other"]
Place = tuple[str, Any]  # "block" and its columns, or "expert" and its name


class Rows(Protocol):
    """Rows in a database."""

    @property
    def types(self) -> Mapping[str, Type]:
        """Type of each column."""

    @property
    def nan(self) -> bool:
        """Whether numbers may be NaN, which counts as missing."""

    def query(self, text: str) -> pa.Table:
        """Return the result of a query, in DuckDB's dialect, of the table `ROWS`."""


@dataclass(frozen=True, eq=False)
class Part:
    """A block or an expert of a model."""

    place: Place
    columns: tuple[str, ...]
    family: Family[Any]
    whole_rows: bool = False  # a row with a gap in one of the columns counts as missing in all


def parts_of(family: Family[Any], columns: Sequence[str]) -> list[Part]:
    """Return the blocks and experts of a family; a family of all columns is one block."""
    if not isinstance(family, Product):
        return [Part(("block", ()), tuple(map(str, columns)), family)]
    blocks = [
        Part(("block", key), _names(key, columns), each) for key, each in zip(family.keys, family.families.values())
    ]
    experts = [
        Part(("expert", label), _names(one.columns, columns), one.family, one.whole_rows)
        for label, one in family.experts.items()
    ]
    return blocks + experts


def _names(key: Sequence[Any], columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(each) if each in columns else str(columns[each]) for each in key)


def without(family: Product, places: set[Place]) -> Product | None:
    """Return a family without the blocks and experts at these places; None if nothing is left."""
    kept = {key: each for key, each in zip(family.keys, family.families.values()) if ("block", key) not in places}
    experts = {label: one for label, one in family.experts.items() if ("expert", label) not in places}
    return Product(kept, experts) if kept else _experts_alone(family, experts)


def _experts_alone(family: Product, experts: Mapping[str, Expert]) -> Product | None:
    """Return a product of experts; as a product needs a block, the first one is summed again."""
    if not experts:
        return None
    key, first = next(iter(zip(family.keys, family.families.values())))
    return Product({key: first}, experts)


# -- a table with weights ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Given:
    """The input of all sums: rows in a database, their schema, their labels, and the first rows."""

    rows: Rows
    schema: Schema
    label: str
    classes: Sequence[Any] | None  # declared ones
    first: Batch  # the first rows, from which the number of values of a column is estimated

    def kind(self, column: str) -> str:
        """The kind of a column; "" for a part of a date."""
        return self.schema.kinds.get(column, "") if column in self.schema.names else ""

    def distinct(self, column: str) -> int:
        """The number of values that a column has in the first rows."""
        values = self.first.table.data.values[self.first.table.columns.index(column)]
        return len(values[1]) if isinstance(values, tuple) else len(np.unique(np.asarray(values)))

    @property
    def label_cell(self) -> str:
        """An expression that is equal for labels of one class."""
        if self.schema.ranges is None:
            return name(self.label)
        tests = [
            (f"{name(self.label)} <= {literal(edge)}", str(at)) for at, edge in enumerate(self.schema.ranges.edges)
        ]
        return case(tests, str(len(tests)))

    def grouped(self, selected: Sequence[str], cells: Sequence[str] = (), where: str = "") -> pa.Table:
        """Return expressions for each label and cells; the column of labels is the first."""
        label = name(self.label) if self.schema.ranges is None else f"MIN({name(self.label)}) AS {name(self.label)}"
        keys = ", ".join([self.label_cell, *cells])
        condition = f" WHERE {where}" if where else ""
        return self.rows.query(f"SELECT {', '.join([label, *selected])} FROM {ROWS}{condition} GROUP BY {keys}")

    def batch(self, found: pa.Table, weight: Array | None) -> Batch:
        """Return rows of a result as typed rows of the model; columns that it lacks are missing in every row."""
        table = Table.of(found)
        have = [column for column in self.schema.columns if column.name in found.column_names]
        typed = replace(self.schema, columns=tuple(have)).apply(table)
        place = {each: at for at, each in enumerate(typed.columns)}
        n = len(table)
        values = tuple(
            typed.data.values[place[feature]] if feature in place else _missing(n, kind)
            for feature, kind in self.schema.kinds.items()
        )
        return Batch(TypedTable(TypedColumns(n, values), self.schema.features, True), self.schema.labels(table), weight)

    def collected(self, family: Family[Any], found: pa.Table, counts: str | None = None) -> ModelStats:
        """Return the sums of the rows of a result; `counts` is the column of their weights."""
        weight = None if counts is None else np.asarray(found[counts], dtype=float)
        taken = lesson(family, self.batch(found, weight), None, self.classes)
        return collect(family, taken.rows, taken.members, self.schema.features)

    def per_class(self, found: pa.Table) -> tuple[Axis, Callable[[str], Array]]:
        """Return the classes of a result with one row for each label, and f(column) = its sums, shape (K,)."""
        labels = self.schema.labels(Table.of(found))
        names, codes = encode_labels(labels, len(found))
        axis = class_axis(names, self.classes)
        at = axis.positions(class_axis(names, None))[codes]

        def sums(column: str) -> Array:
            values = np.asarray(found[SUM + column].cast(pa.float64(), safe=False).fill_null(0.0), dtype=float)
            return np.bincount(at, values, len(axis.names))

        return axis, sums


def _missing(n: int, kind: str) -> Any:
    if kind in NUMBERS:
        return np.full(n, np.nan)
    return pa.chunked_array([[""] * n], pa.string()) if kind == "text" else (np.full(n, -1, np.intp), ())


# -- cells: sums that depend on the values of single columns, or on pairs of them --------------------------------------
@singledispatch
def cells(family: Family[Any], columns: Sequence[str], given: Given) -> list[str] | None:
    """Return expressions that are equal for values with the same sums; None for a family of another kind."""
    return None


@cells.register(Categorical)
@cells.register(Bernoulli)
@cells.register(Poisson)
def _values(family: Family[Any], columns: Sequence[str], given: Given) -> list[str]:
    return [name(column) for column in columns]


@cells.register
def _bins(family: Binned, columns: Sequence[str], given: Given) -> list[str] | None:
    if family.edges is None or any(given.rows.types[column] == "decimal" for column in columns):
        return None
    limit = [None] * len(columns) if family.limit is None else family.limit
    return [range_of(column, edges, given, far) for column, edges, far in zip(columns, family.edges, limit)]


@cells.register
def _levels(family: Interactions, columns: Sequence[str], given: Given) -> list[str] | None:
    if any(cut.edges is not None and given.rows.types[each] == "decimal" for cut, each in zip(family.cuts, columns)):
        return None
    return [
        name(each) if cut.edges is None else range_of(each, cut.edges, given, cut.limit)
        for cut, each in zip(family.cuts, columns)
    ]


@cells.register
def _gaps(family: Gaps, columns: Sequence[str], given: Given) -> list[str]:
    numbers = [given.kind(column) in NUMBERS for column in columns]
    return [missing(each, given) if plain else name(each) for each, plain in zip(columns, numbers)]


def range_of(column: str, edges: Sequence[float], given: Given, limit: float | None = None) -> str:
    """Return the number of the range that a value is in: how many edges are at most as large; NULL if it is missing."""
    x = name(column)
    absurd = [] if limit is None else [(f"ABS({x}) > {literal(limit)}", "NULL")]
    tests = [(f"{x} < {literal(edge)}", str(at)) for at, edge in enumerate(edges)]
    return case([(missing(column, given), "NULL"), *absurd, *tests], str(len(edges)))


def missing(column: str, given: Given) -> str:
    """Return the condition that a number is missing."""
    x = name(column)
    may_be_nan = given.rows.nan and given.rows.types[column] == "real"
    return f"({x} IS NULL OR ISNAN({x}))" if may_be_nan else f"({x} IS NULL)"


@dataclass(frozen=True, eq=False)
class Piece:
    """Columns whose combinations of cells are counted together, and the family that reads them."""

    part: Part
    columns: tuple[str, ...]
    cells: tuple[str, ...]
    family: Family[Any]
    order: tuple[int, ...] = ()  # positions of the sums in those of the part: columns of gaps, or pairs

    def size(self, given: Given) -> int:
        """The expected number of combinations."""
        return prod(_size(column, cell, given) for column, cell in zip(self.columns, self.cells))


def _size(column: str, cell: str, given: Given) -> int:
    return given.distinct(column) + 1 if cell == name(column) else cell.count("WHEN") + 1


def pieces_of(part: Part, given: Given) -> list[Piece] | None:
    """Return the pieces of a part; None if its sums are not counts of cells."""
    found = None if part.whole_rows else cells(part.family, part.columns, given)
    if found is None:
        return None
    if isinstance(part.family, Interactions):
        return _pieces_of_pairs(part, part.family, found, given)
    if isinstance(part.family, Gaps):
        return [
            Piece(part, (column,), (cell,), part.family, (at,))
            for at, (column, cell) in enumerate(zip(part.columns, found))
        ]
    if isinstance(part.family, Categorical) and part.family.joint:
        return [Piece(part, part.columns, tuple(found), part.family)]
    return [Piece(part, (column,), (cell,), part.family) for column, cell in zip(part.columns, found)]


def _pieces_of_pairs(part: Part, family: Interactions, found: Sequence[str], given: Given) -> list[Piece]:
    """Return pieces for pairs; columns are added to a piece while combinations are few, so that it has many pairs."""
    sizes = [_size(column, cell, given) for column, cell in zip(part.columns, found)]
    left = dict.fromkeys(family.pairs)
    pieces = []
    while left:
        chosen = list(next(iter(left)))
        for j in np.argsort(sizes, kind="stable").tolist():
            gains = any((i, j) in left or (j, i) in left for i in chosen)
            if j not in chosen and gains and prod(sizes[i] for i in (*chosen, j)) <= MOST_GROUPS:
                chosen.append(j)
        chosen.sort()
        pairs = [pair for pair in left if pair[0] in chosen and pair[1] in chosen]
        for pair in pairs:
            del left[pair]
        order = tuple(family.pairs.index(pair) for pair in pairs)
        own = replace(family, pairs=tuple(pairs))
        names = tuple(part.columns[j] for j in chosen)
        pieces.append(Piece(part, names, tuple(found[j] for j in chosen), own, order))
    return pieces


def packed(pieces: Sequence[Piece], given: Given) -> Iterator[list[Piece]]:
    """Yield pieces that one query counts: the same columns by the same cells, or different columns."""
    groups: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: piece.size(given)):
        for group in groups:
            held = dict(pair for each in group for pair in zip(each.columns, each.cells))
            fits = all(held.get(column, cell) == cell for column, cell in zip(piece.columns, piece.cells))
            held |= dict(zip(piece.columns, piece.cells))
            if fits and prod(_size(column, cell, given) for column, cell in held.items()) <= MOST_GROUPS:
                group.append(piece)
                break
        else:
            groups.append([piece])
    yield from groups


def counted(group: Sequence[Piece], given: Given) -> list[Any]:
    """Return the sums of the pieces of one query, in their order."""
    held = dict(pair for piece in group for pair in zip(piece.columns, piece.cells))
    raw = [cell if cell == name(column) else f"MIN({name(column)}) AS {name(column)}" for column, cell in held.items()]
    counts = f"{SUM}rows"
    found = given.grouped([*raw, f"COUNT(*) AS {name(counts)}"], list(held.values()))
    return [_sums(piece, found.select([given.label, *piece.columns, counts]), counts, given) for piece in group]


def _sums(piece: Piece, found: pa.Table, counts: str, given: Given) -> Any:
    """Return the sums of one piece; columns of its part that it does not have are missing, and add nothing."""
    columns = piece.columns if isinstance(piece.family, Gaps) else piece.part.columns
    return given.collected(Product({columns: piece.family}), found, counts).family.blocks[columns]


def joined(part: Part, sums: Sequence[tuple[Piece, Any]]) -> Any:
    """Return the sums of a part from those of its pieces."""
    stats = [each for _, each in sums]
    if isinstance(part.family, Gaps):
        at = np.argsort([piece.order[0] for piece, _ in sums])
        ones, zeros = (np.hstack([getattr(stats[i], field) for i in at]) for field in ("ones", "zeros"))
        return BernoulliStats({**stats[0].labels, "feature": Axis.of(len(at))}, ones, zeros)
    if isinstance(part.family, Interactions):
        layout = part.family.layout
        counts = np.zeros((len(stats[0].counts), layout.cells))
        for piece, each in sums:
            own: Any = piece.family
            for pair, start, size in zip(piece.order, own.layout.starts, own.layout.sizes):
                at = layout.starts[pair]
                counts[:, at : at + size] = each.counts[:, start : start + size]
        return InteractionStats({"class": stats[0].labels["class"], "cell": layout.axis}, counts)
    total = stats[0]
    for each in stats[1:]:
        total = total + each
    return total


# -- moments: sums of numbers and of their products --------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Moments:
    """A Gaussian part: the expressions of its numbers, and the rows that it learns."""

    part: Part
    gaussian: Gaussian
    values: tuple[str, ...]  # expressions of the numbers, transformed where the part says so
    kept: str = ""  # condition for rows that are learnt
    refused: str = ""  # condition for rows with a value that the family refuses

    @property
    def full(self) -> bool:
        """Whether products of columns are summed."""
        return self.gaussian.structure in ("full", "tied") or self.gaussian.keep == "full"

    @property
    def origin(self) -> Array:
        """(D,) the frozen origin."""
        return np.asarray(self.gaussian.origin)

    @property
    def reach(self) -> Array:
        """(D,) distance from the origin beyond which rows are summed exactly; inf without a limit."""
        return np.full(len(self.origin), np.inf) if self.gaussian.reach is None else self.gaussian.reach

    def deviations(self) -> list[str]:
        """Expressions of x − o."""
        return [f"({x} - {literal(o)})" if o else x for x, o in zip(self.values, self.origin)]

    def far(self) -> str:
        """Condition for rows that are beyond reach; "" without a limit. It is NULL for rows with gaps within reach."""
        each = zip(self.deviations(), self.reach)
        return " OR ".join(f"ABS({d}) > {literal(r)}" for d, r in each if np.isfinite(r))

    def near(self) -> str:
        """Condition for rows that are within reach."""
        each = zip(self.values, self.deviations(), self.reach)
        return " AND ".join(f"({x} IS NULL OR ABS({d}) <= {literal(r)})" for x, d, r in each)


def moments_of(part: Part, given: Given, guard: bool) -> Moments | None:
    """Return the moments of a Gaussian part; None for another part. With `guard`, NaN counts as missing."""
    family: Any = part.family
    values = [_number(column, given, guard) for column in part.columns]
    kept: list[str] = []
    refused: list[str] = []
    if isinstance(family, Transformed):
        by = family.by if isinstance(family.by, tuple) else (family.by,) * len(values)
        map = family.frozen_map()
        if map is None or not isinstance(family.inner, Gaussian):
            return None
        if family.reach is not None:
            kept = [f"({x} IS NULL OR ABS({x}) <= {literal(far)})" for x, far in zip(values, family.reach)]
        if family.outside == "refuse":
            refused = [f"{x} <= 0" for x, one in zip(values, by) if one == "log"]
        values = [transformed(x, one, power, unit, gap=True) for x, one, (power, unit) in zip(values, by, map)]
        family = family.inner
    if not isinstance(family, Gaussian) or family.origin is None or family.structure == "auto":
        return None
    if family.limit is not None and "gaps" in family.accepts:
        values = list(within(values, family.limit))
    elif family.limit is not None:
        kept += [f"({x} IS NULL OR ABS({x}) <= {literal(far)})" for x, far in zip(values, family.limit)]
    if part.whole_rows:
        kept += [f"{x} IS NOT NULL" for x in values]
    return Moments(part, family, tuple(values), " AND ".join(kept), " OR ".join(refused))


def _number(column: str, given: Given, guard: bool) -> str:
    x = name(column) if given.rows.types[column] == "real" else f"CAST({name(column)} AS DOUBLE)"
    return f"(CASE WHEN {missing(column, given)} THEN NULL ELSE {x} END)" if guard else x


def _aggregates(at: int, moments: Moments, exact: bool) -> dict[str, str]:
    """Return the sums of a Gaussian part by name; with `exact`, of rows within reach only."""
    away, where = moments.deviations(), _where(moments, exact)
    found: dict[str, str] = {}
    if moments.refused and not exact:
        found[f"bad {at}"] = _count(moments.refused)
    if moments.full:
        every = " AND ".join(f"{x} IS NOT NULL" for x in moments.values)
        some = " OR ".join(f"{x} IS NOT NULL" for x in moments.values)
        found[f"n {at}"] = f"COUNT({_only(f'CASE WHEN {every} THEN 1 END', where)})"
        if len(away) > 1:
            found[f"some {at}"] = f"COUNT({_only(f'CASE WHEN {some} THEN 1 END', where)})"
    for i, (x, d) in enumerate(zip(moments.values, away)):
        if not moments.full:
            found[f"n {at} {i}"] = f"COUNT({_only(x, where)})"
        found[f"s {at} {i}"] = f"SUM({_only(d, where)})"
        for j in range(i, len(away) if moments.full else i + 1):
            found[f"q {at} {i} {j}"] = f"SUM({_only(f'{d} * {away[j]}', where)})"
    return found


def _where(moments: Moments, exact: bool) -> str:
    return " AND ".join(filter(None, [moments.kept, moments.near() if exact else ""]))


def _only(value: str, where: str) -> str:
    return f"CASE WHEN {where} THEN {value} END" if where else value


def summed(every: Sequence[Moments], given: Given) -> list[Any]:
    """Return the sums of Gaussian parts, all in one query; None where a part must be scanned.

    The query also counts rows that are beyond the reach of any part. If there are some, a second query counts them for
    each part, and parts that have some are summed again.
    """
    if not every:
        return []
    wanted = {label: text for at, each in enumerate(every) for label, text in _aggregates(at, each, False).items()}
    far = {f"far {at}": each.far() for at, each in enumerate(every) if each.far()}
    if far:
        wanted["far"] = _count(" OR ".join(far.values()))
    axis, sums = given.per_class(_query(wanted, given))
    beyond = set()
    if far and sums("far").any():
        _, counts = given.per_class(_query({label: _count(test) for label, test in far.items()}, given))
        beyond = {label for label in far if counts(label).any()}
    found: list[Any] = []
    for at, each in enumerate(every):
        stats = None if each.refused and sums(f"bad {at}").any() else _stats(at, each, axis, sums)
        found.append(_with_far(each, given) if stats is not None and f"far {at}" in beyond else stats)
    return found


def _count(test: str) -> str:
    return f"COUNT(CASE WHEN {test} THEN 1 END)"


def _query(wanted: Mapping[str, str], given: Given) -> pa.Table:
    return given.grouped([f"{text} AS {name(SUM + label)}" for label, text in wanted.items()])


def _stats(at: int, moments: Moments, axis: Axis, sums: Callable[[str], Array]) -> Any:
    """Return the statistics of a part; None if a row has some of the values that a full Gaussian needs all of."""
    D = len(moments.values)
    labels = {"class": axis, "feature": Axis(range(D), D)}
    first = np.stack([sums(f"s {at} {i}") for i in range(D)], axis=1)
    frame: Any = moments.origin, moments.gaussian.reach
    stats: Any
    if moments.full:
        n = sums(f"n {at}")
        if D > 1 and not np.array_equal(n, sums(f"some {at}")):
            return None
        second = np.empty((len(n), D, D))
        for i in range(D):
            for j in range(i, D):
                second[:, i, j] = second[:, j, i] = sums(f"q {at} {i} {j}")
        stats = GaussianStats(labels, n, first, second, *frame)
    else:
        n = np.stack([sums(f"n {at} {i}") for i in range(D)], axis=1)
        second = np.stack([sums(f"q {at} {i} {i}") for i in range(D)], axis=1)
        stats = DiagonalStats(labels, n, first, second, *frame)
    if not stats.finite:
        return None
    map = moments.part.family.frozen_map() if isinstance(moments.part.family, Transformed) else None
    return stats if map is None else MappedStats(labels, map, stats)


def _with_far(moments: Moments, given: Given) -> Any:
    """Return the sums of rows within reach by SQL, and of the others in Python."""
    near = _stats(0, moments, *given.per_class(_query(_aggregates(0, moments, True), given)))
    if near is None:
        return None
    where = " AND ".join(filter(None, [moments.kept, f"NOT ({moments.near()})"]))
    columns = moments.part.columns
    chosen = ", ".join(map(name, [given.label, *columns]))
    far = given.rows.query(f"SELECT {chosen} FROM {ROWS} WHERE {where}")
    try:
        return near + given.collected(Product({columns: moments.part.family}), far).family.blocks[columns]
    except EngineError:
        raise
    except DecibanError:  # a value that the family refuses: the scan names its row
        return None


# -- all parts ---------------------------------------------------------------------------------------------------------
def readable(part: Part, given: Given) -> bool:
    """Whether the columns of a part have types that SQL reads as Python does."""
    return all(_readable(given.kind(each), given.rows.types.get(each, "other")) for each in part.columns)


def _readable(kind: str, type: Type) -> bool:
    if kind in NUMBERS:
        return type in ("integer", "real", "decimal")
    return kind in NAMES and type != "other"


def pushed(parts: Sequence[Part], given: Given) -> dict[Place, Any]:
    """Return the sums of the parts that SQL can give."""
    found: dict[Place, Any] = {}
    fit = [part for part in parts if readable(part, given)]
    gaussian = [each for part in fit if (each := moments_of(part, given, guard=False)) is not None]
    found |= {each.part.place: sums for each, sums in zip(gaussian, summed(gaussian, given)) if sums is not None}
    taken = {each.part.place for each in gaussian}
    if given.rows.nan:  # sums that are not finite: a value may be NaN
        left = [part for part in fit if part.place in taken - set(found)]
        again = [each for part in left if (each := moments_of(part, given, guard=True)) is not None]
        found |= {each.part.place: sums for each, sums in zip(again, summed(again, given)) if sums is not None}
    pieces = {part.place: pieces_of(part, given) for part in fit if part.place not in taken}
    every = [piece for some in pieces.values() for piece in some or ()]
    sums_of: dict[Place, list[tuple[Piece, Any]]] = {}
    for group in packed(every, given):
        try:
            for piece, sums in zip(group, counted(group, given)):
                sums_of.setdefault(piece.part.place, []).append((piece, sums))
        except EngineError:
            raise
        except DecibanError:  # a value that a family refuses: the scan names its row
            continue
    for part in fit:
        own = pieces.get(part.place)
        if own and len(sums_of.get(part.place, ())) == len(own):
            found[part.place] = joined(part, sums_of[part.place])
    return found


def class_rows(given: Given) -> ModelStats:
    """Return the number of rows of each class."""
    axis, sums = given.per_class(_query({"n": "COUNT(*)"}, given))
    return ModelStats({"class": axis}, sums("n"), {})


def assembled(family: Family[Any], classes: Axis, found: Mapping[Place, Any]) -> Any:
    """Return the sums of a family from those of its parts."""
    if not isinstance(family, Product):
        return found["block", ()]
    blocks = {key: found["block", key] for key in family.keys}
    experts = {label: found["expert", label] for label in family.experts}
    return ProductStats({"class": classes}, blocks, experts or None)


def sums_of_parts(family: Family[Any], stats: Any) -> dict[Place, Any]:
    """Return the sums of a family by its parts."""
    if not isinstance(family, Product):
        return {("block", ()): stats}
    experts = {("expert", label): sums for label, sums in (stats.experts or {}).items()}
    return {**{("block", key): sums for key, sums in stats.blocks.items()}, **experts}
