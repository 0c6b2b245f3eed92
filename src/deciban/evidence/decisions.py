"""Priors and costs → decisions, thresholds, and an unsure region.

    decided(x)  = argmin_d Σ_c P(c|x) · cost[c, d]                     cost[true, decided]
    π̃           = π·C_miss / (π·C_miss + (1−π)·C_fa)                   two classes: costs are an effective prior
    decide h1     when llr(x) > −log π̃/(1−π̃)

Posteriors are (n, K), given as probabilities or as their logs: logs are never positive and probabilities are somewhere,
so the two cannot be confused. Logs also decide rows whose probabilities are too small to be represented.

Reference: Duda, Hart & Stork, Pattern Classification, 2nd ed., section 2.2.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban.errors import CostError, InputError, PriorError, shortlist
from deciban.evidence.explanation import frame_of, plain
from deciban.evidence.scores import Array, llr_over_runner_up, log_posterior, log_probability
from deciban.evidence.scores import effective_prior as effective_prior
from deciban.evidence.scores import threshold as threshold

Labels = Sequence[Any] | NDArray[Any]
Limit = float | None
TOLERANCE = 1e-6  # by which a given prior may miss a sum of 1
UNDERFLOW = 1e-290  # below it a scaled expected cost may have lost terms


def resolve_prior(prior: Any, classes: Labels, learnt: ArrayLike | None = None) -> Array:
    """The class prior as K probabilities, from whatever way it was given.

    Classes that a dict does not name share the remainder in their learnt proportions.

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
    if hasattr(prior, "to_dict"):  # a pandas Series such as y.value_counts(normalize=True) goes by its labels
        prior = prior.to_dict()
    if isinstance(prior, Mapping):
        return _named_prior(prior, classes, weights)
    values = _numbers(prior, (K,), PriorError, f"prior must be 'learnt', 'uniform', a dict or {K} probabilities")
    return _checked_prior(values, classes)


