"""One hidden Markov model for each class of whole sequences: which of them made this one?

log f(x_1 … x_T | class)  by the forward recursion; llr and posteriors as for any other evidence
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from deciban.errors import InputError, NotAvailableError
from deciban.estimators.learning import _array
from deciban.estimators.sequences import HiddenMarkovModel, SavedSequences
from deciban.evidence import decisions as decide
from deciban.evidence import scores as score
from deciban.families.categorical import Categorical
from deciban.families.protocol import Family, Rule
from deciban.latent.hmm_fit import choose, read_rows
from deciban.latent.sequences import Rows, Sequences
from deciban.read.labels import encode_labels
from deciban.statistics import Array, Members


class HMMClassifier(SavedSequences, ClassifierMixin, BaseEstimator):
    """Whole sequences told apart by how they were made.

    n_states is a number, or a dict by class; prior and cost as in GenerativeClassifier, the rest as in
    HiddenMarkovModel. A sequence is a row of the answers.

    >>> import numpy as np
    >>> from deciban import Categorical, HMMClassifier
    >>> runs, turns = [[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]] * 9, [[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]] * 9
    >>> clf = HMMClassifier(Categorical(), 2, random_state=0).fit(runs + turns, ["runs"] * 18 + ["turns"] * 18)
    >>> clf.predict([[0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0, 1]])
    array(['runs', 'turns'], dtype='<U5')
    """

    classes_: Array
    models_: dict[Any, HiddenMarkovModel]
    rows_: Array  # (K,) sequences of each class, weighed

    def __init__(
        self,
        family: Family,
        n_states: Any = 2,
        *,
        rule: Rule = "mean",
        prior: Any = "learnt",
        cost: Any = None,
        start_pseudo_count: Any = 1.0,
        transition_pseudo_count: Any = 1.0,
        n_starts: int = 10,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.family = family
        self.n_states = n_states
        self.rule = rule
        self.prior = prior
        self.cost = cost
        self.start_pseudo_count = start_pseudo_count
        self.transition_pseudo_count = transition_pseudo_count
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, lengths: Any = None, *, sequence_weight: Any = None) -> Self:
        """Learn a model for each class; `y` has one label a sequence."""
        rows, _ = read_rows(self.family, X, lengths)
        names, codes = encode_labels(y, len(rows.sequences.ends))
        weight = Sequences.of(rows.sequences.lengths, rows.n, sequence_weight).weight
        rows.check()
        family = self._shared(rows)
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _OWN}
        models = {}
        for k, name in enumerate(names):
            own = (codes == k) & (weight > 0)
            if not own.any():
                raise InputError(f"class {name!r} has no sequence of positive weight. Give it some, or leave it out.")
            at = np.flatnonzero(np.repeat(own, rows.sequences.lengths))
            states = self.n_states[name] if isinstance(self.n_states, dict) else self.n_states
            model = HiddenMarkovModel(**{**parameters, "family": family, "n_states": states})
            models[name] = model.fit(rows.X[at], lengths=rows.sequences.lengths[own], sequence_weight=weight[own])
        return self._set(names, models, np.bincount(codes, weight, len(names)))

    def log_likelihood(self, X: Any, lengths: Any = None) -> Array:
        """(B, K) log f(sequence|class)."""
        check_is_fitted(self, "models_")
        rows, _ = read_rows(self.family, X, lengths)
        each = [model.score_samples(rows.X, rows.sequences.lengths) for model in self.models_.values()]
        return np.column_stack(each)

    def llr(
        self,
        X: Any,
        over: Any = None,
        against: Any = None,
        lengths: Any = None,
        *,
        unit: str = "nats",
        prior: Any = None,
    ) -> Array:
        """(B,) the evidence for a class over another, or over the rest; of two, for classes_[1] over classes_[0]."""
        if over is None and len(self.classes_) == 2:
            over, against = self.classes_[1], self.classes_[0]
        place = {name: at for at, name in enumerate(self.classes_.tolist())}
        for name in (over, against):
            if name not in place and (name is not None or over is None):
                raise InputError(f"no such class: {name!r}; the model knows {list(place)}. Name one.")
        rival = None if against is None else place[against]
        found = score.llr(self.log_likelihood(X, lengths), place[over], rival, self._log_prior(prior))
        return score.convert(found, unit)

    def predict_log_proba(self, X: Any, lengths: Any = None, prior: Any = None) -> Array:
        """(B, K) log P(class|sequence)."""
        return score.log_posterior(self.log_likelihood(X, lengths), self._log_prior(prior))

    def predict_proba(self, X: Any, lengths: Any = None, prior: Any = None) -> Array:
        """(B, K) P(class|sequence)."""
        return np.exp(self.predict_log_proba(X, lengths, prior))

    def predict(self, X: Any, lengths: Any = None, prior: Any = None, cost: Any = None) -> Array:
        """(B,) the class of least expected cost."""
        costs = decide.resolve_cost(self.cost if cost is None else cost, self.classes_)
        return self.classes_[decide.decide(self.predict_log_proba(X, lengths, prior), costs)]

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """How many sequences are classified rightly."""
        return float(np.mean(self.predict(X, lengths) == np.asarray(y)))

    def unlearn(self, *_: Any) -> None:
        """Refused: the sums of hidden states depend on the guess they were collected with."""
        raise NotAvailableError("hidden Markov models fitted by EM cannot be unlearnt exactly: refit without the rows.")

    def _set(self, names: tuple[Any, ...], models: dict[Any, HiddenMarkovModel], rows: Array) -> Self:
        self.classes_, self.models_, self.rows_ = _array(names), models, rows
        return self

    def _log_prior(self, prior: Any) -> Array:
        check_is_fitted(self, "models_")
        given = self.prior if prior is None else prior
        return score.log_probability(decide.resolve_prior(given, self.classes_, self.rows_))

    def _shared(self, rows: Rows) -> Any:
        """The family with choices that all classes share: prior scale, and which categories there are."""
        family = choose(rows, None, self.rule)
        if isinstance(family, Categorical) and family.categories is None and not family.joint:
            axis: Any = family.collect(rows.X, Members.one_group(rows.n)).labels["category"]
            family = replace(family, categories=tuple(tuple(part.names) for part in axis.parts))
        return family


_OWN = ("prior", "cost", "family", "n_states")  # what the models of the classes do not take from the classifier
