"""Answers from log-likelihoods: prior → llr → posterior → decision → evaluation.

`Answers` is shared by every classifier. It needs `log_likelihood`, `classes_` and the parameters `prior` and `cost`;
`class_count_` holds the rows learnt per class, for prior="learnt".
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError
from deciban.evidence import decisions, scores
from deciban.evidence.decisions import CostLike, PriorLike
from deciban.read.codes import Labels, place_labels
from deciban.statistics import Array

if TYPE_CHECKING:
    import scipy.sparse as sp
    from narwhals.typing import IntoDataFrame

    from deciban.evaluate.report import Evaluation
    from deciban.evidence.scores import EstimatedPrior
    from deciban.read.source import Source

RowsLike: TypeAlias = "ArrayLike | sp.sparray | IntoDataFrame | Source | os.PathLike[str]"  # array, frame, file, texts
LabelsLike: TypeAlias = ArrayLike | Labels | None  # a text is the name of a column
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "log_likelihood", "llr")


P = ParamSpec("P")
R = TypeVar("R")


def one_model(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method that reads the model several times: a call uses one model, also while other threads learn."""

    @wraps(method)
    def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        owner: Any = args[0]
        pinned = object.__new__(type(owner))
        pinned.__dict__.update(owner.__dict__)
        return method(pinned, *args[1:], **kwargs)  # type: ignore[arg-type]

    return answered


