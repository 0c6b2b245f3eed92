"""Explanations: parts of the evidence of a row, the llr as a formula, and parameters in the units of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, NotAvailableError
from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import convert, log_joint, log_ratio
from deciban.families.abilities import (
    HasDiscriminant,
    HasNamedParts,
    HasParts,
    HasPosterior,
    HasSelection,
    HasWordParts,
    ability,
)
from deciban.families.bernoulli import BernoulliDensity
from deciban.families.binned import Binned
from deciban.families.categorical import CategoricalDensity
from deciban.families.dirichlet import MultinomialDensity
from deciban.families.fixed import Released
from deciban.families.interactions import Interactions
from deciban.families.moments import Moments, column_covariances, column_moments
from deciban.families.product import Product, ProductDensity, blocks_of
from deciban.families.protocol import Density, Family, Marginal, Rows
from deciban.families.transformed import Transformed
from deciban.model.calibration import total
from deciban.model.model import Model
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.tables import Table
from deciban.statistics import Array, Axis, Ragged, Stats
from deciban.text import Text
from deciban.text.density import TextDensity
from deciban.text.stats import UNK, count_family, word_sums


# -- evidence of rows --------------------------------------------------------------------------------------------------
class Discriminant(NamedTuple):
    """llr(x) = xᵀA x + xᵀb + c; A is None where it is linear."""

    A: Array | None
    b: Array
    c: float


class Parts(NamedTuple):
    """The terms that a log density is a sum of."""

    names: list[str]  # (P,)
    log_density: Array  # (n, K, P)
    values: Array  # (n, P)
    block: Array  # (P,) which block each belongs to
    factors: Array  # (P,) of words, where the calibration has them; 1 for all others


@dataclass(frozen=True, eq=False)
class Chained:
    """The density of correlated features, one at a time: log f(x) = Σ_d log f(x_d | x_1 … x_{d−1})."""

    density: Any

    def parts(self, X: Array) -> Array:
        """Return differences of the log densities of marginals, shape (n, K, D)."""
        D = X.shape[1]
        sums = [self.density.select(np.arange(d + 1)).log_density(X[:, : d + 1]) for d in range(D)]
        return np.diff(np.stack([np.zeros_like(sums[0]), *sums], axis=2), axis=2)


def explain(
    predictor: Predictor, table: Table, pair: tuple[int, int | None] | None, log_prior: Array, chain: bool = False
) -> Explanation:
    """Explain the evidence for one class over another; without a pair, for each row's most probable class."""
    model = predictor.model
    classes = np.array(model.classes)
    rows = model.encode(table)
    blocks = predictor.block_scores(rows)
    B = len(model.positions)
    scores, raw = predictor.calibrated(blocks, rows), total(blocks[:B])
    each = np.arange(len(scores))
    if pair is None:
        ranked = np.argsort(-log_joint(scores, log_prior), axis=1, kind="stable")
        one, other = ranked[:, 0], ranked[:, 1]
    elif pair[1] is None:
        raise InputError(
            "the evidence against all other classes together is not a sum over features. Name a class to compare with."
        )
    else:
        one, other = (np.full(len(scores), k) for k in pair)
    parts = parts_of(predictor, table, rows, chain)
    if model.calibration is not None and model.calibration.uses_experts:
        parts = joined([parts, expert_parts(predictor, table, blocks[B:])])
    evidence = log_ratio(parts.log_density[each, one], parts.log_density[each, other])
    impossible = np.isneginf(raw[each, one]) & np.isneginf(raw[each, other])
    evidence[impossible] = 0.0  # both classes give these rows probability zero
    extra: dict[str, Array] = {}
    if model.calibration is not None:
        if hasattr(model.calibration.calibrator, "offsets"):
            scales = model.calibration.scales(block_lengths(model.family, rows), len(evidence))
            evidence = evidence * (scales if len(scales) == 1 else scales[parts.block]).T * parts.factors
        whole = log_ratio(scores[each, one], scores[each, other])
        tamed = np.isfinite(whole) & np.isinf(evidence).any(axis=1)  # a PAV calibration makes infinite evidence finite
        evidence[tamed] = np.where(np.isinf(evidence[tamed]), 0.0, evidence[tamed])
        summed = evidence.sum(axis=1)
        extra = {"calibration": np.subtract(whole, summed, out=np.zeros(len(whole)), where=whole != summed)}
    return Explanation(
        parts.names,
        evidence,
        classes[one],
        classes[other],
        values=parts.values,
        prior_part=log_ratio(log_prior[one], log_prior[other]),
        other=extra,
        exhaustive=len(classes) == 2,
    )


