"""Everything that a report shows, computed once; the other modules write it as HTML.

Drift compares the rows of a model and those of a second file by their sums. For each block of columns, it is the log
Bayes factor of two hypotheses: the two sets of rows have parameters of their own, or the same parameters. Both follow
from sums: log P(A) + log P(B) − log P(A + B), with parameters integrated out.

Words of texts: amounts n of N in a class are binomial, with a Beta(1, 1/p − 1) prior, where p is the frequency of the
word in all rows: the prior counts as one occurrence. Of the column as a whole, two ways to differ have equal prior
probability: one word has another frequency, each word equally probably; or all have, and amounts are multinomial with a
Dirichlet(V·p) prior.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from deciban.errors import DecibanError
from deciban.evidence.explanation import short
from deciban.evidence.scores import convert
from deciban.families.abilities import HasDiscriminant, HasEvidence, HasNamedParts, ability
from deciban.families.product import blocks_of
from deciban.families.transformed import MappedFamily
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.report.drawing import COLOURS, class_text
from deciban.report.findings import FeatureEvidence, feature_evidence
from deciban.report.rows import Classifier, Judged, judge_rows
from deciban.report.scales import Scales, column_scales
from deciban.statistics import Array, Axis
from deciban.text.stats import UNK, TextStats, WordSums, word_sums


# -- words with the most evidence --------------------------------------------------------------------------------------
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


# -- drift -------------------------------------------------------------------------------------------------------------
MOST_WORDS = 400  # of a column of texts


@dataclass(frozen=True, eq=False)
class Drift:
    """Differences between the rows learnt and those of a second file."""

    rows: float  # of the second file
    classes: tuple[Any, ...]
    learnt: Array  # (K,) rows of each class
    other: Array  # (K,) rows of each class in the second file
    columns: list[tuple[str, float | None]]  # columns of each block, and decibans for a difference; None: not available
    words: tuple[WordDrift, ...] = ()  # of columns of texts


@dataclass(frozen=True, eq=False)
class WordDrift:
    """Words of a column of texts, those with most evidence for other frequencies in the second file first."""

    column: str
    words: list[str]  # (W,)
    decibans: Array  # (W,) for other frequencies given the class
    expected: Array  # (W,) amount in the second file, if frequencies given the class were those learnt
    found: Array  # (W,) amount in the second file
    total: int  # words of both
    decibans_of_all: float  # of the column as a whole


def drift(clf: Classifier, X: Any, y: Any) -> Drift:
    """Compare the rows that a model has learnt with others."""
    own: Model = clf.model_
    other: Model = clf.blank().learn(X, y).model_
    stats = own.stats + other.stats
    classes = stats.classes
    rows = [np.array([dict(zip(m.classes, m.stats.rows)).get(c, 0.0) for c in classes]) for m in (own, other)]
    columns: list[tuple[str, float | None]] = []
    words = []
    blocks = zip(blocks_of(own.family, own.stats.family, other.stats.family, stats.family), own.positions)
    for (family, a, b, together), at in blocks:
        name = ", ".join(own.reader.labels[j] for j in at)
        texts = _word_drift(name, family, b, together)
        if texts is not None:
            words.append(texts)
            columns.append((name, texts.decibans_of_all))
        else:
            columns.append((name, _decibans(family, a, b, together)))
    order = sorted(columns, key=lambda one: -(one[1] if one[1] is not None else -np.inf))
    return Drift(float(rows[1].sum()), classes, rows[0], rows[1], order, tuple(words))


def _decibans(family: Any, a: Any, b: Any, together: Any) -> float | None:
    """Decibans for different parameters over equal ones; None if the family has no evidence of its rows."""
    if isinstance(family, MappedFamily):  # the derivative of the map is in all three terms, and cancels
        return _decibans(family.inside(together.map), a.inner, b.inner, together.inner)
    known = ability(family, HasEvidence)
    if known is None:
        return None
    one, two, both = (float(np.sum(known.log_evidence(stats))) for stats in (a, b, together))
    return float(convert(one + two - both, "decibans"))


# -- drift of words ----------------------------------------------------------------------------------------------------
def _word_drift(column: str, family: Any, other: Any, together: Any) -> WordDrift | None:
    """Compare the words of a second file with those learnt; None if the block is not one of texts."""
    if not isinstance(other, TextStats):
        return None
    try:
        own, both = word_sums(family, other), word_sums(family, together)
    except DecibanError:  # no words, or a released model
        return None
    names, amounts = _amounts(both)
    place = {word: at for at, word in enumerate(names)}
    found, classes = np.zeros_like(amounts), {label: k for k, label in enumerate(_classes(both))}
    words, own_amounts = _amounts(own)
    rows = [classes[label] for label in _classes(own)]
    found[np.ix_(rows, [place[word] for word in words])] = own_amounts
    share = amounts.sum(axis=0) / amounts.sum()
    nats, whole, expected = np.zeros(len(names)), 0.0, np.zeros(len(names))
    for k in range(len(amounts)):
        parts = np.maximum(amounts[k] - found[k], 0.0), found[k]
        nats += sum(_binomial_evidence(n, share) for n in parts) - _binomial_evidence(amounts[k], share)
        whole += sum(_multinomial_evidence(n, share) for n in parts) - _multinomial_evidence(amounts[k], share)
        expected += parts[1].sum() * parts[0] / max(parts[0].sum(), 1e-300)
    one_word = logsumexp(nats) - np.log(len(nats))
    whole = np.logaddexp(one_word, whole) - np.log(2)
    order = np.argsort(-nats, kind="stable")[:MOST_WORDS]
    return WordDrift(
        column,
        [names[j] for j in order],
        convert(nats[order], "decibans"),
        expected[order],
        found.sum(axis=0)[order],
        len(names),
        float(convert(whole, "decibans")),
    )


def _amounts(given: WordSums) -> tuple[list[str], Array]:
    """Return the words and their amounts in each class (K, V), without the idf."""
    counts = np.asarray(given.sums.counts, dtype=float)
    counts = counts if given.idf is None else counts / np.where(given.idf > 0, given.idf, 1.0)
    return [*given.vocabulary, UNK][: counts.shape[1]], counts


def _classes(given: WordSums) -> list[Any]:
    return list(cast(Axis, given.sums.labels["class"]).names)


def _binomial_evidence(n: Array, share: Array) -> Array:
    """Log evidence of n of Σn, for each word, with a prior of one occurrence at the frequency `share`."""
    rest = (1 - share) / share
    return np.asarray(betaln(1 + n, rest + n.sum() - n) - betaln(1, rest))


def _multinomial_evidence(n: Array, share: Array) -> float:
    """Log evidence of all amounts together, with a prior of one occurrence a word at the frequencies `share`."""
    prior = len(share) * share
    own = (gammaln(prior + n) - gammaln(prior)).sum()
    return float(gammaln(prior.sum()) - gammaln(prior.sum() + n.sum()) + own)


# -- everything --------------------------------------------------------------------------------------------------------
NUMBERS = 24_000  # of densities and scales of all columns; of words; of llrs: each at most so many
MOST_CLASSES = 40  # listed; with their own curves MOST_CURVES
MOST_CURVES = COLOURS
MOST_LISTED = 400  # columns, in tables
PLAIN_LABELS = ("label", "class", "target", "y")  # names of label columns that say nothing


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a report shows."""

    clf: Classifier
    title: str
    judged: Judged | None
    scales: Scales
    words: list[Words]
    features: list[FeatureEvidence]
    drift: Drift | None


