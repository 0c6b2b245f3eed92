"""The material of a report: scales of columns, words, drift and the judged rows; the other modules write it as HTML.

Scales: densities of each class over typical values, and evidence for a nomogram. Typical values come from samples of
the model, so that no rows are needed.

Drift compares the rows of a model with those of a second file by their sums. For each block of columns, it is the log
Bayes factor of two hypotheses: the two sets of rows have different parameters, or the same parameters. Both follow from
sums: log P(A) + log P(B) − log P(A + B), with parameters integrated out.

Words of texts: the amount n of a word among N tokens of a class is binomial, with a Beta(1, 1/p − 1) prior, where p is
the frequency of the word in all rows: the prior counts as one occurrence. For a column as a whole, two hypotheses of a
difference have equal prior probability: one word has another frequency, and each word is equally probable; or all words
have other frequencies, and amounts are multinomial with a Dirichlet(V·p) prior.
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
from deciban.families.binned import Binned
from deciban.families.product import blocks_of
from deciban.families.transformed import MappedFamily
from deciban.model.model import Model
from deciban.model.nomogram import JointTerm, Pairs, nomogram, sampled_columns
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.tables import TypedColumns, TypedTable
from deciban.report.drawing import COLOURS, class_text
from deciban.report.findings import Classifier, FeatureEvidence, Judged, feature_evidence, judge_rows
from deciban.statistics import Array, Axis
from deciban.text.stats import UNK, TextStats, WordSums, word_sums

# -- scales of columns -------------------------------------------------------------------------------------------------
SAMPLES = 3000  # drawn from the model, with equal class priors
RANGE = (0.002, 0.998)  # quantiles of the samples between which numbers are drawn
MOST_CATEGORIES = 12  # categories of a column that are drawn
MOST_COUNTS = 40  # a column with at most so many different whole numbers is drawn number by number


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """One column: typical values, the log density of each class there, and the evidence for a nomogram."""

    name: str
    kind: str  # "number", "count" or "category"
    values: list[Any]  # (m,) rising numbers, or names
    log_density: Array  # (m, K) marginal, not calibrated
    decibans: Array | None  # (m, K) calibrated evidence of each class; None where it is not a sum over columns
    middle: int  # position of the typical value that a nomogram starts with
    position: int  # position of the column in the model
    missing: Array | None  # (K,) decibans of a missing value; None if none may be missing
    edges: tuple[float, ...] = ()  # edges of bins of constant density; each bin contains one of `values`


@dataclass(frozen=True, eq=False)
class Scales:
    """The columns of a model, and the constants of its nomogram."""

    columns: list[ColumnScale]
    offsets: Array  # (K,) decibans, added where at least one column has a value
    base: Array  # (K,) decibans, of the typical values of a linear llr, and of columns without a scale
    left_out: list[str]  # columns without a scale of evidence
    reason: str  # why there is no nomogram; empty if there is one
    pairs: Pairs | None = None  # evidence of pairs of columns, in nats
    terms: tuple[JointTerm, ...] = ()  # evidence of several columns together, in nats


def column_scales(predictor: Predictor, points: int) -> Scales:
    """Compute densities and scales of all columns that are numbers or categories, at most `points` values each."""
    model = predictor.model
    K, names = len(model.classes), model.reader.labels
    sampled = sampled_columns(predictor, SAMPLES)
    counts = () if model.reader.schema is None else model.reader.schema.columns
    whole = {name for one in counts if one.kind == "count" for name in one.features}
    edges = _edges(model)
    chosen = {
        j: _binned(np.array(edges[j]), points, names[j] in whole)
        if j in edges and len(edges[j]) <= points // 2
        else _typical(values, points, names[j] in whole)
        for j, values in sampled.items()
    }
    if not chosen:
        return Scales([], np.zeros(K), np.zeros(K), names, "no column is a number or a category")
    found = nomogram(predictor, _table(predictor, chosen), chosen, joint=True)
    unit = convert(1.0, "decibans")
    reason = found.reason or (
        "the model has functions of several columns without a short formula" if found.beyond else ""
    )
    columns = []
    for j, logs in sorted(found.marginal.items()):
        kind, values = chosen[j]
        m = len(values)
        own = unit * found.evidence[j][:m] if j in found.evidence and not reason else None
        gap = None if j in found.complete else unit * found.missing[j]
        middle = _middle(sampled[j], kind, values)
        bins = edges[j] if j in edges and kind == "number" and _each_has_a_value(edges[j], values) else ()
        columns.append(ColumnScale(names[j], kind, values, logs[:m], own, middle, j, gap, bins))
    left_out = [names[j] for j in found.left_out]
    base = unit * (found.base + found.missing[found.left_out].sum(axis=0))  # columns without a scale are missing
    return Scales(columns, unit * found.offsets, base, left_out, reason, found.pairs, tuple(found.terms))


def _typical(values: Array, points: int, whole: bool) -> tuple[str, list[Any]]:
    """The kind of a column and its typical values, which are whole numbers ≥ 0 in a column of counts."""
    if values.dtype == object:
        names, counts = np.unique([str(value) for value in values if value is not None], return_counts=True)
        return "category", names[np.argsort(-counts, kind="stable")][:MOST_CATEGORIES].tolist()
    low, high = np.nanquantile(values, RANGE)
    if (values == np.rint(values)).all() and high - low <= MOST_COUNTS:
        return "count", np.arange(np.floor(low), high + 1).tolist()
    if whole:
        ends = max(0.0, np.floor(low)), max(1.0, np.ceil(high))
        return "number", np.unique(np.rint(np.linspace(*ends, points))).tolist()
    margin = 0.04 * (high - low) or 1.0
    low = low if low >= 0 > low - margin else low - margin
    return "number", np.linspace(low, high + margin, points).tolist()


def _edges(model: Model) -> dict[int, tuple[float, ...]]:
    """The edges of the bins of each column that is a histogram."""
    found: dict[int, tuple[float, ...]] = {}
    for (family,), at in zip(blocks_of(model.family), model.positions):
        if isinstance(family, Binned) and family.edges is not None:
            found.update(zip((int(j) for j in at), map(tuple, family.edges)))
    return found


def _binned(edges: Array, points: int, whole: bool) -> tuple[str, list[Any]]:
    """The kind of a histogram and its values: evenly spaced between the outermost edges, and one within each bin."""
    whole = whole or bool((edges % 1 == 0.5).all())  # bins of whole numbers end halfway between two
    if whole and edges[-1] - edges[0] <= MOST_COUNTS:
        return "count", (np.arange(np.ceil(edges[0]), edges[-1]) + 0.0).tolist()
    middles = edges[1:] / 2 + edges[:-1] / 2
    last = np.nextafter(edges[-1], -np.inf)  # the edge itself is in the tail
    values = np.r_[np.linspace(edges[0], last, points - len(middles)), middles]
    return "number", np.unique(np.rint(values) + 0.0 if whole else values).tolist()


def _each_has_a_value(edges: tuple[float, ...], values: list[Any]) -> bool:
    at = np.searchsorted(edges, values, side="right")
    return set(range(1, len(edges))) <= set(at.tolist())


def _middle(sampled: Array, kind: str, values: list[Any]) -> int:
    """The position of the median, or of the most frequent category."""
    return 0 if kind == "category" else int(np.abs(np.array(values) - np.nanmedian(sampled)).argmin())


def _table(predictor: Predictor, chosen: dict[int, tuple[str, list[Any]]]) -> TypedTable:
    """A table with one typical value of every column in each row; shorter columns repeat their last value."""
    import pyarrow as pa

    columns = predictor.model.reader.columns
    n = max(len(values) for _, values in chosen.values())
    filled: list[Any] = []
    for j in range(len(columns)):
        if j not in chosen:
            filled.append(pa.chunked_array([pa.nulls(n, pa.string())]))
            continue
        kind, values = chosen[j]
        at = np.minimum(np.arange(n), len(values) - 1)
        filled.append((at, tuple(values)) if kind == "category" else np.array(values)[at])
    return TypedTable(TypedColumns(n, tuple(filled)), columns, all(isinstance(name, str) for name in columns))


# -- words with the most evidence --------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Words:
    """The words of one column with the most evidence."""

    column: str
    words: list[str]  # (W,)
    counts: Array  # (W,) amounts in the rows learnt; 1 in a released model, which holds no counts
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
MOST_WORDS = 400  # words of a column of texts


@dataclass(frozen=True, eq=False)
class Drift:
    """Differences between the rows learnt and those of a second file."""

    rows: float  # rows of the second file
    classes: tuple[Any, ...]
    learnt: Array  # (K,) rows of each class
    other: Array  # (K,) rows of each class in the second file
    columns: list[tuple[str, float | None]]  # columns of each block, and decibans for a difference; None: not available
    words: tuple[WordDrift, ...] = ()  # words of each column of texts


@dataclass(frozen=True, eq=False)
class WordDrift:
    """Words of a column of texts, those with most evidence for other frequencies in the second file first."""

    column: str
    words: list[str]  # (W,)
    decibans: Array  # (W,) for other frequencies given the class
    expected: Array  # (W,) amount in the second file, if frequencies given the class were those learnt
    found: Array  # (W,) amount in the second file
    total: int  # words of both
    decibans_of_all: float  # for a difference in the column as a whole


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


# -- the material ------------------------------------------------------------------------------------------------------
NUMBERS = 24_000  # most numbers on the page for scales of columns; the same for words, and for llrs
MOST_CLASSES = 40  # classes in lists
MOST_CURVES = COLOURS  # classes with a curve of their own
MOST_LISTED = 400  # columns in tables
PLAIN_LABELS = ("label", "class", "target", "y")  # names of label columns that do not describe the classes


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
    """Compute the material of a report."""
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
    """The heading of the page: the name of the label, and the classes."""
    names = shortened(map(class_text, model.classes))
    label = None if model.reader.schema is None else model.reader.schema.label
    return (
        f"Classifier of {names}" if label is None or label.lower() in PLAIN_LABELS else f"{short(label, 40)}: {names}"
    )


def shortened(names: Iterable[Any]) -> str:
    """Up to four names in one line."""
    every = [short(name, 24) for name in names]
    return ", ".join(every[:4]) + (f" and {len(every) - 4:,} more" if len(every) > 4 else "")
