"""Decisions from posteriors, priors and costs.

    decided(x)  = argmin_d Σ_c P(c|x) · cost[c, d]                     cost[true, decided]
    π̃           = π·C_miss / (π·C_miss + (1−π)·C_fa)                   two classes: the effective prior of h1
    decide h1     when llr(x) > −log π̃/(1−π̃)

Posteriors are (n, K), given as probabilities or as their logarithms. The two are told apart by their signs: logarithms
are never positive, and each row has a positive probability. Logarithms also decide rows whose probabilities underflow.

Reference: Duda, Hart & Stork, Pattern Classification, 2nd ed., section 2.2.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from deciban.errors import CostError, InputError, PriorError, shortlist
from deciban.evidence.explanation import count, frame_of, plain
from deciban.evidence.scores import Array, llr_over_runner_up, log_posterior, log_probability

Labels: TypeAlias = Sequence[Any] | NDArray[Any]
ClassWeightLike: TypeAlias = Mapping[Any, float] | str  # a dict, or "balanced"
PriorLike: TypeAlias = Mapping[Any, float] | ArrayLike  # "learnt", "uniform", a dict, or K probabilities
CostLike: TypeAlias = Mapping[Any, float] | ArrayLike | None  # 0/1 costs, a dict by (true, decided), or K × K costs
TOLERANCE = 1e-6  # how far the sum of a given prior may be from 1
UNDERFLOW = 1e-290  # below it a scaled expected cost may have lost terms


def resolve_prior(prior: PriorLike, classes: Labels, learnt: ArrayLike | None = None) -> Array:
    """Convert a prior as users give it into K probabilities.

    Parameters
    ----------
    prior : {"learnt", "uniform"}, mapping, pandas Series or array-like of shape (K,)
        The prior. A mapping or Series gives probabilities by class label; classes that it does not name share the
        remainder in their learnt proportions.
    classes : sequence of K labels
        The classes.
    learnt : array-like of shape (K,), optional
        Number of learnt rows of each class.

    Returns
    -------
    ndarray of shape (K,)
        Probabilities, which sum to 1.

    Raises
    ------
    PriorError
        If the probabilities are not between 0 and 1, do not sum to 1, or are given for an unknown class.

    Examples
    --------
    >>> resolve_prior({"spam": .2}, ["ham", "news", "spam"], learnt=[30, 10, 60]).round(3).tolist()
    [0.6, 0.2, 0.2]
    """
    K = len(classes)
    weights = np.zeros(K) if learnt is None else np.asarray(learnt, dtype=float)
    if isinstance(prior, str) and prior == "uniform":
        return np.full(K, 1 / K)
    if isinstance(prior, str) and prior == "learnt":
        if not weights.sum() > 0:
            raise PriorError("prior 'learnt' needs learnt rows, and there are none. Give prior='uniform', or a dict.")
        return weights / weights.sum()
    if hasattr(prior, "to_dict"):  # a pandas Series such as y.value_counts(normalize=True)
        prior = prior.to_dict()
    if isinstance(prior, Mapping):
        return _named_prior(prior, classes, weights)
    values = _numbers(prior, (K,), PriorError, f"prior must be 'learnt', 'uniform', a dict or {K} probabilities")
    return _checked_prior(values, classes)


def weighted_prior(weight: ClassWeightLike, classes: Labels, learnt: ArrayLike) -> Array:
    """Convert class weights into the prior that they mean: learnt proportions times weights.

    Parameters
    ----------
    weight : "balanced" or mapping of {class: weight}
        "balanced" makes all classes that have rows equally probable. A class that the mapping does not name has
        weight 1.
    classes : sequence of K labels
        The classes.
    learnt : array-like of shape (K,) or (n, K)
        Number, or proportion, of learnt rows of each class.

    Returns
    -------
    ndarray of shape (K,) or (n, K)
        Probabilities, which sum to 1.

    Examples
    --------
    >>> weighted_prior({"spam": 3}, ["ham", "spam"], [60, 20]).tolist()
    [0.5, 0.5]
    """
    rows = np.asarray(learnt, dtype=float)
    if isinstance(weight, str):
        weighted = (rows > 0).astype(float)
    else:
        weighted = rows * np.array([float(weight.get(name, 1.0)) for name in classes])
    total = weighted.sum(axis=-1, keepdims=True)
    if not (total > 0).all():
        raise PriorError("no class that has rows has a weight above 0. Give class_weight a positive weight.")
    return weighted / total


def check_class_weight(weight: ClassWeightLike, classes: Labels, prior: PriorLike) -> None:
    """Raise PriorError for weights that are not ≥ 0, of unknown classes, or given together with a prior."""
    if not (isinstance(prior, str) and prior == "learnt"):
        raise PriorError("prior and class_weight were both given; class weights change the learnt prior. Give one.")
    if isinstance(weight, str):
        if weight != "balanced":
            raise PriorError(f"class_weight={weight!r} must be 'balanced' or a dict of weights by class.")
        return
    if not isinstance(weight, Mapping):
        raise PriorError(f"class_weight={weight!r} must be 'balanced' or a dict of weights by class.")
    known = list(classes)
    for name, value in weight.items():
        if name not in known:
            raise PriorError(f"class_weight has a weight for {name!r}, which is no class; classes are {known}.")
        if not (isinstance(value, (int, float, np.number)) and 0 <= value < np.inf):
            raise PriorError(f"class_weight[{name!r}]={value!r} must be a number ≥ 0.", label=name)


def resolve_cost(cost: CostLike, classes: Labels) -> Array:
    """Convert costs as users give them into a matrix.

    Parameters
    ----------
    cost : None, mapping or array-like of shape (K, K)
        Costs. None is 0 for right decisions and 1 for wrong ones. The keys of a mapping are pairs (true class, decided
        class); pairs that it does not hold cost 0 or 1. A matrix is cost[true, decided].
    classes : sequence of K labels
        The classes.

    Returns
    -------
    ndarray of shape (K, K)
        Costs, cost[true, decided].

    Raises
    ------
    CostError
        If a cost is negative, not finite, given for an unknown class, or below that of the right decision.

    Examples
    --------
    >>> resolve_cost({("ham", "spam"): 10}, ["ham", "spam"]).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    """
    K = len(classes)
    matrix = 1.0 - np.eye(K)
    if isinstance(cost, Mapping):
        for key, value in cost.items():
            if not (isinstance(key, tuple) and len(key) == 2):
                raise CostError(f"cost has the key {key!r}. Use pairs (true class, decided class).")
            true, decided = (_position(label, classes, "cost", CostError) for label in key)
            matrix[true, decided] = _numbers(value, (), CostError, f"the cost of {key} must be a number")
    elif cost is not None:
        matrix = _numbers(cost, (K, K), CostError, f"cost must be None, a dict or {K} × {K} costs[true, decided]")
    for true, decided in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0) & (matrix >= np.diag(matrix)[:, None]))):
        pair, right, given = (plain(classes[true]), plain(classes[decided])), matrix[true, true], matrix[true, decided]
        if 0 <= given < right:
            raise CostError(f"the cost of {pair} is {given:g}; deciding rightly costs {right:g}: make it cost no more.")
        raise CostError(f"the cost of {pair} is {given:g}; costs must be finite and ≥ 0.")
    return matrix


def expected_cost(posterior: ArrayLike, cost: ArrayLike) -> Array:
    """Compute the expected cost of deciding each class.

    Parameters
    ----------
    posterior : array-like of shape (n, K)
        Posterior probabilities, or their logarithms.
    cost : array-like of shape (K, K)
        Costs, cost[true, decided].

    Returns
    -------
    ndarray of shape (n, K)
        Expected costs.

    Examples
    --------
    >>> expected_cost([[.3335, .6665]], [[0, 1], [1, 0]]).round(4).tolist()
    [[0.6665, 0.3335]]
    """
    posterior = np.asarray(posterior, dtype=float)
    return (np.exp(posterior) if _is_log(posterior) else posterior) @ np.asarray(cost, dtype=float)


def decide(posterior: ArrayLike, cost: ArrayLike) -> NDArray[np.intp]:
    """Decide the class of least expected cost for each row.

    Parameters
    ----------
    posterior : array-like of shape (n, K)
        Posterior probabilities, or their logarithms.
    cost : array-like of shape (K, K)
        Costs, cost[true, decided].

    Returns
    -------
    ndarray of shape (n,)
        Class numbers; the first of several classes with equal costs.

    Examples
    --------
    >>> decide([[.3335, .6665]], [[0, 1], [1, 0]]).tolist()
    [1]
    >>> decide([[.3335, .6665]], [[0, 3], [1, 0]]).tolist()    # missing class 0 costs three times as much
    [0]
    """
    posterior, cost = np.asarray(posterior, dtype=float), np.asarray(cost, dtype=float)
    right = np.eye(len(cost), dtype=bool)
    wrong = np.where(right, 0.0, cost).max(axis=1)
    saved = np.maximum(wrong - np.diag(cost), 0.0)
    one_price = (right | (cost == wrong[:, None])).all()  # all errors on a class cost the same: argmax P(c)·saved(c)
    if one_price and saved.min() == saved.max() > 0:
        return posterior.argmax(axis=1)
    logs = posterior if _is_log(posterior) else log_probability(posterior)
    if one_price:
        return (logs + log_probability(saved)).argmax(axis=1)
    excess = cost - cost.min(axis=1, keepdims=True)  # a cost common to all decisions on a class changes nothing
    excess /= excess.max()
    expected = expected_cost(posterior, excess)
    decided = expected.argmin(axis=1)
    tiny = (expected < UNDERFLOW).sum(axis=1) > 1
    if tiny.any():
        by_decision = [np.logaddexp.reduce(logs[tiny] + column, axis=1) for column in log_probability(excess).T]
        decided[tiny] = np.argmin(by_decision, axis=0)
    return decided


def with_unsure(
    posterior: ArrayLike,
    decided: ArrayLike,
    unsure: float | None = None,
    *,
    reject_cost: float | None = None,
    cost: ArrayLike | None = None,
) -> NDArray[np.bool_]:
    """Find the rows that should not be decided.

    Parameters
    ----------
    posterior : array-like of shape (n, K)
        Posterior probabilities, or their logarithms.
    decided : array-like of shape (n,)
        Number of the decided class of each row.
    unsure : float, optional
        Least posterior probability of the decided class.
    reject_cost : float, optional
        Largest expected cost of the decision: the cost of not deciding.
    cost : array-like of shape (K, K), optional
        Costs, cost[true, decided]; 0/1 if not given.

    Returns
    -------
    ndarray of bool of shape (n,)
        True where the posterior is below `unsure`, or the expected cost above `reject_cost`.

    Examples
    --------
    >>> with_unsure([[.3335, .6665], [.05, .95]], [1, 1], .9).tolist()
    [True, False]
    >>> with_unsure([[.3335, .6665], [.05, .95]], [1, 1], reject_cost=.2).tolist()
    [True, False]
    """
    posterior, decided = np.asarray(posterior, dtype=float), np.asarray(decided, dtype=np.intp)
    rows, mask = np.arange(len(posterior)), np.zeros(len(posterior), dtype=bool)
    if unsure is not None:
        if not 0 <= unsure <= 1:
            raise InputError(f"unsure is {unsure!r}; it is a posterior probability. Give a number between 0 and 1.")
        mask |= (np.exp(posterior) if _is_log(posterior) else posterior)[rows, decided] < unsure
    if reject_cost is not None:
        if not 0 <= reject_cost < inf:
            raise CostError(f"reject_cost is {reject_cost!r}; the cost of 'unsure' must be a finite number ≥ 0.")
        cost = 1.0 - np.eye(posterior.shape[1]) if cost is None else cost
        mask |= expected_cost(posterior, cost)[rows, decided] > reject_cost
    return mask


def threshold(
    prior: ArrayLike, c_miss: float = 1, c_fa: float = 1, *, c_hit: float = 0, c_pass: float = 0
) -> float | Array:
    """Compute the llr above which h1 is decided: −log π̃/(1−π̃), with π̃ the effective prior of h1.

    Parameters
    ----------
    prior : float or array-like
        Prior probability of h1.
    c_miss, c_fa : float, default=1
        Costs of deciding h0 where h1 is true (miss), and h1 where h0 is true (false alarm).
    c_hit, c_pass : float, default=0
        Costs of deciding h1 and h0 where they are true.

    Returns
    -------
    float or ndarray
        Threshold in nats, of the shape of `prior`.

    Examples
    --------
    If one person in ten is male, male is decided only by evidence above nine to one:

    >>> round(float(np.exp(threshold(.1))), 9)
    9.0
    """
    prior = np.asarray(prior, dtype=float)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise PriorError(f"the prior of h1 is {prior}; probabilities lie between 0 and 1.")
    if not (0 <= c_hit <= c_miss < inf and 0 <= c_pass <= c_fa < inf):
        raise CostError(
            f"c_miss={c_miss}, c_fa={c_fa}, c_hit={c_hit}, c_pass={c_pass}: costs must be finite and ≥ 0, and a right "
            "decision must not cost more than a wrong one."
        )
    miss = log_probability(prior) + log_probability(c_miss - c_hit)
    alarm = log_probability(1 - prior) + log_probability(c_fa - c_pass)
    if np.isneginf(np.maximum(miss, alarm)).any():
        raise CostError("no possible error has a cost, so that all decisions cost the same. Give c_miss and c_fa > 0.")
    nats = alarm - miss
    return nats if np.ndim(nats) else float(nats)


def effective_prior(
    prior: ArrayLike, c_miss: float = 1, c_fa: float = 1, *, c_hit: float = 0, c_pass: float = 0
) -> float | Array:
    """Compute the prior of h1 that gives, at equal costs, the decisions of this prior at the given costs.

    Parameters
    ----------
    prior : float or array-like
        Prior probability of h1.
    c_miss, c_fa : float, default=1
        Costs of deciding h0 where h1 is true (miss), and h1 where h0 is true (false alarm).
    c_hit, c_pass : float, default=0
        Costs of deciding h1 and h0 where they are true.

    Returns
    -------
    float or ndarray
        Probability, of the shape of `prior`.

    Examples
    --------
    >>> round(effective_prior(.1, c_miss=9), 9)
    0.5
    """
    effective = expit(np.negative(threshold(prior, c_miss, c_fa, c_hit=c_hit, c_pass=c_pass)))
    return effective if np.ndim(effective) else float(effective)


class Decision(NamedTuple):
    """The decision on one row; the label is None where unsure."""

    label: Any
    posterior: float
    llr: float
    expected_cost: float


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """The decision on each row, with its probability, evidence and expected cost.

    Indexing with a number gives a `Decision`; a slice, a mask or an array of positions gives `Decisions`.

    Parameters
    ----------
    label : ndarray of shape (n,)
        The decided class; None where unsure.
    posterior : ndarray of shape (n,)
        Posterior probability of the decided class, also where unsure.
    llr : ndarray of shape (n,)
        Evidence for the decided class over the most probable other one, in nats.
    expected_cost : ndarray of shape (n,)
        Expected cost of the decision, also where unsure.

    Examples
    --------
    >>> made = Decisions.of(np.log([[.05395, .01198]]), [.1, .9], ["m", "f"], resolve_cost(None, ["m", "f"]))
    >>> made.label.tolist(), made.posterior.round(4).tolist(), made.llr.round(3).tolist()
    (['f'], [0.6665], [-1.505])
    >>> made
    Decisions(1 row, 0 unsure)
    """

    label: NDArray[Any]
    posterior: Array
    llr: Array
    expected_cost: Array

    @classmethod
    def of(
        cls,
        log_likelihood: ArrayLike,
        prior: ArrayLike,
        classes: Labels,
        cost: ArrayLike,
        unsure: float | None = None,
        reject_cost: float | None = None,
    ) -> Decisions:
        """Decide rows by their log-likelihoods.

        Parameters
        ----------
        log_likelihood : array-like of shape (n, K)
            Log-likelihoods.
        prior : array-like of shape (K,) or (n, K)
            Prior probabilities.
        classes : sequence of K labels
            The classes.
        cost : array-like of shape (K, K)
            Costs, cost[true, decided].
        unsure, reject_cost : float, optional
            Limits beyond which a row is not decided, as in `with_unsure`.

        Returns
        -------
        Decisions
            The decisions.
        """
        log_prior = log_probability(prior)
        logs = log_posterior(log_likelihood, log_prior)
        decided, rows = decide(logs, cost), np.arange(len(logs))
        label = np.fromiter(map(plain, classes), dtype=object, count=len(classes))[decided]
        label[with_unsure(logs, decided, unsure, reject_cost=reject_cost, cost=cost)] = None
        expected = expected_cost(logs, cost)[rows, decided]
        return cls(label, np.exp(logs[rows, decided]), llr_over_runner_up(log_likelihood, decided, log_prior), expected)

    def to_frame(self) -> Any:
        """Give the decisions as a table.

        Returns
        -------
        pandas.DataFrame
            A row for each decision, and a column for each field.
        """
        return frame_of({name: getattr(self, name) for name in Decision._fields})

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: int | slice | NDArray[Any]) -> Any:
        fields = [getattr(self, name)[rows] for name in Decision._fields]
        return Decisions(*fields) if np.ndim(fields[1]) else Decision(fields[0], *map(float, fields[1:]))

    def __iter__(self) -> Iterator[Decision]:
        return map(Decision, self.label, self.posterior.tolist(), self.llr.tolist(), self.expected_cost.tolist())

    def __repr__(self) -> str:
        return f"Decisions({count(len(self), 'row')}, {sum(label is None for label in self.label):,} unsure)"


def _named_prior(prior: Mapping[Any, float], classes: Labels, weights: Array) -> Array:
    """Probabilities of the named classes; the others share the remainder."""
    values, left = np.zeros(len(classes)), np.ones(len(classes), dtype=bool)
    for label, value in prior.items():
        position = _position(label, classes, "prior", PriorError)
        values[position] = _numbers(value, (), PriorError, f"the prior of {plain(label)!r} must be a number")
        left[position] = False
    if left.any() and values.min() >= 0 and values.sum() <= 1:
        share = weights[left] if weights[left].sum() > 0 else np.ones(left.sum())
        values[left] = (1 - values.sum()) * (share / share.sum())
    return _checked_prior(values, classes)


def _checked_prior(values: Array, classes: Labels) -> Array:
    for label, value in zip(classes, values):
        if not 0 <= value <= 1:
            raise PriorError(f"the prior of {plain(label)!r} is {value:g}; probabilities lie between 0 and 1.")
    if abs(values.sum() - 1) > TOLERANCE:
        raise PriorError(f"the prior sums to {values.sum():.9g}, not to 1. Divide by the sum, or name fewer classes.")
    return values / values.sum()


def _position(label: Hashable, classes: Labels, what: str, error: type[ValueError]) -> int:
    """The number of a class, found by equality: 1, 1.0 and numpy's 1 are the same class."""
    names = [plain(name) for name in classes]
    if label in names:
        return names.index(label)
    near = difflib.get_close_matches(repr(plain(label)), map(repr, names), n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    known = shortlist([repr(name) for name in names], 20)
    raise error(f"{what} names class {plain(label)!r}, which the model does not have{hint}. Its classes are {known}.")


def _numbers(given: ArrayLike, shape: tuple[int, ...], error: type[ValueError], need: str) -> Array:
    try:
        numbers = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise error(f"{need}; got {reprlib.repr(given)}.") from None
    if numbers.shape != shape:
        raise error(f"{need}; got {reprlib.repr(given)}, of shape {numbers.shape}.")
    return numbers


def _is_log(posterior: Array) -> bool:
    """Whether these are logarithms: they are never positive, and each row has a positive probability."""
    return not posterior.max(initial=0.0) > 1e-9