def gather(
    clf: Classifier, batches: Iterable[Batch] | None, learnt: bool | None, other: tuple[Any, Any] | None, title: str
) -> Material:
    """Compute what the report shows."""
    predictor = clf.predictor_
    model = predictor.model
    K, D = len(model.classes), len(model.reader.labels)
    judged = None if batches is None else judge_rows(clf, batches, learnt)
    features = []
    if judged is not None:
        features = feature_evidence(clf, judged.rows, judged.labels)
    return Material(
        clf,
        title or _title(model),
        judged,
        column_scales(predictor, int(np.clip(2 * NUMBERS // (K * max(D, 1)), 9, 49))),
        words_by_evidence(predictor, min(3000, 2 * NUMBERS // (K + 2))),
        features,
        None if other is None else drift(clf, *other),
    )


def _title(model: Model) -> str:
    """The heading of the page: what is predicted, and the classes."""
    names = shortened(map(class_text, model.classes))
    label = None if model.reader.schema is None else model.reader.schema.label
    return (
        f"Classifier of {names}" if label is None or label.lower() in PLAIN_LABELS else f"{short(label, 40)}: {names}"
    )


def shortened(names: Iterable[Any]) -> str:
    """Up to four names in one line."""
    every = [short(name, 24) for name in names]
    return ", ".join(every[:4]) + (f" and {len(every) - 4:,} more" if len(every) > 4 else "")