class Answers:
    """The answers of a classifier that has `log_likelihood` and `classes_`."""

    prior: Any  # parameters of the classifier
    cost: Any
    classes_: Any  # (K,) labels

    @abstractmethod
    def log_likelihood(self, X: RowsLike, *, constant: bool = True, **options: ArrayLike | None) -> Array:
        """Return log f(x|class), shape (n, K); without `constant`, terms that all classes share may be left out."""

    @property
    @abstractmethod
    def class_count_(self) -> Array:
        """Weight of the rows learnt of each class, shape (K,)."""

    # -- evidence: no prior in it ----------------------------------------------------------------------------------
    @one_model
    def llr(
        self,
        X: RowsLike,
        over: Hashable = None,
        against: Hashable = None,
        *,
        unit: str = "nats",
        prior: PriorLike | None = None,
        **options: ArrayLike | None,
    ) -> Array:
        """Return the weight of evidence for one class over another, or over all the others.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        over : class label, optional
            Class that the evidence is for; with two classes the default is ``classes_[1]``.
        against : class label, optional
            Class to compare with; the default is ``classes_[0]`` if `over` is not given, else all other classes,
            weighted by the prior.
        unit : {"nats", "bits", "bans", "decibans"}, default="nats"
            Unit of the result.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior that weighs the other classes; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-likelihood ratios.
        """
        likelihood = self.log_likelihood(X, constant=False, **options)
        one, other = self.class_pair(over, against)
        return scores.convert(scores.llr(likelihood, one, other, self.log_prior(prior)), unit)

    @one_model
    def log_marginal(self, X: RowsLike, prior: PriorLike | None = None, **options: ArrayLike | None) -> Array:
        """Return log Σ_c P(c) f(x|c): how well the model as a whole explains each row.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities of the rows.
        """
        return scores.log_marginal(self.log_likelihood(X, constant=True, **options), self.log_prior(prior))

    # -- posteriors ------------------------------------------------------------------------------------------------
    @one_model
    def predict_log_proba(self, X: RowsLike, prior: PriorLike | None = None, **options: ArrayLike | None) -> Array:
        """Return the log posterior probability of each class.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log posterior probabilities, columns in the order of `classes_`.
        """
        likelihood = self.log_likelihood(X, constant=False, **options)
        return scores.log_posterior(likelihood, self.log_prior(prior), out=_spare(likelihood))

    @one_model
    def predict_proba(self, X: RowsLike, prior: PriorLike | None = None, **options: ArrayLike | None) -> Array:
        """Return the posterior probability of each class.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Posterior probabilities, columns in the order of `classes_`.
        """
        likelihood = self.log_likelihood(X, constant=False, **options)
        return scores.posterior(likelihood, self.log_prior(prior), out=_spare(likelihood))

    @one_model
    def decision_function(self, X: RowsLike, prior: PriorLike | None = None, **options: ArrayLike | None) -> Array:
        """Return posterior log-odds of ``classes_[1]`` for two classes, else log posteriors.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log-odds, or log posterior probabilities.
        """
        likelihood = self.log_likelihood(X, constant=False, **options)
        if likelihood.shape[1] > 2:
            return scores.log_posterior(likelihood, self.log_prior(prior), out=_spare(likelihood))
        return self.answer("decision_function", likelihood, self.log_prior(prior))

    # -- decisions -------------------------------------------------------------------------------------------------
    @one_model
    def predict(
        self, X: RowsLike, prior: PriorLike | None = None, cost: CostLike = None, **options: ArrayLike | None
    ) -> Array:
        """Return the class of least expected cost; at equal costs the most probable one.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        likelihood = self.log_likelihood(X, constant=False, **options)
        return self.answer("predict", likelihood, self.log_prior(prior), cost)

    @one_model
    def decide(
        self,
        X: RowsLike,
        *,
        unsure: float | None = None,
        reject_cost: float | None = None,
        prior: PriorLike | None = None,
        cost: CostLike = None,
        **options: ArrayLike | None,
    ) -> decisions.Decisions:
        """Decide each row, or say that it is unsure.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows to judge.
        unsure : float, optional
            Posterior probability below which a row is not decided.
        reject_cost : float, optional
            Cost of not deciding; rows whose least expected cost is higher are not decided.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        Decisions
            Label (None where unsure), posterior, llr over the runner-up and expected cost of each row.
        """
        likelihood = self.log_likelihood(X, constant=False, **options)
        given, costs = np.exp(self.log_prior(prior)), self.cost_matrix(cost)
        return decisions.Decisions.of(likelihood, given, self.classes_, costs, unsure=unsure, reject_cost=reject_cost)

    # -- judging ---------------------------------------------------------------------------------------------------
    @one_model
    def evaluate(
        self,
        X: RowsLike,
        y: LabelsLike,
        *,
        prior: PriorLike | None = None,
        cost: CostLike = None,
        **options: ArrayLike | None,
    ) -> Evaluation:
        """Evaluate the answers on new rows: error, log loss, Cllr and its calibration loss, confusion and more.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows that were not learnt.
        y : array-like of shape (n_samples,)
            Their true classes.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        Evaluation
            All figures; prints as a report.
        """
        likelihood = self.log_likelihood(X, constant=True, **options)
        classes = tuple(self.classes_.tolist())
        codes = place_labels(y, len(likelihood), classes)
        from deciban.evaluate.report import Evaluation

        return Evaluation(likelihood, codes, classes, np.exp(self.log_prior(prior)), self.cost_matrix(cost))

    @one_model
    def estimate_prior(self, X: RowsLike, **options: ArrayLike | None) -> EstimatedPrior:
        """Estimate the class proportions of an unlabelled batch, with standard errors.

        Parameters
        ----------
        X : array-like, frame, file or list of str
            Rows whose classes are not known.
        **options : dict
            Further arguments of `log_likelihood`.

        Returns
        -------
        EstimatedPrior
            Proportions and standard errors; can be given as `prior`.
        """
        from deciban.evidence.scores import estimate_prior

        return estimate_prior(self.log_likelihood(X, constant=False, **options))

    # -- what answers are computed with ----------------------------------------------------------------------------
    def log_prior(self, prior: PriorLike | None = None) -> Array:
        """Return the log prior of the classes.

        Parameters
        ----------
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None. Classes that a dict does not name share the rest.

        Returns
        -------
        ndarray of shape (n_classes,)
            Log probabilities.
        """
        given = self.prior if prior is None else prior
        return scores.log_probability(decisions.resolve_prior(given, self.classes_, self.class_count_))

    def cost_matrix(self, cost: CostLike = None) -> Array:
        """Return the costs of decisions.

        Parameters
        ----------
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs; the classifier's own if None.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
            Cost of deciding the column's class where the row's class is true.
        """
        return decisions.resolve_cost(self.cost if cost is None else cost, self.classes_)

    def class_pair(self, over: Hashable = None, against: Hashable = None) -> tuple[int, int | None]:
        """Return the positions in `classes_` of the class that evidence is for and the class that it is against.

        Parameters
        ----------
        over : class label, optional
            Class that the evidence is for; with two classes the default is ``classes_[1]``.
        against : class label, optional
            Class to compare with.

        Returns
        -------
        tuple of (int, int or None)
            Positions; None stands for all other classes.
        """
        return class_pair(self.classes_.tolist(), over, against)

    def answer(self, method: str, likelihood: Array, log_prior: Array, cost: CostLike = None) -> Array:
        """Turn log-likelihoods into the answer of a method.

        Parameters
        ----------
        method : str
            One of predict, predict_proba, predict_log_proba, decision_function, log_likelihood and llr.
        likelihood : ndarray of shape (n_samples, n_classes)
            Log-likelihoods.
        log_prior : ndarray of shape (n_classes,) or (n_samples, n_classes)
            Log prior; one for each row in leave-one-out.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.

        Returns
        -------
        ndarray
            What the method returns.
        """
        return answer(method, likelihood, log_prior, self.classes_, self.cost if cost is None else cost)


def _spare(likelihood: Array) -> Array | None:
    """Return the array itself, if an answer of the same shape may be written to it."""
    return likelihood if likelihood.dtype == float and likelihood.flags.writeable else None


def class_pair(classes: Sequence[Any], over: Hashable, against: Hashable) -> tuple[int, int | None]:
    """Return the positions of two classes; with two classes and nothing named, the second over the first."""
    if over is None:
        if len(classes) != 2:
            raise InputError(f"there are {len(classes)} classes: name the one the evidence is for.")
        return 1, 0
    place = {name: at for at, name in enumerate(classes)}
    for name in (over, against):
        if name is not None and name not in place:
            raise InputError(f"no such class: {name!r}; the model knows {list(place)}.", label=name)
    return place[over], None if against is None else place[against]


def answer(method: str, likelihood: Array, log_prior: Array, classes: Array, cost: CostLike) -> Array:
    """Turn log-likelihoods (n, K) into the answer of a method; `cost` may be None."""
    if method == "log_likelihood":
        return likelihood
    if method == "decision_function" and len(classes) == 2:
        joint = scores.log_joint(likelihood, log_prior)
        return scores.log_ratio(joint[:, 1], joint[:, 0])
    if method == "llr":
        return scores.llr(likelihood, *class_pair(classes.tolist(), None, None))
    if method == "predict" and cost is None:
        best = scores.most_probable(likelihood, log_prior)
        if best is not None:
            return classes[best]
    if method == "predict_proba":
        return scores.posterior(likelihood, log_prior)
    log_posterior = scores.log_posterior(likelihood, log_prior)
    if method == "predict":
        return classes[decisions.decide(log_posterior, decisions.resolve_cost(cost, classes))]
    if method == "decision_function" and len(classes) == 1:
        return log_posterior[:, 0]
    if method in ("predict_log_proba", "decision_function"):
        return log_posterior
    raise InputError(f"method={method!r} is not an answer. Use {', '.join(METHODS[:-1])} or {METHODS[-1]}.")
