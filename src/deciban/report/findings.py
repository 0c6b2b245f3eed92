"""Evaluation of labelled rows, evidence of features, families of columns, and warnings about the data.

The report, and the commands that fit, evaluate and inspect, show them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np

from deciban.errors import NotAvailableError, NotLearntError
from deciban.evaluate.report import Evaluation
from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import convert, log_ratio
from deciban.families.gaussian import Gaussian
from deciban.families.product import ASKED, blocks_of
from deciban.families.transformed import Transformed
from deciban.model.judge import JUDGED_ROWS
from deciban.model.ledger import Ledger
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch, Reservoir, chosen_rows
from deciban.read.codes import place_labels
from deciban.read.columns import IGNORED, Column
from deciban.read.tables import Table
from deciban.statistics import Array


class Classifier(Protocol):
    """A fitted classifier, such as `GenerativeClassifier`, which documents these methods."""

    @property
    def model_(self) -> Model: ...
    @property
    def predictor_(self) -> Predictor: ...
    @property
    def classes_(self) -> Any: ...

    def blank(self) -> Any: ...
    def check_fit(self, X: Any, y: Any) -> Any: ...
    def check_learnt(self, X: Any, y: Any) -> None: ...
    def cost_matrix(self) -> Array: ...
    def evaluate(self, X: Any, y: Any, **options: Any) -> Any: ...
    def explain(self, X: Any, over: Any = None, against: Any = None) -> Any: ...
    def leave_one_out(self, X: Any, y: Any, *, method: str) -> Array: ...
    def log_likelihood(self, X: Any) -> Array: ...
    def log_marginal(self, X: Any) -> Array: ...
    def log_prior(self) -> Array: ...
    def predict_proba(self, X: Any) -> Array: ...
    def reestimate(self, *, columns: Any) -> Any: ...


# -- evaluation and sample ---------------------------------------------------------------------------------------------
SAMPLED = 2000  # rows kept for evidence of features, checks of the fit, and rows that are shown
SHOWN = 4  # rows of each list


@dataclass(frozen=True, eq=False)
class Judged:
    """Labelled rows: the evaluation of all of them, and a sample of them."""

    evaluation: Evaluation
    rows: Table  # (s,) the sample
    labels: Array  # (s,)
    positions: Array  # (s,) of the sample within the evaluation
    numbers: Array  # (s,) of the sample within all rows, from 0


def judge_rows(clf: Classifier, batches: Iterable[Batch], learnt: bool | None) -> Judged:
    """Evaluate rows, and sample them.

    With learnt=None, the rows are judged as learnt ones if the ledger of the model holds those of the first batch.
    """
    sample = Reservoir(SAMPLED)

    def sampled() -> Iterator[Batch]:
        for batch in batches:
            sample.add(batch.table, batch.labels, None)
            yield batch

    given = sampled()
    first = next(given)
    if learnt is None:
        learnt = is_learnt(clf, first)
    every = chain((first,), given)
    whole = evaluate_learnt(clf, every, {}) if learnt else joined([evaluated(clf, one, {}) for one in every])
    rows, labels, _ = sample.rows()
    numbers = chosen_rows(sample.seen, SAMPLED)
    judged = np.arange(sample.seen) if len(whole) == sample.seen else chosen_rows(sample.seen, len(whole))
    return Judged(whole, rows, labels, np.searchsorted(judged, numbers), numbers)


def evaluated(clf: Classifier, batch: Batch, options: dict[str, Any]) -> Evaluation:
    """Evaluate the rows of a batch."""
    with batch.located():
        return clf.evaluate(batch.table, batch.labels, **options)


def evaluate_learnt(
    clf: Classifier, batches: Iterator[Batch], options: dict[str, Any], only_judged: bool = False
) -> Evaluation:
    """Judge the rows of one batch, or a sample of the rows of several; each batch must have been learnt.

    With `only_judged`, only the rows of the sample are checked, as after a fit that read the same rows.
    """
    first = next(batches)
    second = next(batches, None)
    if second is None:
        return evaluated(clf, first, {"learnt": True, **options})
    judged = Reservoir(JUDGED_ROWS)
    for batch in chain((first, second), batches):
        if not only_judged:
            with batch.located():
                clf.check_learnt(batch.table, batch.labels)
        judged.add(batch.table, batch.labels, None)
    rows, labels, _ = judged.rows()
    return clf.evaluate(rows, labels, learnt=True, **options)


def joined(parts: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of the rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    own_priors = np.ndim(parts[0].prior) == 2  # one for each row
    return replace(
        parts[0],
        log_likelihood=np.concatenate([part.log_likelihood for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
        prior=np.concatenate([part.prior for part in parts]) if own_priors else parts[0].prior,
    )


def is_learnt(clf: Classifier, batch: Batch) -> bool:
    """Whether the ledger holds the rows of a batch."""
    if clf.model_.ledger is None:
        return False
    try:
        clf.check_learnt(batch.table, batch.labels)
    except (NotLearntError, NotAvailableError):
        return False
    return True


# -- rows to show ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class ShownRows:
    """Positions within the sample of rows to show, each list ordered, and the evidence of each row of the sample."""

    typical: Array  # highest log density, or evidence for the own class in models of texts
    surprising: Array  # lowest log density under the model
    wrong: Array  # most evidence for another class; empty if the evidence of all rows is for their own
    nats: Array  # (s,) evidence for the own class over the most probable other class
    rival: Array  # (s,) the most probable other class


def rows_to_show(clf: Classifier, judged: Judged, lengths: Array | None) -> ShownRows:
    """Choose rows of the sample; `lengths` are numbers of words, by which log densities of texts are divided."""
    scores = judged.evaluation.log_likelihood[judged.positions]
    codes = judged.evaluation.codes[judged.positions]
    each = np.arange(len(codes))
    joint = scores + np.where(np.arange(scores.shape[1]) == codes[:, None], -np.inf, 0.0)
    rival = joint.argmax(axis=1)
    nats = log_ratio(scores[each, codes], scores[each, rival])
    marginal = clf.log_marginal(judged.rows)
    if lengths is not None:
        marginal = marginal / np.maximum(lengths, 1.0)
        typical = np.argsort(-nats, kind="stable")
    else:
        gaps = _missing(judged.rows)
        complete = gaps == gaps.min()  # rows with fewer values have densities of another dimension
        typical = np.argsort(np.where(complete, -marginal, np.inf), kind="stable")
    wrong = np.argsort(nats, kind="stable")
    surprising = np.argsort(marginal, kind="stable")
    return ShownRows(typical[:SHOWN], surprising[:SHOWN], wrong[nats[wrong] < 0][:SHOWN], nats, rival)


def _missing(table: Table) -> Array:
    """Number of missing values of each row; 0 for sparse tables."""
    if table.sparse or table.texts:
        return np.zeros(len(table))
    cells = np.asarray(table.pick(), dtype=object).tolist()
    return np.array([sum(value is None or value != value for value in row) for row in cells])


LARGEST_NATS = 50.0  # evidence of one row is clipped to this, so that certain rows do not dominate the mean
SUSPICIOUS_ACCURACY, SUSPICIOUS_ROWS = (
    0.98,
    50,
)  # accuracy of one feature, and rows, from which on it may be derived from the class
MAIN_SHARE = 0.8  # share of a feature's evidence from which on a class is named for it
GAPPY = 0.5  # share of missing values above which a column gets a warning
FEW_ROWS, CELLS = 32, 2**20  # rows of the first explanation; parts of rows that are explained at a time
RARE = 5  # classes with fewer rows get a warning


# -- evidence of features ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FeatureEvidence:
    """Evidence of a feature, averaged over a sample of rows."""

    name: str
    nats: float  # mean evidence for a row's class over the most probable other class
    accuracy: float  # share of rows whose class this feature alone predicts; by leave-one-out if it is suspicious
    rows: int
    favours: str | None  # the class whose rows have most of the evidence; None if no class has most
    left_out: bool = False  # whether the accuracy is by leave-one-out

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        decibans = convert(self.nats, "decibans")
        found = {"feature": self.name, "decibans": decibans, "accuracy": self.accuracy, "favours": self.favours}
        return found | {"rows": self.rows}


def feature_evidence(clf: Classifier, rows: Table, labels: Array) -> list[FeatureEvidence]:
    """Evidence of all features on a sample of rows, the largest first."""
    known = clf.model_.stats.classes
    classes = [str(name) for name in known]
    codes = place_labels(labels, len(rows), known)
    if len(classes) < 2:
        return []
    position: dict[str, int] = {}  # feature → column of the sums
    parts = []
    for names, nats, k in _explained(clf, rows, codes, known):
        clipped = np.clip(nats, -LARGEST_NATS, LARGEST_NATS)
        evidence = np.array([clipped[k == j].sum(axis=0) for j in range(len(classes))])
        columns = [position.setdefault(name, len(position)) for name in names]
        parts.append((columns, evidence, (clipped > 0).sum(axis=0)))
    evidence, favourable = np.zeros((len(classes), len(position))), np.zeros(len(position))
    for columns, of_classes, rows_for in parts:
        evidence[:, columns] += of_classes
        favourable[columns] += rows_for
    n, total = len(codes), evidence.sum(axis=0)
    best = evidence.argmax(axis=0)
    clear = evidence.max(axis=0) > MAIN_SHARE * np.abs(evidence).sum(axis=0)
    found = [
        FeatureEvidence(name, total[j] / n, favourable[j] / n, n, classes[best[j]] if clear[j] else None)
        for name, j in position.items()
    ]
    found = [_left_out_accuracy(clf, feature, rows, labels) for feature in found]
    return sorted(found, key=lambda feature: -abs(feature.nats))


def _left_out_accuracy(clf: Classifier, feature: FeatureEvidence, rows: Table, labels: Array) -> FeatureEvidence:
    """Return a feature of suspiciously high accuracy with its leave-one-out accuracy; other features unchanged."""
    if feature.accuracy < SUSPICIOUS_ACCURACY or feature.name not in rows.columns:
        return feature
    alone = clf.reestimate(columns=[feature.name])
    accuracy = float((alone.leave_one_out(rows, labels, method="predict") == labels).mean())
    return replace(feature, accuracy=accuracy, left_out=True)


def _explained(
    clf: Classifier, rows: Table, codes: Array, classes: Sequence[Any]
) -> Iterator[tuple[Sequence[str], Array, Array]]:
    """Names of parts, their evidence (n, P) for each row's class over the most probable other one, and class codes."""
    if len(classes) == 2:  # one explanation is for both classes
        for at, explanation in _in_pieces(clf, rows, np.arange(len(codes)), classes[1], classes[0]):
            yield explanation.names, explanation.parts * np.where(codes[at] == 1, 1.0, -1.0)[:, None], codes[at]
        return
    probability = clf.predict_proba(rows)
    for k in np.unique(codes):
        own = np.flatnonzero(codes == k)
        mean = probability[own].mean(axis=0)
        mean[k] = -1.0
        for at, explanation in _in_pieces(clf, rows, own, classes[k], classes[int(mean.argmax())]):
            yield explanation.names, explanation.parts, codes[at]