def resolve_cost(cost: Any, classes: Labels) -> Array:
    """The K × K costs, cost[true, decided], from None (0/1), a dict with keys (true, decided), or an array.

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
    """What each decision costs on average, (n, K).

    >>> expected_cost([[.3335, .6665]], [[0, 1], [1, 0]]).round(4).tolist()
    [[0.6665, 0.3335]]
    """
    posterior = np.asarray(posterior, dtype=float)
    return (np.exp(posterior) if _is_log(posterior) else posterior) @ np.asarray(cost, dtype=float)


def decide(posterior: ArrayLike, cost: ArrayLike) -> NDArray[np.intp]:
    """The class index of least expected cost for each row; of equals the first.

    >>> decide([[.3335, .6665]], [[0, 1], [1, 0]]).tolist()
    [1]
    >>> decide([[.3335, .6665]], [[0, 3], [1, 0]]).tolist()    # missing class 0 costs three times as much
    [0]
    """
    posterior, cost = np.asarray(posterior, dtype=float), np.asarray(cost, dtype=float)
    right = np.eye(len(cost), dtype=bool)
    wrong = np.where(right, 0.0, cost).max(axis=1)
    saved = np.maximum(wrong - np.diag(cost), 0.0)
    one_price = (right | (cost == wrong[:, None])).all()  # whatever the error: least cost is argmax of P(c)·saved(c)
    if one_price and saved.min() == saved.max() > 0:
        return posterior.argmax(axis=1)
    logs = posterior if _is_log(posterior) else log_probability(posterior)
    if one_price:
        return (logs + log_probability(saved)).argmax(axis=1)
    excess = cost - cost.min(axis=1, keepdims=True)  # what cannot be avoided does not matter
    excess /= excess.max()
    expected = expected_cost(posterior, excess)
    decided = expected.argmin(axis=1)
    tiny = (expected < UNDERFLOW).sum(axis=1) > 1
    if tiny.any():
        by_decision = [np.logaddexp.reduce(logs[tiny] + column, axis=1) for column in log_probability(excess).T]
        decided[tiny] = np.argmin(by_decision, axis=0)
    return decided


def with_unsure(
    posterior: ArrayLike, decided: Any, unsure: Limit = None, *, reject_cost: Limit = None, cost: Any = None
) -> NDArray[np.bool_]:
    """Where better not to decide: the posterior is below `unsure`, or the expected cost above `reject_cost`.

    >>> with_unsure([[.3335, .6665], [.05, .95]], [1, 1], .9).tolist()
    [True, False]
    >>> with_unsure([[.3335, .6665], [.05, .95]], [1, 1], reject_cost=.2).tolist()
    [True, False]
    """
    posterior = np.asarray(posterior, dtype=float)
    rows, mask = np.arange(len(posterior)), np.zeros(len(posterior), dtype=bool)
    if unsure is not None:
        if not 0 <= unsure <= 1:
            raise InputError(f"unsure is {unsure!r}; it is a posterior probability. Give a number between 0 and 1.")
        mask |= (np.exp(posterior) if _is_log(posterior) else posterior)[rows, decided] < unsure
    if reject_cost is not None:
        if not 0 <= reject_cost < np.inf:
            raise CostError(f"reject_cost is {reject_cost!r}; saying 'unsure' must cost a finite number ≥ 0.")
        cost = 1.0 - np.eye(posterior.shape[1]) if cost is None else cost
        mask |= expected_cost(posterior, cost)[rows, decided] > reject_cost
    return mask


class Decision(NamedTuple):
    """One row's decision; the label is None where unsure."""

    label: Any
    posterior: float
    llr: float
    expected_cost: float


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """What was decided for each row, and how surely.

    >>> made = Decisions.of(np.log([[.05395, .01198]]), [.1, .9], ["m", "f"], resolve_cost(None, ["m", "f"]))
    >>> made.label.tolist(), made.posterior.round(4).tolist(), made.llr.round(3).tolist()
    (['f'], [0.6665], [-1.505])
    >>> made
    Decisions(1 row, 0 unsure)
    """

    label: NDArray[Any]  # (n,)  the decided class; None where unsure
    posterior: Array  # (n,)  of the decided class, also where unsure
    llr: Array  # (n,)  of the decided class over the most probable other one, nats
    expected_cost: Array  # (n,)  of the decision, also where unsure

    @classmethod
    def of(
        cls, log_likelihood: ArrayLike, prior: ArrayLike, classes: Labels, cost: ArrayLike, **unsure: Limit
    ) -> Decisions:
        """Decide by (n, K) log-likelihoods, K prior probabilities, K × K costs, and the limits of `with_unsure`."""
        log_prior = log_probability(prior)
        logs = log_posterior(log_likelihood, log_prior)
        decided, rows = decide(logs, cost), np.arange(len(logs))
        label = np.fromiter(map(plain, classes), dtype=object, count=len(classes))[decided]
        label[with_unsure(logs, decided, cost=cost, **unsure)] = None
        expected = expected_cost(logs, cost)[rows, decided]
        return cls(label, np.exp(logs[rows, decided]), llr_over_runner_up(log_likelihood, decided, log_prior), expected)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a column per field."""
        return frame_of({name: getattr(self, name) for name in Decision._fields})

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Any) -> Any:
        """One row gives a `Decision`; a slice, a mask or indices give `Decisions`."""
        fields = [getattr(self, name)[rows] for name in Decision._fields]
        return Decisions(*fields) if np.ndim(fields[1]) else Decision(fields[0], *map(float, fields[1:]))

    def __iter__(self) -> Iterator[Decision]:
        return map(Decision, self.label, self.posterior.tolist(), self.llr.tolist(), self.expected_cost.tolist())

    def __repr__(self) -> str:
        count = sum(label is None for label in self.label)
        return f"Decisions({len(self):,} row{'s' * (len(self) != 1)}, {count:,} unsure)"


def _named_prior(prior: Mapping[Any, Any], classes: Labels, weights: Array) -> Array:
    """Probabilities of the named classes; the others share what is left."""
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


def _position(label: Any, classes: Labels, what: str, error: type[ValueError]) -> int:
    """Where a class stands, by equality: 1, 1.0 and numpy's 1 are the same class."""
    names = [plain(name) for name in classes]
    if label in names:
        return names.index(label)
    near = difflib.get_close_matches(repr(plain(label)), map(repr, names), n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    known = shortlist([repr(name) for name in names], 20)
    raise error(f"{what} names class {plain(label)!r}, which the model does not have{hint}. Its classes are {known}.")


def _numbers(given: Any, shape: tuple[int, ...], error: type[ValueError], need: str) -> Array:
    try:
        numbers = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise error(f"{need}; got {reprlib.repr(given)}.") from None
    if numbers.shape != shape:
        raise error(f"{need}; got {reprlib.repr(given)}, of shape {numbers.shape}.")
    return numbers


def _is_log(posterior: Array) -> bool:
    """Whether these are logs: logs are never positive, and in every row some probability is."""
    return not posterior.max(initial=0.0) > 1e-9