def discriminant(predictor: Predictor, one: int, other: int | None) -> Discriminant:
    """Return the llr of one class over another as a linear or quadratic formula of x."""
    density = ability(predictor.density, HasDiscriminant)
    if other is None or density is None:
        raise NotAvailableError(
            "a discriminant is the llr of one class over another, for families whose log density is linear or "
            "quadratic in x. Name two classes, and use rule 'ml', 'map' or 'mean'."
        )
    A, b, c = density.polynomial()
    return Discriminant(None if A is None else A[one] - A[other], b[one] - b[other], float(c[one] - c[other]))


def parts_of(predictor: Predictor, table: Table, rows: Rows, chain: bool = False) -> Parts:
    """Split the log densities of encoded rows into the parts of each block."""
    model = predictor.model
    product = isinstance(model.family, Product)
    found: list[Parts] = []
    blocks = zip(blocks_of(model.family, predictor.density, rows), model.block_names, model.positions)
    for place, ((_, density, X), name, at) in enumerate(blocks):
        named = ability(density, HasNamedParts)
        if named is not None:
            words, terms, counts = named.named_parts(X)
            factors = np.ones(len(words)) if model.calibration is None else model.calibration.factors_of(place, words)
            grouped = ability(density, HasWordParts)
            whole_words = None if grouped is None else grouped.parts_by_word(X, words, terms * factors)
            if whole_words is not None:
                words, terms, counts = whole_words
                factors = np.ones(len(words))
            names = [f"{name}: {word}" for word in words] if len(model.positions) > 1 else words
            found.append(Parts(names, terms, counts, np.full(len(words), place), factors))
        else:
            columns = [str(model.reader.columns[j]) for j in at]
            whole = name if product else "all features together"
            found.append(_column_parts(density, X, table, at, columns, (whole, f"{name}: all else"), place, chain))
    return joined(found)


def expert_parts(predictor: Predictor, table: Table, scores: Sequence[Array]) -> Parts:
    """Return the parts of experts that have a weight, by their scores (n, K) of each part."""
    model, calibration = predictor.model, predictor.model.calibration
    B = len(model.positions)
    weights = calibration.calibrator.weights  # type: ignore[union-attr]  # the calibration uses experts
    columns = [str(name) for name in model.reader.columns]
    used = np.flatnonzero(weights > 0)
    names, values = [], np.full((len(table), len(used)), None, dtype=object)
    for place, e in enumerate(used):
        family, key = predictor.weighted_parts()[e]
        expert = family.family if isinstance(family, Released) else family
        names.append(expert_label(expert, key))
        if isinstance(expert, Interactions) and len(key) == 2:
            both = [np.asarray(table.pick([columns.index(str(name))])).astype(object)[:, 0] for name in key]
            values[:, place] = [f"{_shown(one)}, {_shown(other)}" for one, other in zip(*both)]
    return Parts(names, np.stack([scores[int(e)] for e in used], axis=2), values, B + used, np.ones(len(used)))


def expert_label(expert: Family[Any], key: Sequence[Any]) -> str:
    """Return what the part of an expert is called: "age with occupation"."""
    from deciban.families.bernoulli import Gaps
    from deciban.families.cosine_features import CosineFeatures

    if isinstance(expert, Gaps):
        return f"{', '.join(map(str, key))}: missing or not"
    if isinstance(expert, CosineFeatures):
        return f"{'smooth' if expert.bandwidth < 1 else 'finer'} function of {len(key)} columns"
    if len(key) == 1:
        return f"{key[0]}, by itself"
    if len(key) == 2:
        return f"{key[0]} with {key[1]}"
    return f"{len(key)} columns {'in pairs, averaged' if isinstance(expert, Interactions) else 'together'}"


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:g}" if isinstance(value, float) else str(value)


def joined(found: Sequence[Parts]) -> Parts:
    """Return all parts, one after the other."""
    return Parts(
        [label for part in found for label in part.names],
        np.concatenate([part.log_density for part in found], axis=2),
        np.concatenate([np.asarray(part.values).astype(object) for part in found], axis=1),
        np.concatenate([part.block for part in found]).astype(np.intp),
        np.concatenate([part.factors for part in found]),
    )


