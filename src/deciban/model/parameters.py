"""Parameters of a fitted model in the units of its columns: posteriors as a table, moments and probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from deciban.evidence.scores import convert
from deciban.families.abilities import HasPosterior, ability
from deciban.families.bernoulli import BernoulliDensity
from deciban.families.binned import Binned
from deciban.families.categorical import CategoricalDensity
from deciban.families.dirichlet import MultinomialDensity
from deciban.families.moments import Moments, column_covariances, column_moments
from deciban.families.product import ProductDensity, blocks_of
from deciban.families.protocol import Density, Marginal
from deciban.families.transformed import Transformed
from deciban.model.model import Model
from deciban.statistics import Array, Axis, Ragged, Stats
from deciban.text import Text
from deciban.text.density import TextDensity
from deciban.text.stats import UNK, count_family, word_sums

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
    """The parameters of every block whose family has a posterior, except covariances."""
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
    """Means of transformed values as medians in the units of the column."""
    return family.unmapped(values, map, np.random.default_rng(0))


def _word_parameters(
    family: Text, stats: Any, classes: Sequence[str], level: float, column: str
) -> Iterator[Parameter]:
    """The probabilities of words, of a column if there are several; frequent words with large evidence first."""
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
    """The parameters of one marginal of a posterior, (K, P) or (P,), whose features are given with their columns.

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
    """Evidence for each class over the mean of the others, in decibans."""
    others = (p.sum(axis=0) - p) / (len(p) - 1)
    with np.errstate(divide="ignore"):
        return convert(np.log(p) - np.log(others), "decibans")


def _feature_names(stats: Stats, columns: Sequence[str], size: int) -> list[tuple[str, str]]:
    """Names along the last axis of a parameter (columns, categories of columns, or words), each with its column."""
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