def _in_pieces(
    clf: Classifier, rows: Table, chosen: Array, one: Any, other: Any
) -> Iterator[tuple[Array, Explanation]]:
    """Explanations of some rows, few enough at a time that they have about `CELLS` parts: each word is a part."""
    begin, size = 0, FEW_ROWS
    while begin < len(chosen):
        at = chosen[begin : begin + size]
        explanation = clf.explain(rows.take(at), one, other)
        yield at, explanation
        begin, size = begin + size, max(FEW_ROWS, CELLS // max(1, len(explanation.names)))


# -- models of columns -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BlockModel:
    """The model of a block of features, in words."""

    features: tuple[str, ...]
    model: str  # "log-normal (fits best)"
    comparison: str  # with the next best model; empty if none was compared


def block_models(model: Model) -> list[BlockModel]:
    """The model of each block of features."""
    names, found = model.reader.labels, []
    for (family,), positions, reason in zip(blocks_of(model.family), model.positions, model.reasons):
        features = tuple(names[j] for j in positions)
        if len(features) == 1 and reason.detail:
            text = reason.text
        else:
            more = f", {reason.text}" if len(features) > 1 or reason.text == ASKED else ""
            text = f"{family_name(family)}{more}"
        found.append(BlockModel(features, text, reason.detail))
    return found


def family_name(family: object) -> str:
    """The name of a family, with the structure of a Gaussian or the transform.

    >>> from deciban import Categorical
    >>> family_name(Gaussian("tied")), family_name(Categorical())
    ('Gaussian (tied)', 'Categorical')
    """
    name = type(family).__name__
    if isinstance(family, Gaussian):
        return f"{name} ({family.structure})"
    if isinstance(family, Transformed) and isinstance(family.by, tuple):
        return f"{family_name(family.inner)} of transformed columns"
    return f"{name} ({family.by})" if isinstance(family, Transformed) else name


# -- warnings ----------------------------------------------------------------------------------------------------------
def data_warnings(
    columns: Sequence[Column], classes: Mapping[str, float], features: Sequence[FeatureEvidence], ledger: Ledger | None
) -> list[str]:
    """Return warnings about the data; `classes` holds the number of rows of each class."""
    used = [column for column in columns if column.kind not in IGNORED]
    found = [f"column {c.name!r} is ignored: {c.reason}" for c in columns if c.kind in IGNORED]
    found += [
        f"column {c.name!r}: {c.assumed} (otherwise --column {shlex.quote(f'{c.name}={c.otherwise}')})"
        for c in columns
        if c.assumed
    ]
    found += [
        f"column {c.name!r} is missing in {c.missing / c.rows:.0%} of the rows"
        for c in used
        if c.rows and c.missing > GAPPY * c.rows
    ]
    found += [
        f"{feature.name!r} alone predicts the class of {_percent_below(feature.accuracy)} of {feature.rows:,} "
        "rows, each left out in turn. Is it known when you predict?"
        for feature in features
        if feature.left_out and feature.accuracy >= SUSPICIOUS_ACCURACY and feature.rows >= SUSPICIOUS_ROWS
    ]
    if len(classes) == 1:
        found.append(
            f"the label has one class, so that every row is predicted as {next(iter(classes))!r}: is a class missing?"
        )
    rare = [class_text(name, rows) for name, rows in classes.items() if rows < RARE]
    if rare:
        found.append(f"classes with fewer than {RARE} rows: {', '.join(rare)}")
    repeated = 0 if ledger is None else int((ledger.count - 1).sum())
    if repeated:
        copies = "1 row is an exact copy" if repeated == 1 else f"{repeated:,} rows are exact copies"
        found.append(f"{copies} of another: drop copies that were made by mistake")
    return found


def class_text(name: str, rows: float) -> str:
    """A class with its number of rows, as text."""
    return f'"{name}" ({rows:,.15g} {"row" if rows == 1 else "rows"})'


def _percent_below(share: float) -> str:
    """Per cent with one decimal, rounded down, so that 100 % means all.

    >>> _percent_below(0.99996)
    '99.9 %'
    """
    return f"{np.floor(1000 * share) / 10:g} %"
