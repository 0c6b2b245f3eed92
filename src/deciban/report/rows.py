"""Rows of a report: their evaluation, a bounded sample of them, and the methods of the classifier that the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np

from deciban.errors import NotAvailableError, NotLearntError
from deciban.evaluate.report import Evaluation
from deciban.evidence.scores import log_ratio
from deciban.model.folds import JUDGED_ROWS
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch, Reservoir, chosen_rows
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
    """Labelled rows: the evaluation of all, and a sample."""

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
    wrong: Array  # most evidence for another class; empty if all rows favour their own
    nats: Array  # (s,) evidence for the own class over the most probable other class
    rival: Array  # (s,) that class


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
        complete = gaps == gaps.min()  # densities of fewer values are of another dimension
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
