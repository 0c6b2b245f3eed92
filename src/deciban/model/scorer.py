"""One document at a time, in microseconds: everything that does not depend on it is made beforehand."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from deciban.errors import InputError, NotAvailableError
from deciban.evaluate.calibration import LengthAware
from deciban.evidence.scores import log_posterior
from deciban.statistics import Array
from deciban.text.density import TextDensity
from deciban.text.kernels.streams import Finish
from deciban.text.rows import TextRows


class DocumentScorer:
    """Answers of one classifier under one prior, as they were when it was made; learning makes it out of date.

    >>> from deciban import GenerativeClassifier
    >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
    >>> score = clf.scorer()
    >>> score("prize").round(1), score.predict("see you at noon")
    (array([-1.8, -0.2]), 'ham')
    """

    def __init__(self, density: Any, classes: Array, log_prior: Array, calibration: Any = None) -> None:
        if not isinstance(density, TextDensity):
            raise NotAvailableError("only a model of texts has a scorer of single documents. Use predict for rows.")
        self._given = density, classes, log_prior, calibration
        self.classes, self.log_prior = classes.tolist(), log_prior
        self._density, self._calibration, self._names = density, calibration, tuple(classes.tolist())
        scorer, finish = density.scorer, _finish(calibration, self._names, log_prior)
        self._one: Any = self._general if scorer is None or finish is None else scorer.finished(finish)

    def __reduce__(self) -> Any:
        """A copy is made anew: what runs keeps addresses of its own memory."""
        return DocumentScorer, self._given

    def __call__(self, text: str) -> Array:
        """(K,) log P(class|text)."""
        if not isinstance(text, str):
            raise InputError(f"a document is a text, not {type(text).__name__}: {text!r:.60}.")
        try:
            return self._one(text)[0]
        except UnicodeEncodeError:
            return self._general(text)[0]  # which says what is wrong with it

    def predict(self, text: str) -> Any:
        """The most probable class."""
        return self.classes[int(self(text).argmax())]

    def predict_proba(self, text: str) -> dict[Any, float]:
        """Each class and its posterior probability."""
        return dict(zip(self.classes, np.exp(self(text)).tolist()))

    def _general(self, text: str) -> tuple[Array, None]:
        rows = TextRows.of([text])
        scores = self._density.log_density(rows)
        if self._calibration is not None:
            lengths = rows.lengths(self._density.text.tokens)
            scores = self._calibration.apply([scores], [lengths], self._names)
        return log_posterior(scores, self.log_prior)[0], None

    def __repr__(self) -> str:
        return f"DocumentScorer({len(self.classes)} classes, {self._density.axis.size:,} words)"


def _finish(calibration: Any, classes: tuple[Any, ...], log_prior: Array) -> Finish | None:
    """What becomes of scores; None where only the general way knows."""
    if calibration is None:
        return Finish(np.empty(0), log_prior, log_prior)
    made = calibration.calibrator
    if not isinstance(made, LengthAware):
        return None
    law = made.log_scale, made.shrinkage, log(made.reference_length), made.shortest
    return Finish(np.array(law), calibration.offsets(classes) + log_prior, log_prior)
