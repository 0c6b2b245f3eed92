"""The evidence behind every answer: scores of rows, calibrated, and the prior and costs they meet."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.conventions import check_is_fitted
from deciban.errors import InputError
from deciban.estimators.learning import Learning
from deciban.evidence import decisions as decide
from deciban.evidence import scores as score
from deciban.model import model
from deciban.model.calibration import total
from deciban.model.prequential import Prequential
from deciban.read.batches import Batch
from deciban.read.labels import encode_labels
from deciban.statistics import Array


class Scoring(Learning):
    """What a classifier's answers are made of."""

    def _block(self, X: Any) -> Any:
        check_is_fitted(self)
        return model.encode(self.family_, self._table(X), self.stats_.family)

    def _scores(self, block: Any) -> Array:
        """(n, K) log f(x|class) up to what all classes share; bad values are named when they show."""
        with np.errstate(invalid="ignore", over="ignore"):
            scores = self.density.log_density(block)
            whole = np.isfinite(scores.sum())
        if not whole:
            self.family_.check(block, [str(name) for name in self.columns_])
        return scores

    def _evidence(self, block: Any, raw: bool = False) -> Array:
        """The scores, calibrated where the model is."""
        if raw or self.calibration_ is None:
            return self._scores(block)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = model.block_scores(self.family_, self.density, block)
            whole = all(np.isfinite(part.sum()) for part in scores)
        if not whole:
            self.family_.check(block, [str(name) for name in self.columns_])
        return self._calibrated(scores, block)

    def _foretold(self, block: Any, batch: Batch) -> Prequential | None:
        if self.family_.calibration is None:
            return None
        log_p = score.log_posterior(self._evidence(block), self._log_prior())
        names, codes = encode_labels(batch.labels, len(log_p))
        known = {name: at for at, name in enumerate(self.stats_.classes)}
        place = np.array([known.get(name, -1) for name in names], dtype=np.intp)[codes]
        own = np.where(place < 0, np.nan, log_p[np.arange(len(place)), place])
        return (self.prequential_ or Prequential()).told(own, batch.weight)

    def _calibrated(self, scores: list[Array], block: Any, raw: bool = False) -> Array:
        """Scores of each block, together; calibrated, unless `raw`."""
        if raw or self.calibration_ is None:
            return total(scores)
        return self.calibration_.apply(scores, model.block_lengths(self.family_, block), self.stats_.classes)

    def _answer(self, method: str, scores: Array, log_prior: Array, cost: Any = None) -> Array:
        """What `method` says of these log-likelihoods; log_prior is (K,), or (n, K) in leave-one-out."""
        if method == "log_likelihood":
            return scores
        if method == "decision_function" and len(self.classes_) == 2:
            joint = score.log_joint(scores, log_prior)
            return score.log_ratio(joint[:, 1], joint[:, 0])
        if method == "llr":
            return score.llr(scores, *self._pair(None, None))
        if method == "predict" and cost is None and self.cost is None:
            joint = score.log_joint(scores, log_prior)
            best = joint.argmax(axis=1)
            if not np.isneginf(joint[np.arange(len(best)), best]).any():
                return self.classes_[best]
        log_posterior = score.log_posterior(scores, log_prior)
        if method == "predict":
            return self.classes_[decide.decide(log_posterior, self._cost(cost))]
        if method == "predict_proba":
            return np.exp(log_posterior)
        if method == "decision_function" and len(self.classes_) == 1:
            return log_posterior[:, 0]
        if method in ("predict_log_proba", "decision_function"):
            return log_posterior
        raise InputError(
            f"method={method!r} is not an answer. Use predict, predict_proba, predict_log_proba, decision_function, "
            "log_likelihood or llr."
        )

    def _log_prior(self, prior: Any = None) -> Array:
        check_is_fitted(self)
        given = self.prior if prior is None else prior
        return score.log_probability(decide.resolve_prior(given, self.classes_, self.stats_.rows))

    def _cost(self, cost: Any = None) -> Array:
        return decide.resolve_cost(self.cost if cost is None else cost, self.classes_)

    def _pair(self, over: Any, against: Any) -> tuple[int, int | None]:
        if over is None:
            if len(self.classes_) != 2:
                raise InputError(f"there are {len(self.classes_)} classes: name the one the evidence is for.")
            return 1, 0
        place = {name: at for at, name in enumerate(self.classes_.tolist())}
        for name in (over, against):
            if name is not None and name not in place:
                raise InputError(f"no such class: {name!r}; the model knows {list(place)}.")
        return place[over], None if against is None else place[against]
