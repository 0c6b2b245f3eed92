"""Scorers of single rows and documents: everything that does not depend on the row is computed once."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.evaluate.calibration import LengthAware
from deciban.evidence.scores import log_posterior
from deciban.families.word_scores import plain
from deciban.model.calibration import Calibration
from deciban.model.predictor import Predictor, with_source
from deciban.model.row_reader import Row, reader_of
from deciban.statistics import Array
from deciban.text.counting import TextRows
from deciban.text.density import TextDensity
from deciban.text.kernels.streams import Finish


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
        """A copy is made anew: the kernel holds addresses of its own memory."""
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
