"""One document at a time, in microseconds: everything that does not depend on it is made beforehand."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np

from deciban.errors import InputError, NotAvailableError
from deciban.evaluate.calibration import LengthAware
from deciban.families.text.density import TextDensity
from deciban.families.text.rows import TextRows
from deciban.score import log_posterior
from deciban.statistics import Array


class DocumentScorer:
    """Answers of one classifier under one prior, as they were when it was made; learning makes it out of date.

    >>> from deciban import GenerativeClassifier
    >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
    >>> score = clf.scorer()
    >>> score("prize").round(1), score.predict("see you at noon")
    (array([-4., -0.]), 'ham')
    """

    def __init__(self, density: Any, classes: Array, log_prior: Array, calibration: Any = None) -> None:
        if not isinstance(density, TextDensity):
            raise NotAvailableError("only a model of texts has a scorer of single documents. Use predict for rows.")
        self.classes, self.log_prior = classes.tolist(), log_prior
        self._density, self._calibration, self._names = density, calibration, tuple(classes.tolist())
        self._scorer = density.scorer
        self._law: Any = None
        if calibration is not None and isinstance(calibration.calibrator, LengthAware):
            made = calibration.calibrator
            self._law = made.log_scale, made.shrinkage, log(made.reference_length), made.shortest
            self._bias = calibration.offsets(self._names) + log_prior
        elif calibration is None:
            self._bias = log_prior
        else:
            self._scorer = None  # other calibrations take the general way

    def __call__(self, text: str) -> Array:
        """(K,) log P(class|text)."""
        if not isinstance(text, str):
            raise InputError(f"a document is a text, not {type(text).__name__}: {text!r:.60}.")
        if self._scorer is None:
            return self._general(text)
        scores, length = self._scorer.one(text)
        if self._law is not None:
            if scores[0] == scores[-1] and (scores == scores[0]).all():
                return self.log_prior.copy()  # a document that says nothing still says nothing
            a, shrinkage, reference, shortest = self._law
            scores *= exp(a - shrinkage * (log(max(length, shortest)) - reference))
        scores += self._bias
        highest = scores.max()
        if highest == -np.inf:  # impossible in every class: the prior is all there is
            return self.log_prior.copy()
        scores -= highest
        scores -= log(np.exp(scores).sum())
        return scores

    def predict(self, text: str) -> Any:
        """The most probable class."""
        return self.classes[int(self(text).argmax())]

    def predict_proba(self, text: str) -> dict[Any, float]:
        """Each class and its posterior probability."""
        return dict(zip(self.classes, np.exp(self(text)).tolist()))

    def _general(self, text: str) -> Array:
        rows = TextRows.of([text])
        scores = self._density.log_density(rows)
        if self._calibration is not None:
            lengths = rows.lengths(self._density.text.tokens)
            scores = self._calibration.apply([scores], [lengths], self._names)
        return log_posterior(scores, self.log_prior)[0]

    def __repr__(self) -> str:
        return f"DocumentScorer({len(self.classes)} classes, {self._density.axis.size:,} words)"