def _column_parts(
    density: Density,
    X: Rows,
    table: Table,
    at: list[int],
    columns: list[str],
    labels: tuple[str, str],
    place: int,
    chain: bool,
) -> Parts:
    """Return one part per column where the density is a sum over columns, and the rest as a further part."""
    total = density.log_density(X)
    parts, selection = ability(density, HasParts), ability(density, HasSelection)
    if parts is not None and sp.issparse(X) and selection is not None:
        seen = np.unique(X.indices[X.data != 0])  # only the events that occur in these rows
        at, columns = [at[j] for j in seen], [columns[j] for j in seen]
        parts, X = selection.select(seen), X[:, seen].toarray()  # type: ignore[assignment]
    elif parts is None and chain and selection is not None and not sp.issparse(X):
        parts = Chained(density)
    names: list[str] = []
    terms, values = [], []
    rest, rest_name = total, labels[0]
    if parts is not None:
        names, each = list(columns), parts.parts(X)
        terms, values = [each], [table.pick(at)]
        rest, rest_name = log_ratio(total, each.sum(axis=2)), labels[1]  # the part that belongs to no single column
    if parts is None or np.abs(rest).max(initial=0) > 1e-12 * max(1, np.abs(total[np.isfinite(total)]).max(initial=0)):
        names.append(rest_name)
        terms.append(rest[:, :, None])
        values.append(np.full((len(table), 1), None, dtype=object))
    held = [np.asarray(v.toarray() if sp.issparse(v) else v).astype(object) for v in values]
    block = np.full(len(names), place)
    return Parts(names, np.concatenate(terms, axis=2), np.concatenate(held, axis=1), block, np.ones(len(names)))


# -- parameters --------------------------------------------------------------------------------------------------------
PROBABILITIES = {"p", "theta"}  # parameters whose ratio between classes is evidence


class Parameter(NamedTuple):
    """A parameter of one class, or of all classes if they share it."""

    feature: str
    parameter: str
    label: str  # the class; "all" if it is shared
    mean: float
    low: float
    high: float
    evidence: float | None  # decibans of this value for the class over the others, if the parameter is a probability
    column: str  # of the feature; empty for the words of a model of texts, the feature itself if it has several columns


SHOWN = Parameter._fields[:-1]  # what tables of parameters have


def posterior_parameters(model: Model, level: float) -> Iterator[Parameter]:
    """Return the parameters of every block whose family has a posterior, except covariances."""
    classes, names = [str(name) for name in model.stats.classes], model.reader.labels
    blocks = zip(blocks_of(model.family, model.stats.family), model.positions, model.block_names)
    for (family, stats), positions, block in blocks:
        columns = [names[j] for j in positions]
        if isinstance(family, Text):
            column = block if len(model.positions) > 1 else ""
            yield from _word_parameters(family, stats, classes, level, column)
            continue
        described = ability(family, HasPosterior)
        if described is None:
            continue
        posterior = described.posterior(stats)
        for name in posterior:
            marginal = posterior[name]
            if np.ndim(marginal.mean) <= 2:  # a covariance has more; the variances are its diagonal
                features = _feature_names(stats, columns, np.shape(marginal.mean)[-1])
                if isinstance(family, Binned):
                    places = [family.ranges(j, stats.map) for j in range(len(columns))]
                    features = [(f"{column} {place}", column) for column, own in zip(columns, places) for place in own]
                back: Callable[[Array], Array] | None = None
                if isinstance(family, Transformed):
                    back = partial(_in_units, family, stats.map) if name == "mean" else None
                    name = "median" if name == "mean" else f"{name}, transformed"
                yield from _of_marginal(features, name, classes, marginal, level, back)


def _in_units(family: Transformed, map: Array, values: Array) -> Array:
    """Return the means of transformed values as medians in the units of the column."""
    return family.unmapped(values, map, np.random.default_rng(0))


def _word_parameters(
    family: Text, stats: Any, classes: Sequence[str], level: float, column: str
) -> Iterator[Parameter]:
    """Return the probabilities of words, of a column if there are several; frequent words with large evidence first."""
    axis, sums, *_ = word_sums(family, stats)
    words = [str(name) for name in axis.names if name != UNK] + [UNK] * (UNK in axis.names)
    marginal = count_family(family, sums).posterior(sums)["p"]  # type: ignore[arg-type]
    prefix = f"{column}: " if column else ""  # as in explanations
    lines = list(_of_marginal([(prefix + word, column) for word in words], "p", classes, marginal, level))
    K = len(classes)
    by_word = [lines[j * K : (j + 1) * K] for j in range(len(words))]
    by_word.sort(key=lambda some: -sum(line.mean * abs(line.evidence or 0.0) for line in some))
    yield from chain.from_iterable(by_word)


