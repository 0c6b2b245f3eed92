"""Words of a model of texts, by their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from deciban.errors import DecibanError
from deciban.evidence.scores import convert
from deciban.families.abilities import HasDiscriminant, HasNamedParts, ability
from deciban.families.product import blocks_of
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.statistics import Array
from deciban.text.stats import UNK, word_sums


@dataclass(frozen=True, eq=False)
class Words:
    """The words of one column with the most evidence."""

    column: str
    words: list[str]  # (W,)
    counts: Array  # (W,) of the rows learnt; 0 where a released model does not hold them
    decibans: Array  # (W, K) evidence of one occurrence for each class over the mean of the others, not calibrated
    total: int  # words of the vocabulary


def words_by_evidence(predictor: Predictor, most: int) -> list[Words]:
    """Return, for each column of texts, the `most` words of largest evidence times frequency."""
    model, found = predictor.model, []
    blocks = zip(blocks_of(model.family, predictor.density, model.stats.family), model.positions)
    for (family, density, stats), at in blocks:
        if ability(density, HasNamedParts) is not None and len(model.classes) > 1:
            words = _words(model, family, density, stats, ", ".join(model.reader.labels[j] for j in at), most)
            found += [] if words is None else [words]
    return found


def _words(model: Model, family: Any, density: Any, stats: Any, column: str, most: int) -> Words | None:
    linear = ability(density, HasDiscriminant)
    if linear is None:
        return None
    try:
        _, b, _ = linear.polynomial()  # (K, V) log-likelihood of one term
    except DecibanError:  # a reading that is not linear in the counts
        return None
    names = [*density.vocabulary, UNK][: b.shape[1]]
    once = b * family.terms.amounts(1)[1]
    with np.errstate(invalid="ignore"):
        evidence = np.stack([once[k] - _mean_of_others(once, k) for k in range(len(once))], axis=1)
    evidence = np.nan_to_num(convert(evidence, "decibans"), nan=0.0, posinf=999.0, neginf=-999.0)
    try:
        counts = np.asarray(word_sums(family, stats).sums.counts).sum(axis=0)
    except (DecibanError, AttributeError):  # released models keep no sums
        counts = np.ones(len(names))
    counts = np.resize(counts, len(names)) if len(counts) != len(names) else counts
    order = np.argsort(-counts * np.abs(evidence).max(axis=1), kind="stable")[:most]
    return Words(column, [names[j] for j in order], counts[order], evidence[order], len(names))


def _mean_of_others(logs: Array, k: int) -> Array:
    """The log of the mean of exp(logs) over the other classes, (V,)."""
    return logsumexp(np.delete(logs, k, axis=0), axis=0) - np.log(len(logs) - 1)
