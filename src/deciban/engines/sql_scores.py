"""The answers of a model as one SQL query, which a database runs on its rows.

    log f(x|c)  =  Σ_b s_b·log f_b(x_b|c) + Σ_e w_e·g_e(x|c) + offset_c     parts of blocks and experts, calibrated

Each part becomes an expression of its columns for every class, up to terms that all classes share: a CASE over
categories or bins, a polynomial and logarithms of numbers. NULL is a missing value, and adds nothing. The query is
written for DuckDB and translated by sqlglot.

    pip install 'deciban[sql]'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from math import exp, log
from typing import Any

import numpy as np
from scipy.special import gammaln

from deciban.errors import InputError, NotAvailableError
from deciban.evaluate.calibration import Affine, Blockwise, Offsets
from deciban.families.bernoulli import BernoulliDensity, Gaps
from deciban.families.binned import Binned
from deciban.families.categorical import CategoricalDensity
from deciban.families.cosine_features import STEPS, CosineFeatures, Ramp
from deciban.families.gamma import CompoundGammaDensity, GammaDensity
from deciban.families.gaussian.densities import (
    DiagonalNormal,
    DiagonalStudent,
    MatrixDensity,
    NormalDensity,
    SphericalStudent,
    elliptical,
    whiten,
)
from deciban.families.interactions import Cut, Interactions
from deciban.families.poisson import PoissonDensity
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Density
from deciban.families.transformed import MappedDensity, Transformed
from deciban.model.model import Model
from deciban.statistics import Array

IMPOSSIBLE = -1e300  # stands for the log of a probability of 0
WRITTEN = {"True": ["true", "1"], "False": ["false", "0"]}  # other ways to write a category
REMEDY = "Score rows of this model with predict_proba, or with deciban predict."

Scores = list[str]  # an expression for each class


# -- pieces of SQL -----------------------------------------------------------------------------------------------------
def name(column: object) -> str:
    """Return a quoted identifier."""
    return '"' + str(column).replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a constant."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | np.integer | np.floating):
        number = float(value)
        if np.isnan(number):
            raise InputError("a parameter of the model is not a number, and cannot be written as SQL.")
        number = max(number, IMPOSSIBLE) if number < 0 else min(number, -IMPOSSIBLE)
        return f"({number!r})" if number < 0 else repr(number)
    return "'" + str(value).replace("'", "''") + "'"


def case(tests: Sequence[tuple[str, str]], otherwise: str) -> str:
    """Return the value of the first test that holds."""
    if not tests:
        return otherwise
    return "CASE " + " ".join(f"WHEN {test} THEN {value}" for test, value in tests) + f" ELSE {otherwise} END"


def known(column: str, score: str) -> str:
    """Return a score that is 0 where a column is missing."""
    return f"CASE WHEN {column} IS NULL THEN 0.0 ELSE {score} END"


def plus(terms: Sequence[str]) -> str:
    """Return a sum."""
    return "(" + " + ".join(terms) + ")" if terms else "0.0"


def number(column: object) -> str:
    """Return a column as a number of double precision."""
    return f"CAST({name(column)} AS DOUBLE)"


def _refused(what: str) -> NotAvailableError:
    return NotAvailableError(f"{what} cannot be written as SQL.", remedy=REMEDY)


# -- densities: an expression for each class ---------------------------------------------------------------------------
@singledispatch
def density_scores(density: Density, columns: Sequence[str]) -> Scores:
    """Return log f(x|c) of each class up to terms that all share; `columns` are the expressions of the values."""
    raise _refused(f"the density {type(density).__name__} (columns {', '.join(columns)})")


@density_scores.register
def _categories(density: CategoricalDensity, columns: Sequence[str]) -> Scores:
    if density.features is not None:
        raise _refused("a joint table of categories")
    parts: list[Scores] = []
    for j, (column, names, start) in enumerate(zip(columns, density.names, density.axis.starts)):
        tests, cells = _tests(column, names), density.log_p[start : start + len(names)].T  # (K, cells)
        each = [case(list(zip(tests, map(literal, p))), literal(other)) for p, other in zip(cells, density.unseen[j])]
        parts.append([known(column, score) for score in each])
    return _sum(parts, density.K)


def _tests(column: str, categories: Sequence[Any]) -> list[str]:
    """Return, for each category, a test whether a column holds it.

    Names are compared as text. Databases write the numbers and truth values of a column in several ways, as 1, 1.0 or
    true; those that are not the names of other categories count as the category.
    """
    taken = set(map(str, categories))
    tests = []
    for each in categories:
        if not isinstance(each, str):
            tests.append(f"{column} = {literal(each)}")
            continue
        others = WRITTEN.get(each, [f"{each}.0"] if each.lstrip("-").isdecimal() else [])
        names = [each, *(other for other in others if other not in taken)]
        tests.append(f"CAST({column} AS VARCHAR) IN ({', '.join(map(literal, names))})")
    return tests


@density_scores.register
def _ones(density: BernoulliDensity, columns: Sequence[str]) -> Scores:
    return [
        plus([known(x, f"CASE WHEN {x} = 1 THEN {literal(on)} ELSE {literal(off)} END")
              for x, on, off in zip(columns, density.log_on[k], density.log_off[k])])
        for k in range(density.K)
    ]  # fmt: skip


@density_scores.register
def _counts(density: PoissonDensity, columns: Sequence[str]) -> Scores:
    columns = within(columns, density.limit)
    with np.errstate(divide="ignore"):
        logs = np.log(density.rate)
    return [
        plus(
            [known(x, f"({x} * {literal(slope)} - {literal(rate)})") for x, slope, rate in zip(columns, logs[k], rates)]
        )
        for k, rates in enumerate(density.rate)
    ]


@density_scores.register
def _positive(density: GammaDensity, columns: Sequence[str]) -> Scores:
    constant = density.shape * np.log(density.rate) - gammaln(density.shape)
    return [
        plus([known(x, f"({literal(c)} + {literal(a - 1)} * LN({x}) - {literal(rate)} * {x})")
              for x, c, a, rate in zip(columns, constant[k], density.shape[k], density.rate[k])])
        for k in range(density.K)
    ]  # fmt: skip


@density_scores.register
def _compound(density: CompoundGammaDensity, columns: Sequence[str]) -> Scores:
    from scipy.special import betaln

    shape, a, b = density.shape, density.a, density.b
    constant = -shape * np.log(b) - betaln(shape, a)
    return [
        plus([known(x, f"({literal(c)} + {literal(s - 1)} * LN({x}) - {literal(p)} * LN(1.0 + {x} / {literal(unit)}))")
              for x, c, s, p, unit in zip(columns, constant[k], shape[k], (a + shape)[k], b[k])])
        for k in range(density.K)
    ]  # fmt: skip


@density_scores.register
def _axes(density: DiagonalNormal, columns: Sequence[str]) -> Scores:
    columns = within(columns, density.limit)
    constant, half = -0.5 * np.log(2 * np.pi * density.variance), 0.5 / density.variance
    return [
        plus([known(x, f"({literal(c)} - {literal(h)} * {_square(x, mean)})")
              for x, c, h, mean in zip(columns, constant[k], half[k], density.mean[k])])
        for k in range(density.K)
    ]  # fmt: skip


def _square(x: str, mean: float) -> str:
    return f"POWER({x} - {literal(mean)}, 2)"


@density_scores.register
def _student_axes(density: DiagonalStudent, columns: Sequence[str]) -> Scores:
    columns = within(columns, density.limit)
    constant = elliptical(np.zeros(1), np.log(density.variance), density.dof, 1)
    scale, power = density.variance * density.dof, 0.5 * (density.dof + 1)
    return [
        plus([known(x, f"({literal(c)} - {literal(p)} * LN(1.0 + {_square(x, mean)} / {literal(v)}))")
              for x, c, p, v, mean in zip(columns, constant[k], power[k], scale[k], density.mean[k])])
        for k in range(density.K)
    ]  # fmt: skip


@density_scores.register
def _matrices(density: MatrixDensity, columns: Sequence[str]) -> Scores:
    """Gaussians of several columns: NULL for a row with a missing value."""
    columns = within(columns, density.limit)
    root = whiten(density.scale)
    scores, D = [], len(columns)
    for k in range(density.K):
        at = k if len(root.whitener) > 1 else 0
        mean, divisor = density.mean[k], density.divisor[k]
        turned = [
            plus([f"{literal(w)} * ({x} - {literal(m)})" for x, m, w in zip(columns, mean, axis) if w])
            for axis in root.whitener[at].T
        ]
        distance = plus([f"POWER({each}, 2)" for each in turned])
        dof = None if density.dof is None else density.dof[k]
        constant = float(elliptical(np.zeros(1), root.log_det[at] - D * log(divisor), dof, D)[0])
        scores.append(_at_distance(constant, distance, divisor, dof, D))
    return [known(columns[0], score) for score in scores] if D == 1 else scores


def _at_distance(constant: float, distance: str, divisor: float, dof: float | None, D: int) -> str:
    if dof is None:
        return f"({literal(constant)} - {literal(0.5 * divisor)} * {distance})"
    return f"({literal(constant)} - {literal(0.5 * (dof + D))} * LN(1.0 + {literal(divisor / dof)} * {distance}))"


@density_scores.register
def _spheres(density: SphericalStudent, columns: Sequence[str]) -> Scores:
    raise _refused("a spherical Gaussian under rule 'predictive'")


@density_scores.register
def _mapped(density: MappedDensity, columns: Sequence[str]) -> Scores:
    family = density.family
    if isinstance(family, Binned):
        return _bins(density, family, columns)
    if isinstance(family, Transformed):
        by = family.by if isinstance(family.by, tuple) else (family.by,) * len(columns)
        gap = family.outside == "gap"
        columns = within(columns, family.reach)
        turned = [transformed(x, one, map[0], map[1], gap) for x, one, map in zip(columns, by, density.map)]
        return density_scores(density.inner, turned)
    raise _refused(f"the family {type(family).__name__}")


def within(columns: Sequence[str], limit: Array | None) -> Sequence[str]:
    """Return numbers, with NULL in place of those beyond a limit, which count as missing."""
    if limit is None:
        return columns
    return [f"(CASE WHEN ABS({x}) <= {literal(far)} THEN {x} END)" for x, far in zip(columns, limit)]


def transformed(x: str, by: str, power: float, unit: float, gap: bool) -> str:
    """Return the transform of a number; numbers without a logarithm are missing if `gap`."""
    if by == "none":
        return x
    if by == "log":
        return f"(CASE WHEN {x} > 0 THEN LN({x}) END)" if gap else f"LN({x})"
    scaled = f"({x} / {literal(unit)})"
    rise = (
        f"LN(1.0 + {scaled})" if power == 0 else f"((POWER(1.0 + {scaled}, {literal(power)}) - 1.0) / {literal(power)})"
    )
    left = 2.0 - power
    fall = (
        f"(-LN(1.0 - {scaled}))"
        if left == 0
        else f"(-(POWER(1.0 - {scaled}, {literal(left)}) - 1.0) / {literal(left)})"
    )
    return f"(CASE WHEN {x} >= 0 THEN {rise} WHEN {x} < 0 THEN {fall} END)"


def _bins(density: MappedDensity, family: Binned, columns: Sequence[str]) -> Scores:
    inner: Any = density.inner
    parts: list[Scores] = []
    for column, edges, start in zip(within(columns, family.limit), family.edges or (), inner.axis.starts):
        below = [f"{column} < {literal(edge)}" for edge in edges]
        cells = inner.log_p[start : start + len(edges) + 1].T  # (K, bins)
        parts.append([known(column, case(list(zip(below, map(literal, p))), literal(p[-1]))) for p in cells])
    return _sum(parts, density.K)


def _sum(parts: Sequence[Scores], K: int) -> Scores:
    return [plus([part[k] for part in parts]) for k in range(K)]


# -- experts: evidence beside the blocks -------------------------------------------------------------------------------
@dataclass
class Query:
    """The columns that a query computes, in steps; each step may use the columns of those before it."""

    steps: list[dict[str, str]] = field(default_factory=lambda: [{}, {}, {}, {}])  # levels, pairs, parents, sums

    def column(self, step: int, label: str, expression: str) -> str:
        """Add a column, and return its name."""
        self.steps[step][label] = expression
        return name(label)


def _level(cut: Cut, column: str) -> str:
    """Return the level of a value; NULL where it is missing."""
    if cut.edges is not None:
        (x,) = within([number(column)], None if cut.limit is None else np.array([cut.limit]))
        level = case([(f"{x} < {literal(edge)}", str(at)) for at, edge in enumerate(cut.edges)], str(len(cut.edges)))
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE {level} END"
    tests = [(test, str(at)) for at, test in enumerate(_tests(name(column), cut.names))]
    return f"CASE WHEN {name(column)} IS NULL THEN NULL ELSE {case(tests, str(len(cut.names)))} END"


def _interactions(
    query: Query, at: int, family: Interactions, density: Any, columns: Sequence[str], weights: Array
) -> list[Scores]:
    """Return the weighted parts of pairs of columns, and of averaged one-dependence estimators."""
    layout, K = density.layout, density.K
    averaged = family.averaged and weights[-1] > 0
    levels = [
        query.column(0, f"level {at} {j}", _level(cut, column))
        for j, (cut, column) in enumerate(zip(family.cuts, columns))
    ]
    found: list[Scores] = []
    of_parent: list[list[list[str]]] = [[[] for _ in range(K)] for _ in columns]
    for p, ((one, two), start, size) in enumerate(zip(layout.pairs, layout.starts, layout.sizes)):
        if not averaged and not weights[p] > 0:
            continue
        cell = f"({levels[one]} * {int(layout.levels[two])} + {levels[two]})"
        scores = []
        for k in range(K):
            cells = [(f"{cell} = {c}", literal(density.table[start + c, k])) for c in range(size)]
            scores.append(query.column(1, f"pair {at} {p} {k}", case(cells, "0.0")))
        for k in range(K):
            of_parent[one][k].append(scores[k])
            of_parent[two][k].append(scores[k])
        if weights[p] > 0:
            found.append([f"{literal(weights[p])} * {score}" for score in scores])
    if averaged:
        found.append([f"{literal(weights[-1])} * {_log_mean(query, at, k, of_parent)}" for k in range(K)])
    return found


def _log_mean(query: Query, at: int, k: int, of_parent: Sequence[Sequence[Sequence[str]]]) -> str:
    """Return log mean_i exp of the sums of each parent."""
    sums = [query.column(2, f"parent {at} {i} {k}", plus(each[k])) for i, each in enumerate(of_parent)]
    return f"LN({plus([f'EXP({each})' for each in sums])} / {literal(len(sums))})"


def _ramp(ramp: Ramp, column: str) -> list[str]:
    """Return the features of a column by a ramp; 0 where it is missing."""
    if ramp.names:
        root = np.sqrt(2.0)
        values = [
            f"CASE WHEN {test} THEN {literal(root * (1 - share))} ELSE {literal(-root * share)} END"
            for test, share in zip(_tests(name(column), ramp.names), ramp.shares)
        ]
        return [known(name(column), value) for value in values]
    x, knots, scores = number(column), ramp.knots, ramp.scores
    pieces = [(f"{x} <= {literal(knots[0])}", literal(scores[0]))]
    for low, high, start, end in zip(knots, knots[1:], scores, scores[1:]):
        slope = (end - start) / (high - low)
        pieces.append((f"{x} <= {literal(high)}", f"({literal(start)} + {literal(slope)} * ({x} - {literal(low)}))"))
    return [known(x, case(pieces, literal(scores[-1])))]


def _cosines(query: Query, at: int, family: CosineFeatures, density: Density, columns: Sequence[str]) -> Scores:
    """Return the discriminant, which is linear in the features; 0 if all columns are missing."""
    if not isinstance(density, NormalDensity):
        raise _refused("an expert on all columns under rule 'predictive'")
    numbers = [
        query.column(0, f"ramp {at} {j} {part}", expression)
        for j, (ramp, column) in enumerate(zip(family.ramps, columns))
        for part, expression in enumerate(_ramp(ramp, column))
    ]
    features = []
    for m, (omega, phase) in enumerate(zip(family.frequencies.T, family.phases)):
        wave = plus([*(f"{literal(w)} * {z}" for w, z in zip(omega, numbers)), literal(phase)])
        rounded = f"ROUND({literal(np.sqrt(2.0) * STEPS)} * COS({wave})) / {literal(STEPS)}"
        features.append(query.column(1, f"cosine {at} {m}", rounded))
    _, slopes, constants = density.polynomial()
    empty = " AND ".join(f"{name(column)} IS NULL" for column in columns)
    scores = [
        plus([literal(c), *(f"{literal(b)} * {x}" for b, x in zip(slope, features))])
        for slope, c in zip(slopes - slopes[0], constants - constants[0])
    ]
    return [f"CASE WHEN {empty} THEN 0.0 ELSE {score} END" for score in scores]


def _expert_scores(query: Query, model: Model, density: Any, weights: Array) -> list[Scores]:
    """Return the weighted parts of all experts."""
    found: list[Scores] = []
    family: Any = model.family  # a product: others have no experts
    taken = 0
    for at, (expert, inner) in enumerate(zip(family.experts.values(), density.experts.values())):
        if isinstance(expert.family, Interactions):
            own = weights[taken : taken + len(expert.family.part_columns)]
            found += _interactions(query, at, expert.family, inner, expert.columns, own) if (own > 0).any() else []
            taken += len(own)
            continue
        weight, taken = weights[taken], taken + 1
        if not weight > 0:
            continue
        if isinstance(expert.family, CosineFeatures):
            scores = _cosines(query, at, expert.family, inner, expert.columns)
            found.append([f"{literal(weight)} * {score}" for score in scores])
            continue
        if isinstance(expert.family, Gaps):
            columns = [f"(CASE WHEN {name(each)} IS NULL THEN 1 ELSE 0 END)" for each in expert.columns]
        else:
            columns = [number(each) for each in expert.columns]
        scores = density_scores(inner, columns)
        if expert.whole_rows:
            gap = " OR ".join(f"{name(each)} IS NULL" for each in expert.columns)
            scores = [f"CASE WHEN {gap} THEN 0.0 ELSE {score} END" for score in scores]
        found.append([f"{literal(weight)} * {score}" for score in scores])
    return found


# -- the query ---------------------------------------------------------------------------------------------------------
def to_sql(
    model: Model,
    density: Density,
    log_prior: Array,
    table: str,
    dialect: str = "duckdb",
    keep: Sequence[str] | None = None,
) -> str:
    """Return a query that answers for every row of a table."""
    query = Query()
    schema = model.reader.schema
    if schema is not None and any(column.kind in ("text", "date") for column in schema.columns):
        column = next(column for column in schema.columns if column.kind in ("text", "date"))
        raise _refused(f"column {column.name!r}, which holds {column.kind}s,")
    classes = list(model.classes)
    totals = _totals(query, model, density)
    labels = [f"score {k}" for k in range(len(classes))]
    scored = {label: f"{each} + {literal(prior)}" for label, each, prior in zip(labels, totals, log_prior)}
    top = f"GREATEST({', '.join(map(name, labels))})"
    weights = {f"weight {k}": f"EXP({name(label)} - {name('most')})" for k, label in enumerate(labels)}
    whole = plus([name(label) for label in weights])
    kept = list(map(str, model.reader.columns)) if keep is None else list(keep)
    decided = case(
        [(f"{name(label)} = {name('most')}", literal(each)) for label, each in zip(labels[:-1], classes)],
        literal(classes[-1]),
    )
    answers = [f"CASE WHEN {name('most')} IS NULL THEN NULL ELSE {decided} END AS prediction"]
    answers += [f"{name(f'weight {k}')} / {whole} AS {name(f'P({each})')}" for k, each in enumerate(classes)]
    steps = [*query.steps, scored, {"most": top}, weights]
    source, tables = name(table), []
    for at, step in enumerate(step for step in steps if step):
        added = ", ".join(f"{expression} AS {name(label)}" for label, expression in step.items())
        # materialized, because planners otherwise expand all steps into one enormous expression
        tables.append(f"step{at} AS MATERIALIZED (SELECT *, {added} FROM {source})")
        source = f"step{at}"
    text = f"WITH {', '.join(tables)} SELECT {', '.join([*map(name, kept), *answers])} FROM {source}"
    return translated(text, dialect)


def _totals(query: Query, model: Model, density: Density) -> Scores:
    """Return the calibrated log-likelihood of each class."""
    keys = model.family.keys if isinstance(model.family, Product) else [tuple(model.reader.columns)]
    K = len(model.classes)
    blocks: list[Scores] = []
    for key, (_, inner) in zip(keys, blocks_of(model.family, density)):
        columns = [name(each) if isinstance(inner, CategoricalDensity) else number(each) for each in key]
        blocks.append(density_scores(inner, columns))
    calibration = model.calibration
    if calibration is None:
        return _sum(blocks, K)
    made = calibration.calibrator
    if isinstance(made, Affine):
        llr = f"({_sum(blocks, K)[1]} - {_sum(blocks, K)[0]})"
        return ["0.0", f"CASE WHEN {llr} = 0 THEN 0.0 ELSE {literal(made.a)} * {llr} + {literal(made.b)} END"]
    if isinstance(made, Offsets):
        scales, weights = [made.scale] * len(blocks), np.zeros(0)
    elif isinstance(made, Blockwise) and not np.any(made.shrinkages):
        scales, weights = [exp(each) for each in made.log_scales], made.weights
    else:
        raise _refused(f"a calibration by {calibration.method!r}")
    experts = _expert_scores(query, model, density, weights) if len(weights) and (weights > 0).any() else []
    scaled = [[f"{literal(scale)} * {score}" for score in part] for scale, part in zip(scales, blocks)]
    sums = _sum([*scaled, *experts], K)
    labels = [query.column(3, f"sum {k}", each) for k, each in enumerate(sums)]
    silent = " AND ".join(f"{each} = {labels[0]}" for each in labels[1:])
    offsets = calibration.offsets(model.classes)
    # offsets are not added to rows without evidence
    return [
        f"({each} + CASE WHEN {silent} THEN 0.0 ELSE {literal(offset)} END)" for each, offset in zip(labels, offsets)
    ]


def translated(text: str, dialect: str, pretty: bool = True, tables: Mapping[str, str] | None = None) -> str:
    """Return a query of DuckDB in another dialect; `tables` are other names for its tables."""
    try:
        import sqlglot
    except ImportError:
        raise NotAvailableError(
            "SQL is written by sqlglot, which is missing.", remedy="pip install 'deciban[sql]'"
        ) from None
    known_dialects = sorted(each for each in sqlglot.Dialect.classes if each)
    if dialect not in known_dialects:
        raise InputError(f"dialect {dialect!r} is unknown.", remedy=f"Use one of {', '.join(known_dialects)}.")
    tree = sqlglot.parse_one(text, read="duckdb")
    for table in tree.find_all(sqlglot.exp.Table) if tables else ():
        if table.name in tables:  # type: ignore[operator]
            table.set("this", sqlglot.exp.to_identifier(tables[table.name], quoted=True))  # type: ignore[index]
    return str(tree.sql(dialect=dialect, pretty=pretty))