def _of_marginal(
    features: Sequence[tuple[str, str]],
    name: str,
    classes: Sequence[str],
    marginal: Marginal,
    level: float,
    back: Callable[[Array], Array] | None = None,
) -> Iterator[Parameter]:
    """Return the parameters of one marginal of a posterior, (K, P) or (P,); `features` are given with their columns.

    `back` maps values to the units of the column.
    """
    low, high, mean = (np.atleast_2d(each) for each in (*marginal.interval(level), marginal.mean))
    if back is not None:
        low, high, mean = back(low), back(high), back(mean)
    K = len(mean)
    evidence = _decibans_over_others(mean) if name in PROBABILITIES and K > 1 else None
    for j, (feature, column) in enumerate(features):
        for k in range(K):
            decibans = None if evidence is None else float(evidence[k, j])
            numbers = (float(mean[k, j]), float(low[k, j]), float(high[k, j]))
            yield Parameter(feature, name, classes[k] if len(classes) == K else "all", *numbers, decibans, column)


def _decibans_over_others(p: Array) -> Array:
    """Return the evidence for each class over the mean of the others, in decibans."""
    others = (p.sum(axis=0) - p) / (len(p) - 1)
    with np.errstate(divide="ignore"):
        return convert(np.log(p) - np.log(others), "decibans")


def _feature_names(stats: Stats, columns: Sequence[str], size: int) -> list[tuple[str, str]]:
    """Return the names along the last axis of a parameter: columns, categories or words, each with its column."""
    for name, axis in stats.labels.items():
        if isinstance(axis, Ragged) and axis.size == size:
            return [(f"{column}={value}", column) for column, part in zip(columns, axis.parts) for value in part.names]
        if name == "word" and isinstance(axis, Axis) and axis.size == size and not isinstance(axis.names, range):
            return [(str(word), "") for word in axis.names]
    names = columns if len(columns) == size else [f"all of {', '.join(columns)}"] * size
    return [(name, name) for name in names]


# -- arrays ------------------------------------------------------------------------------------------------------------
def moments(model: Model, density: Density) -> Moments:
    """Return means and variances of the columns; AttributeError if no column has them."""
    return column_moments(density, model.positions, len(model.reader.columns))


def covariances(model: Model, density: Density) -> Array:
    """Return the covariances of the columns in each class, (K, D, D): 0 between blocks, NaN where there are none."""
    return column_covariances(density, model.positions, len(model.reader.columns))


def log_probabilities(density: Density) -> Array | list[Array] | dict[Any, Any]:
    """Return log probabilities of words, ones or categories in each class.

    Words and ones: (K, D). Categories: one array (K, n_categories) for each column. Several blocks: a dict of these by
    column, for the blocks that have log probabilities. Raises AttributeError if the density has none.
    """
    if isinstance(density, TextDensity):
        return log_probabilities(density.inner)
    if isinstance(density, MultinomialDensity):
        return density.log_p.T
    if isinstance(density, BernoulliDensity):
        return density.log_on
    if isinstance(density, CategoricalDensity):
        ends = np.cumsum([part.size for part in density.axis.parts])[:-1]
        return np.split(density.log_p.T, ends, axis=1)
    return _by_column(density, log_probabilities)


def category_names(density: Density) -> Array | list[Array] | dict[Any, Any]:
    """Return the names along the last axis of `log_probabilities`, in the same form; AttributeError if it has none."""
    if isinstance(density, TextDensity):
        return _names(density.axis.names)
    if isinstance(density, CategoricalDensity):
        return [_names(names) for names in density.names]
    return _by_column(density, category_names)


def _names(names: Sequence[Any]) -> Array:
    found = np.empty(len(names), dtype=object)
    found[:] = list(names)
    return found


def _by_column(density: Density, act: Callable[[Density], Any]) -> dict[Any, Any]:
    """Return act(block) for the blocks of a product that have it: by column, or by the columns of a block."""
    found: dict[Any, Any] = {}
    for key, block in (density.blocks if isinstance(density, ProductDensity) else {}).items():
        try:
            each = act(block)
        except AttributeError:
            continue
        found |= dict(zip(key, each)) if isinstance(each, list) else {key[0] if len(key) == 1 else key: each}
    if not found:
        raise AttributeError(f"{type(density).__name__} has no log probabilities of words, ones or categories.")
    return found
