"""Every parameter of a classifier, with its credible interval, one line for each class and feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from deciban.evidence.scores import convert
from deciban.families.abilities import HasPosterior, ability
from deciban.families.product import blocks_of
from deciban.statistics import Array, Ragged
from deciban.text import Text
from deciban.text.stats import UNK, count_family, word_sums

SHARES = {"p", "theta"}  # parameters that are probabilities: two classes' are compared by their ratio


class Parameter(NamedTuple):
    """One parameter of one class, or of all where they share it."""

    feature: str
    parameter: str
    label: str  # the class; "all" where it is shared
    mean: float
    low: float
    high: float
    evidence: float | None  # decibans that this value is for the class over the others, where it is a probability


def parameters(clf: Any, level: float = 0.9) -> Iterator[Parameter]:
    """The parameters of every block that can describe them."""
    classes = [str(name) for name in clf.stats_.classes]
    for (family, stats), at in zip(blocks_of(clf.family_, clf.stats_.family), clf.model_.positions):
        columns = [str(clf.columns_[j]) for j in at]
        if isinstance(family, Text):
            yield from _words(family, stats, classes, level)
            continue
        described = ability(family, HasPosterior)
        if described is None:
            continue
        posterior = described.posterior(stats)
        for name in posterior:
            marginal = posterior[name]
            if np.ndim(marginal.mean) > 2:
                continue  # a covariance is a table of its own; its diagonal is the variance
            features = _features(stats, columns, np.shape(marginal.mean)[-1])
            yield from _lines(features, name, classes, marginal, level)


def _words(family: Text, stats: Any, classes: Sequence[str], level: float) -> Iterator[Parameter]:
    """The probabilities of words, those first that tell most: by how frequent they are, and how unevenly."""
    axis, sums, *_ = word_sums(family, stats)
    words = [str(name) for name in axis.names if name != UNK] + [UNK] * (UNK in axis.names)
    marginal = count_family(family, axis.size).posterior(sums)["p"]  # type: ignore[arg-type]
    lines = list(_lines(words, "p", classes, marginal, level))
    K = len(classes)
    of_word = [lines[j * K : (j + 1) * K] for j in range(len(words))]
    of_word.sort(key=lambda some: -sum(line.mean * abs(line.evidence or 0.0) for line in some))
    yield from chain.from_iterable(of_word)


def _lines(
    features: Sequence[str], name: str, classes: Sequence[str], marginal: Any, level: float
) -> Iterator[Parameter]:
    low, high = (np.atleast_2d(end) for end in marginal.interval(level))
    mean = np.atleast_2d(marginal.mean)
    K = len(mean)
    evidence = _evidence(mean) if name in SHARES and K > 1 else None
    for j, feature in enumerate(features):
        for k in range(K):
            said = None if evidence is None else float(evidence[k, j])
            numbers = (float(mean[k, j]), float(low[k, j]), float(high[k, j]))
            yield Parameter(feature, name, classes[k] if len(classes) == K else "all", *numbers, said)


def _evidence(p: Array) -> Array:
    """Decibans of each class over the mean of the others."""
    others = (p.sum(axis=0) - p) / (len(p) - 1)
    with np.errstate(divide="ignore"):
        return convert(np.log(p) - np.log(others), "decibans")


def _features(stats: Any, columns: Sequence[str], size: int) -> list[str]:
    """What stands along the last axis: columns, their categories, or words."""
    for axis in stats.labels.values():
        if isinstance(axis, Ragged) and axis.size == size:
            return [f"{column}={name}" for column, part in zip(columns, axis.parts) for name in part.names]
    word = stats.labels.get("word")
    if word is not None and word.size == size and not isinstance(word.names, range):
        return [str(name) for name in word.names]
    return list(columns) if len(columns) == size else [f"all of {', '.join(columns)}"] * size
