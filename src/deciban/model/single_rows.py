"""Single rows, answered and learnt one at a time, in microseconds.

A scorer computes once what does not depend on the row. An accumulator is mutable and has one owner: it checks a row,
keeps it, and adds all rows that wait when the model is read, or when there are many of them. A lesson that makes a new
model value copies all sums, which takes long for a single row. The sums are those of one lesson with all of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from copy import copy
from math import log
from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.evaluate.calibration import LengthAware
from deciban.evidence.scores import log_posterior
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.product import Product
from deciban.families.protocol import Family
from deciban.families.transformed import Transformed
from deciban.families.word_scores import plain
from deciban.model.calibration import Calibration
from deciban.model.ledger import Secret
from deciban.model.model import Model
from deciban.model.predictor import Predictor, with_source
from deciban.model.row_reader import Row, reader_of
from deciban.read.batches import Batch
from deciban.read.columns import NAMES, NUMBERS
from deciban.read.schema import is_unicode
from deciban.statistics import Array
from deciban.text.counting import TextRows
from deciban.text.density import TextDensity
from deciban.text.family import Text
from deciban.text.kernels.streams import Finish


# -- answers -----------------------------------------------------------------------------------------------------------
class RowScorer:
    """Answers of one classifier, one row at a time, under one prior.

    It answers as the classifier did when the scorer was made; make another one after the classifier has learnt.

    Parameters
    ----------
    predictor : Predictor
        A model and its density.
    log_prior : ndarray of shape (n_classes,)
        Log prior probability of each class.

    Attributes
    ----------
    classes : list
        Class labels, in the order of the scores.
    log_prior : ndarray of shape (n_classes,)
        Log prior probability of each class.

    Examples
    --------
    >>> import pandas as pd
    >>> from deciban import GenerativeClassifier
    >>> table = pd.DataFrame({"colour": ["red", "white"] * 20, "alcohol": [13.5, 12.0, 14.0, 11.5] * 10})
    >>> clf = GenerativeClassifier().fit(table, ["merlot", "riesling"] * 20)
    >>> clf.scorer().predict({"colour": "red", "alcohol": 13.8})
    'merlot'
    """

    def __init__(self, predictor: Predictor, log_prior: Array) -> None:
        self.classes, self.log_prior = predictor.labels.tolist(), log_prior
        self._predictor, self._rows = predictor, reader_of(predictor.model)

    def __call__(self, row: Row) -> Array:
        """Return the log posterior of each class.

        Parameters
        ----------
        row : dict, sequence or str
            A value for each column by its name, where a column that is not there is missing; numbers in the order of
            the columns, for a model of an array; or a text, for a model of texts.

        Returns
        -------
        ndarray of shape (n_classes,)
            log P(class|row).
        """
        predictor = self._predictor
        rows = predictor.model.encode(self._rows.table([row]))
        return log_posterior(predictor.scores(rows, contrast=True), self.log_prior)[0]

    def predict(self, row: Row) -> Any:
        """Return the most probable class.

        Parameters
        ----------
        row : dict, sequence or str
            A row as `__call__` takes it.

        Returns
        -------
        object
            A label of `classes`.
        """
        return self.classes[int(self(row).argmax())]

    def predict_proba(self, row: Row) -> dict[Any, float]:
        """Return the posterior probability of each class.

        Parameters
        ----------
        row : dict, sequence or str
            A row as `__call__` takes it.

        Returns
        -------
        dict of {object: float}
            Class label → P(class|row).
        """
        return dict(zip(self.classes, np.exp(self(row)).tolist()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.classes)} classes, {len(self._rows.columns)} columns)"


class DocumentScorer(RowScorer):
    """Answers of one classifier of texts, one document at a time, under one prior; in microseconds.

    It answers as the classifier did when the scorer was made; make another one after the classifier has learnt.

    Parameters
    ----------
    density : TextDensity
        The densities of all classes.
    classes : ndarray of shape (n_classes,)
        Class labels.
    log_prior : ndarray of shape (n_classes,)
        Log prior probability of each class.
    calibration : Calibration or None, default=None
        Calibration of the log-likelihoods.

    Attributes
    ----------
    classes : list
        Class labels, in the order of the scores.
    log_prior : ndarray of shape (n_classes,)
        Log prior probability of each class.

    Examples
    --------
    >>> from deciban import GenerativeClassifier
    >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
    >>> score = clf.scorer()
    >>> score("prize").round(1), score.predict("see you at noon")
    (array([-1.8, -0.2]), 'ham')
    """

    def __init__(
        self, density: TextDensity, classes: Array, log_prior: Array, calibration: Calibration | None = None
    ) -> None:
        self._given = density, classes, log_prior, calibration
        self.classes, self.log_prior = classes.tolist(), log_prior
        self._density, self._calibration = density, calibration
        factors = None if calibration is None else calibration.word_factors(0)
        scorer = density.scorer if factors is None else density.rescaled_scorer(factors)
        finish = _finish(calibration, tuple(self.classes), log_prior)
        self._one: Any = self._general if scorer is None or finish is None else scorer.finished(finish)

    def __reduce__(self) -> Any:
        """Construct copies again, because the kernel holds addresses of its own memory."""
        return DocumentScorer, self._given

    def __call__(self, text: Row) -> Array:
        """Return the log posterior of each class.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        ndarray of shape (n_classes,)
            log P(class|text).
        """
        if not isinstance(text, str):
            raise InputError(f"a document is a text, not {type(text).__name__}: {text!r:.60}.")
        try:
            return self._one(text)[0]
        except UnicodeEncodeError:
            return self._general(text)[0]  # raises an error that shows the character

    def _general(self, text: str) -> tuple[Array, None]:
        """Score as the classifier does; for calibrations and readings that the kernel does not have."""
        rows = TextRows.of([text])
        scores = with_source(self._density, rows)
        if self._calibration is not None:
            lengths = rows.lengths(self._density.text.tokens)
            scores = self._calibration.apply([scores], [lengths], tuple(self.classes))
        return log_posterior(plain(scores), self.log_prior)[0], None

    def __repr__(self) -> str:
        return f"DocumentScorer({len(self.classes)} classes, {self._density.axis.size:,} words)"


def scorer_of(predictor: Predictor, log_prior: Array) -> RowScorer:
    """Return the scorer of single rows of a model; of documents, if it reads texts alone."""
    density = predictor.density
    if isinstance(density, TextDensity):
        return DocumentScorer(density, predictor.labels, log_prior, predictor.model.calibration)
    return RowScorer(predictor, log_prior)


def _finish(calibration: Calibration | None, classes: tuple[Any, ...], log_prior: Array) -> Finish | None:
    """Return the last step of the kernel: scale, offsets and prior; None where it does not have the calibration."""
    if calibration is None:
        return Finish(np.empty(0), log_prior, log_prior)
    made = calibration.common
    if not isinstance(made, LengthAware):
        return None
    law = made.log_scale, made.shrinkage, log(made.reference_length), made.shortest
    return Finish(np.array(law), calibration.offsets(classes) + log_prior, log_prior)


# -- lessons -----------------------------------------------------------------------------------------------------------
MOST_WAITING = 4096  # rows that wait to be summed
PUBLISH_SECONDS = 0.05  # greatest age of the model that answers, after a lesson
NUMBER_TYPES = frozenset({float, int, np.float64, np.float32, np.int64, np.int32})
LARGEST = 1e100  # larger numbers are summed at once: their squares may exceed the range of numbers


class RowAccumulator:
    """Learns and answers one row at a time; mutable, with one owner and one thread.

    Answers of `predict_proba_one` and `predict_one` are at most 50 ms older than the last lesson; `model` has all of
    them. Choices and calibration are those of the model that it was made with.

    Parameters
    ----------
    model : Model
        The model to begin with.
    key : str or bytes, optional
        Key of the model's ledger.

    Examples
    --------
    >>> from deciban import GenerativeClassifier
    >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
    >>> lessons = clf.accumulator()
    >>> lessons.learn_one("a prize for you", "spam").learn_one("lunch for you", "ham").model().weight
    20.0
    >>> lessons.predict_one("free lunch?") in ("spam", "ham")
    True
    """

    def __init__(self, model: Model, key: Secret = None) -> None:
        self._model, self._key = model, key
        self._reader = reader_of(model)
        self._classes = {name: type(name) for name in model.classes}
        self._takes_all = _takes_all(model.family)
        self._rows: list[Row] = []
        self._labels: list[Any] = []
        self._scorer: tuple[float, RowScorer] | None = None  # (time at which it was made, scorer)
        schema = model.reader.schema
        used = () if schema is None else [column for column in schema.columns if column.features]
        self._numbers = tuple(column.name for column in used if column.kind in NUMBERS)
        self._names = tuple(column.name for column in used if column.kind in NAMES)
        self._plain = schema is not None and len(used) == len(self._numbers) + len(self._names)
        if schema is None and type(model.family) is Gaussian:  # a table of numbers
            self._numbers, self._plain = tuple(model.reader.given), True

    @property
    def waiting(self) -> int:
        """Number of rows that were learnt and are not summed yet."""
        return len(self._rows)

    # -- lessons ---------------------------------------------------------------------------------------------------
    def learn_one(self, row: Row, label: Hashable) -> RowAccumulator:
        """Learn a row.

        Parameters
        ----------
        row : dict, sequence or str
            A value for each column by its name; numbers in the order of the columns, for a model of an array; or a
            text, for a model of texts.
        label : object
            Its class, which may be new.

        Returns
        -------
        RowAccumulator
            The accumulator itself.

        Raises
        ------
        DecibanError
            If the row or the label is refused. Nothing has changed.
        """
        label = label.item() if isinstance(label, np.generic) else label
        known = isinstance(label, Hashable) and self._classes.get(label) is type(label)
        if not known or not self._takes_all or not self._is_usual(row):
            self._replace(self.model().learn(self._model.lesson(self._batch([row], [label])), self._key))
            return self
        self._rows.append(dict(row) if isinstance(row, Mapping) else copy(row))
        self._labels.append(label)
        if len(self._rows) >= MOST_WAITING:
            self.model()
        return self

    def unlearn_one(self, row: Row, label: Hashable) -> RowAccumulator:
        """Remove a row that was learnt.

        Parameters
        ----------
        row : dict, sequence or str
            The row, as it was learnt.
        label : object
            The class that it was learnt with.

        Returns
        -------
        RowAccumulator
            The accumulator itself.

        Raises
        ------
        NotLearntError
            If the ledger, or the sums, show that the row was never learnt. Nothing has changed.
        """
        self._replace(self.model().unlearn(self._batch([row], [label]), self._key))
        return self

    def model(self) -> Model:
        """Return the model of all lessons.

        Returns
        -------
        Model
            An immutable value.
        """
        if self._rows:
            learnt = self._model.learn(self._model.lesson(self._batch(self._rows, self._labels)), self._key)
            self._rows, self._labels = [], []
            self._model = learnt
        return self._model

    # -- answers ---------------------------------------------------------------------------------------------------
    def predict_proba_one(self, row: Row) -> dict[Any, float]:
        """Return the posterior probability of each class, under the learnt proportions of the classes.

        Parameters
        ----------
        row : dict, sequence or str
            A row as `learn_one` takes it.

        Returns
        -------
        dict of {object: float}
            Class label → P(class|row).
        """
        return self._current().predict_proba(row)

    def predict_one(self, row: Row) -> Any:
        """Return the most probable class, under the learnt proportions of the classes.

        Parameters
        ----------
        row : dict, sequence or str
            A row as `learn_one` takes it.

        Returns
        -------
        object
            A class label.
        """
        return self._current().predict(row)

    def _current(self) -> RowScorer:
        """Return a scorer that is at most `PUBLISH_SECONDS` older than the last lesson."""
        now = time.monotonic()
        if self._scorer is None or (self._rows and now - self._scorer[0] >= PUBLISH_SECONDS):
            predictor = Predictor(self.model())
            self._scorer = now, scorer_of(predictor, predictor.learnt_log_prior)
        return self._scorer[1]

    def _replace(self, model: Model) -> None:
        self._model, self._classes, self._scorer = model, {name: type(name) for name in model.classes}, None

    def _batch(self, rows: list[Row], labels: list[Any]) -> Batch:
        made = np.empty(len(labels), dtype=object)
        made[:] = labels
        return Batch(self._reader.table(rows), np.array(labels) if _same_type(labels) else made)

    def _is_usual(self, row: Row) -> bool:
        """Whether a row is sure to be summed: its values have the types of their columns, and none is missing.

        Other rows are summed at once, so that `learn_one` raises the error if a row is refused.
        """
        if self._reader.texts:
            return isinstance(row, str) and (row.isascii() or is_unicode(row))
        if not isinstance(row, Mapping):
            values = row.tolist() if isinstance(row, np.ndarray) else row
            whole = self._plain and not self._names and isinstance(values, list | tuple)
            return whole and len(values) == len(self._numbers) and all(map(_is_number, values))
        if not self._plain or len(row) != len(self._numbers) + len(self._names):
            return False
        for name in self._numbers:
            number = row.get(name)
            if type(number) not in NUMBER_TYPES or not -LARGEST < number < LARGEST:  # type: ignore[operator]
                return False
        for name in self._names:
            value = row.get(name)
            if type(value) is not str or not value.isascii() or value != value.strip():
                return False
        return True


def _takes_all(family: Family[Any]) -> bool:
    """Whether a family sums every finite number, name or text that is not missing."""
    if isinstance(family, Product):
        return all(_takes_all(part) for part in family.families.values())
    if isinstance(family, Transformed):
        powers = family.by if isinstance(family.by, tuple) else (family.by,)
        gaps = family.outside == "gap" and isinstance(family.inner, Gaussian) and family.inner.structure == "diagonal"
        return type(family.inner) is Gaussian and (gaps or "log" not in powers)
    if isinstance(family, Text):
        return family.analyser is None
    return type(family) in (Gaussian, Binned, Categorical)


def _is_number(value: Any) -> bool:
    return type(value) in NUMBER_TYPES and -LARGEST < value < LARGEST


def _same_type(labels: list[Any]) -> bool:
    return len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple)
