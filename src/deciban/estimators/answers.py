"""Answers: evidence first, then posteriors and decisions at whatever prior and cost the asker has."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from deciban.estimators.explaining import Explaining
from deciban.evidence import decisions as decide
from deciban.evidence import scores as score
from deciban.families.product import Blocks
from deciban.model.scorer import DocumentScorer
from deciban.statistics import Array


class Answers(Explaining):
    """What a classifier says of rows."""

    # -- evidence: no prior in it ----------------------------------------------------------------------------------
    def log_likelihood(self, X: Any, *, raw: bool = False) -> Array:
        """(n, K) log f(x|class), every constant included; calibrated, unless `raw`."""
        block = self._block(X)
        return self._evidence(block, raw) + np.reshape(self.density.log_base(block), (-1, 1))

    def llr(
        self, X: Any, over: Any = None, against: Any = None, *, unit: str = "nats", prior: Any = None, raw: bool = False
    ) -> Array:
        """(n,) the weight of evidence for a class over another, or over the rest weighed by the prior.

        With two classes and nothing named: classes_[1] over classes_[0].
        """
        scores = self._evidence(self._block(X), raw)
        one, other = self._pair(over, against)
        return score.convert(score.llr(scores, one, other, self._log_prior(prior)), unit)

    # -- posteriors -----------------------------------------------------------------------------------------------
    def predict_log_proba(self, X: Any, prior: Any = None, *, raw: bool = False) -> Array:
        """(n, K) log P(class|x)."""
        scores = self._evidence(self._block(X), raw)
        spare = scores if scores.dtype == float and scores.flags.writeable else None
        return score.log_posterior(scores, self._log_prior(prior), out=spare)

    def predict_proba(self, X: Any, prior: Any = None, *, raw: bool = False) -> Array:
        """(n, K) P(class|x)."""
        return np.exp(self.predict_log_proba(X, prior, raw=raw))

    def decision_function(self, X: Any, prior: Any = None, *, raw: bool = False) -> Array:
        """Posterior log-odds (n,) of classes_[1] where there are two classes, else log posteriors (n, K)."""
        return self._answer("decision_function", self._evidence(self._block(X), raw), self._log_prior(prior))

    def log_marginal(self, X: Any, prior: Any = None) -> Array:
        """(n,) log Σ_c P(c) f(x|c): how well the model as a whole explains each row."""
        return score.log_marginal(self.log_likelihood(X), self._log_prior(prior))

    # -- decisions --------------------------------------------------------------------------------------------------
    def predict(self, X: Any, prior: Any = None, cost: Any = None) -> Array:
        """(n,) the class of least expected cost; at equal costs the most probable one."""
        return self._answer("predict", self._evidence(self._block(X)), self._log_prior(prior), cost)

    def decide(
        self,
        X: Any,
        *,
        unsure: float | None = None,
        reject_cost: float | None = None,
        prior: Any = None,
        cost: Any = None,
    ) -> decide.Decisions:
        """Label (None where unsure), posterior, llr over the runner-up, and expected cost of each row."""
        scores = self._evidence(self._block(X))
        prior, cost = np.exp(self._log_prior(prior)), self._cost(cost)
        return decide.Decisions.of(scores, prior, self.classes_, cost, unsure=unsure, reject_cost=reject_cost)

    def scorer(self, prior: Any = None) -> DocumentScorer:
        """What answers one document at a time, in microseconds; for a model of texts.

        >>> from deciban import GenerativeClassifier
        >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
        >>> clf.scorer().predict("a prize at lunch? free!")
        'spam'
        """
        check_is_fitted(self)
        return DocumentScorer(self.density, self.classes_, self._log_prior(prior), self.calibration_)

    def sample(self, n: int = 1, random_state: Any = None, *, prior: Any = None) -> tuple[Any, Array]:
        """N rows like the ones learnt, and their labels."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        codes = rng.choice(len(self.classes_), size=n, p=np.exp(self._log_prior(prior)))
        rows = self.density.sample(codes, rng)
        if isinstance(rows, Blocks):  # columns side by side, in the order of the blocks
            columns = list(rows.parts.values())
            rows = sp.hstack(columns).tocsr() if all(map(sp.issparse, columns)) else np.column_stack(columns)
        return rows, self.classes_[codes]
