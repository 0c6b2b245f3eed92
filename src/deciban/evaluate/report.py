"""The evaluation of rows whose classes are known: every figure of them, and a summary as text.

Figures are computed when they are first read. Curves and intervals are computed from `scores`, which gives the
arguments of their functions: `roc(*evaluation.scores("spam"))`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import DecibanError, ImpossibleRowWarning, InputError, NotAvailableError
from deciban.evaluate.checks import Codes, Flags, class_log_prior, class_scores
from deciban.evaluate.figures import (
    brier_of,
    calibration_error_of,
    cllr,
    dcf,
    eer,
    eer_of_checked,
    min_cllr,
    min_dcf,
    multiclass_calibration_loss,
    multiclass_cllr,
)
from deciban.evaluate.intervals import (
    Figure,
    Interval,
    bootstrap,
    mean_interval,
    share_interval,
    standard_error,
)
from deciban.evidence.decisions import decide, resolve_cost, resolve_prior
from deciban.evidence.explanation import count, decibans_text, plain
from deciban.evidence.scores import Array, llr, log_posterior, log_probability
from deciban.terminal import one_line

MAX_LISTED = 3  # confusions, and classes against the rest, in the summary
MAX_CLASSES = 5  # classes in the first line of the summary
LEVEL = 0.95  # of the intervals in the summary
REPEATS = 200  # of the bootstrap, for figures that are not means over rows
BOOTSTRAPPED = 20_000  # rows up to which the interval of the EER is bootstrapped
NO_BETTER = 1.64  # a gain in log loss over the prior of fewer standard errors may be chance
FIGURES = {"error": "error_rate", "log loss": "log_loss", "Brier": "brier", "Cllr": "cllr", "EER": "eer"}
COMMON = ("error_rate", "mean_cost", "log_loss", "log_loss_of_prior", "brier", "expected_calibration_error")
OF_EVIDENCE = ("cllr", "min_cllr", "calibration_loss")
OF_TWO_CLASSES = ("eer", "dcf", "min_dcf")
WITH_INTERVALS = ("error_rate", "mean_cost", "log_loss", "brier", "cllr", "eer")


class ClassFigures(NamedTuple):
    """Figures of one class against the rest, weighted by the prior; None if there are rows of one side only."""

    rows: int
    cllr: float | None
    min_cllr: float | None
    eer: float | None


class KeptFigures:
    """Figures of one evaluation that are read several times; mutable: each is computed at its first use and kept."""

    def __init__(self) -> None:
        self._by_name: dict[str, Any] = {}

    def of(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the figure of this name, computed unless it is kept."""
        if name not in self._by_name:
            self._by_name[name] = compute()
        return self._by_name[name]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Figures of log-likelihoods of rows whose classes are known, at a prior and a cost.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    classes : sequence of K labels
        The classes.
    prior : "uniform", mapping, or array-like of shape (K,) or (n, K), default="uniform"
        Class prior; each row may have its own. It becomes an array.
    cost : None, mapping, or array-like of shape (K, K), default=None
        Costs, cost[true, decided]; None is 0/1. They become an array.
    learnt : bool, default=False
        Whether the rows were learnt, and each was scored by a model without it.
    selected_on : sequence of str, default=()
        Names of choices that were made by means of these rows, such as "calibration", or of the figures used for them.
    groups : array-like of int of shape (n,), optional
        Rows of the same group depend on each other; intervals take it into account.

    Examples
    --------
    Three people of 174, 160 and 170 cm:

    >>> heights = np.log([[.01198, .05395], [.05624, .00595], [.02854, .04194]])
    >>> evaluation = Evaluation(heights, [1, 0, 0], ["f", "m"], [.5, .5])
    >>> evaluation
    Evaluation(3 rows, 2 classes, error 0.333, log loss 0.402)
    >>> print(evaluation)
    This model is no better than the prior alone, as far as 3 rows show: log losses of 0.402 and ...
    3 rows, 2 classes: "f" (2 rows), "m" (1 row)
    error         33.3 %     [6.1, 79.2]     1 of 3 rows; in brackets, 95 % intervals
    log loss       0.402     [0.000, 0.897]  0.693 for the prior alone
    Brier          0.132     [0.000, 0.350]
    Cllr           0.507     minCllr 0.000, calibration loss 0.507
    EER            0.0 %     [0.0, 79.3]     "m" against "f"
    evidence                 typical: +6.5 dban for true "m" rows, −9.8 dban for true "f" rows
    confused                 1 of 2 "f" rows were predicted "m"
    """

    log_likelihood: Array
    codes: Codes
    classes: Sequence[Any]
    prior: Any = "uniform"
    cost: Any = None
    learnt: bool = False
    selected_on: Sequence[str] = ()
    groups: Codes | None = None
    kept: KeptFigures = field(default_factory=KeptFigures, init=False)

    def __post_init__(self) -> None:
        table, codes = class_scores(self.log_likelihood, self.codes)
        n, K = table.shape
        if len(self.classes) != K:
            raise InputError(f"{len(self.classes)} classes for {K} columns of log-likelihoods. Name each column.")
        classes = tuple(plain(label) for label in self.classes)
        by_row = np.ndim(self.prior) == 2 and not isinstance(self.prior, str)
        prior = np.asarray(self.prior, dtype=float) if by_row else resolve_prior(self.prior, classes)
        class_log_prior(log_probability(np.maximum(prior, 0)), K, n)
        checked = (table, codes, classes, prior, resolve_cost(self.cost, classes), tuple(self.selected_on))
        for name, value in zip(("log_likelihood", "codes", "classes", "prior", "cost", "selected_on"), checked):
            object.__setattr__(self, name, value)

    @property
    def log_posterior(self) -> Array:
        """Log posterior probabilities at the prior, (n, K)."""
        return self.kept.of("log_posterior", lambda: log_posterior(self.log_likelihood, log_probability(self.prior)))

    @property
    def decided(self) -> Codes:
        """Number of the class decided for each row at the prior and the cost, (n,)."""
        return self.kept.of("decided", lambda: decide(self.log_posterior, self.cost))

    @property
    def confusion(self) -> Codes:
        """Number of rows by true and decided class, (K, K)."""
        K = len(self.classes)
        return np.bincount(self.codes * K + self.decided, minlength=K * K).reshape(K, K)

    @property
    def error_rate(self) -> float:
        """Share of rows decided wrongly."""
        return float((self.decided != self.codes).mean())

    @property
    def mean_cost(self) -> float:
        """Mean cost of the decisions."""
        return float(self.cost[self.codes, self.decided].mean())

    @property
    def log_loss(self) -> float:
        """Log loss at the prior, in nats per row."""
        return float(-self.log_posterior[np.arange(len(self)), self.codes].mean())

    @property
    def log_loss_of_prior(self) -> float:
        """Log loss of the prior alone, in nats per row."""
        logs = np.broadcast_to(log_probability(self.prior), self.log_likelihood.shape)
        return float(-logs[np.arange(len(self)), self.codes].mean())

    @property
    def brier(self) -> float:
        """Brier score at the prior."""
        return brier_of(np.exp(self.log_posterior), self.codes)

    @property
    def expected_calibration_error(self) -> float:
        """Expected calibration error at the prior."""
        return calibration_error_of(self.log_posterior, self.codes)

    @property
    def impossible(self) -> int:
        """Number of rows with likelihood 0 under every class."""
        return int(np.isneginf(self.log_likelihood.max(axis=1)).sum())

    @property
    def cllr(self) -> float:
        """Cllr at equal priors, relative to log2 K bits; 1 for log-likelihoods that are all equal."""
        with _without_warnings():
            return self.kept.of("cllr", lambda: multiclass_cllr(self.log_likelihood, self.codes))

    @property
    def min_cllr(self) -> float:
        """Cllr after the best calibration on these rows: monotone for two classes, else by a scale and offsets."""
        return self.kept.of("min_cllr", self._min_cllr)

    def _min_cllr(self) -> float:
        if len(self.classes) == 2:
            return min_cllr(*self.scores())
        with _without_warnings():
            lost = multiclass_calibration_loss(self.log_likelihood, self.codes)
        return self.cllr - lost if np.isfinite(lost) else self.cllr

    @property
    def calibration_loss(self) -> float:
        """Cllr − minCllr; inf if the Cllr is."""
        return self.cllr - self.min_cllr if np.isfinite(self.cllr) else self.cllr

    @property
    def eer(self) -> float:
        """Equal error rate, for two classes."""
        return eer(*self.scores())

    @property
    def dcf(self) -> float:
        """Normalised detection cost at the prior and the cost, for two classes."""
        return float(dcf(*self.scores(), *self._application()))

    @property
    def min_dcf(self) -> float:
        """Normalised detection cost at the best threshold, for two classes."""
        return float(min_dcf(*self.scores(), *self._application()))

    @property
    def per_class(self) -> dict[Any, ClassFigures]:
        """Figures of each class against the rest, by label."""
        return self.kept.of("per_class", lambda: {label: self._figures(label) for label in self.classes})

    def scores(self, over: Hashable | None = None) -> tuple[Array, Flags]:
        """Compute the llr of one class against the rest.

        Parameters
        ----------
        over : label, optional
            The class; of two classes, the second if not given.

        Returns
        -------
        llr : ndarray of shape (n,)
            Evidence for the class, in nats; the rest is weighted by the prior.
        is_h1 : ndarray of bool of shape (n,)
            Whether each row is of that class.
        """
        if over is None and len(self.classes) != 2:
            raise NotAvailableError(
                f"one llr needs two classes, and there are {len(self.classes)}. Name the class that stands against the "
                "rest: scores(over=…), or per_class."
            )
        if over is not None and over not in self.classes:
            raise InputError(f"class {over!r} is unknown. The classes are {', '.join(map(repr, self.classes))}.")
        at = 1 if over is None else self.classes.index(over)
        with _without_warnings():
            ratio = llr(self.log_likelihood, at, log_prior=log_probability(self.prior))
        return ratio, self.codes == at

    def interval(self, figure: Figure | str, over: Hashable | None = None, **options: Any) -> Interval:
        """Compute the interval of a figure: its variation over other rows.

        Rows of the same group are taken to depend on each other. What varies because other rows were learnt is not
        included.

        Parameters
        ----------
        figure : str or callable
            One of "error_rate", "mean_cost", "log_loss", "brier", "cllr" and "eer"; or a function of (llr, is_h1), such
            as `cllr`, whose interval is computed by `bootstrap`.
        over : label, optional
            For a function, the class; of two classes, the second if not given.
        **options : dict
            ``level``, and for functions the other options of `bootstrap`.

        Returns
        -------
        Interval
            The figure and its interval.

        Examples
        --------
        >>> evaluation = Evaluation([[0.0, 2.0], [0.0, -1.0]] * 40, [1, 0] * 39 + [0, 1], ["f", "m"])
        >>> print(evaluation.interval("log_loss"))
        0.258 [0.2, 0.315]
        """
        if not isinstance(figure, str):
            return bootstrap(figure, *self.scores(over), **options)
        if figure not in WITH_INTERVALS:
            raise InputError(f"interval({figure!r}): the figure must be one of {', '.join(WITH_INTERVALS)}.")
        if figure == "eer":
            if len(self) <= BOOTSTRAPPED:
                found = bootstrap(eer_of_checked, *self.scores(), **{"repeats": REPEATS, **options})
                if found.low < found.high:
                    return found
            rows = np.bincount(self.codes, minlength=2).min()  # as a share of the smaller class, which is wider
            return share_interval(np.repeat(self.eer, rows), None, float(options.get("level", LEVEL)))
        level, each = float(options.get("level", LEVEL)), self._row_values(figure)
        if figure == "error_rate":
            return share_interval(each, self.groups, level)
        if figure != "cllr":
            return mean_interval(each, self.groups, level)
        return mean_interval(each, self.groups, level, self.codes)  # each class has the same weight

    def _row_values(self, figure: str) -> Array:
        """Return the value of each row whose mean is the figure, shape (n,); for the Cllr, the mean of class means."""
        own = np.arange(len(self)), self.codes
        if figure == "error_rate":
            return (self.decided != self.codes).astype(float)
        if figure == "mean_cost":
            return self.cost[self.codes, self.decided]
        if figure == "log_loss":
            return -self.log_posterior[own]
        if figure == "brier":
            away = np.exp(self.log_posterior)
            away[own] -= 1.0
            return np.square(away).sum(axis=1) / (2 if len(self.classes) == 2 else 1)
        K = len(self.classes)
        with _without_warnings():
            return -log_posterior(self.log_likelihood, np.full(K, -np.log(K)))[own] / np.log(max(K, 2))

    def verdict(self) -> str | None:
        """Describe a failure: the scores are no better than the prior, as far as these rows show.

        Returns
        -------
        str or None
            A sentence; None if the log loss is below that of the prior by more than chance.
        """
        if len(self.classes) < 2:
            return None
        own = np.arange(len(self)), self.codes
        prior = np.broadcast_to(log_probability(self.prior), self.log_likelihood.shape)[own]
        with np.errstate(invalid="ignore"):
            gain = np.where(np.isneginf(prior), 0.0, self.log_posterior[own] - prior)
        impossible = int(np.isneginf(gain).sum())
        if impossible:
            return (
                f"This model gives {count(impossible, 'row')} probability zero under the true class, so its log loss "
                "is infinite. Fit it with --rule mean."
            )
        if gain.mean() > NO_BETTER * standard_error(gain, self.groups):
            return None
        alone, its = ("class proportions", "theirs") if self.learnt else ("prior", "that of the prior")
        if gain.mean() > 0:
            return (
                f"This model is no better than the {alone} alone, as far as {count(len(self), 'row')} show: log losses "
                f"of {self.log_loss:.3f} and {self.log_loss_of_prior:.3f} may differ by chance."
            )
        figures = f"its log loss is {self.log_loss:.3f}, {its} {self.log_loss_of_prior:.3f}"
        return f"This model is no better than the {alone} alone: {figures}."

    def to_dict(self) -> dict[str, Any]:
        """Give every figure as plain values.

        Returns
        -------
        dict
            Figures by name; None for a figure that these rows do not determine.
        """
        evidence = OF_EVIDENCE + (OF_TWO_CLASSES if len(self.classes) == 2 else ())
        return {
            "rows": len(self),
            "classes": list(self.classes),
            "prior": np.atleast_2d(self.prior).mean(axis=0).tolist(),
            "cost": self.cost.tolist(),
            "learnt": self.learnt,
            "selected_on": list(self.selected_on),
            **{name: getattr(self, name) for name in COMMON},
            **{name: self.figure(name) for name in evidence},
            "intervals": {name: found for name in WITH_INTERVALS if (found := self.ends(name)) is not None},
            "better_than_prior": self.verdict() is None,
            "impossible": self.impossible,
            "confusion": self.confusion.tolist(),
            "per_class": [{"class": label, **figures._asdict()} for label, figures in self.per_class.items()],
        }

    def figure(self, name: str) -> float | None:
        """Give a figure by its name.

        Parameters
        ----------
        name : str
            Name of a property, such as "cllr".

        Returns
        -------
        float or None
            The figure; None if these rows do not determine it.
        """
        try:
            return getattr(self, name)
        except DecibanError:
            return None

    def ends(self, name: str) -> list[float] | None:
        """Give the ends of the interval of a figure.

        Parameters
        ----------
        name : str
            One of the names that `interval` takes.

        Returns
        -------
        list of two floats, or None
            The ends; None if these rows do not determine them, or if one is infinite.

        Examples
        --------
        >>> evaluation = Evaluation([[0.0, 2.0], [0.0, -1.0]] * 40, [1, 0] * 39 + [0, 1], ["f", "m"])
        >>> [round(end, 3) for end in evaluation.ends("error_rate")]
        [0.007, 0.087]
        """
        try:
            found = self.interval(name)
        except DecibanError:
            return None
        ends = [float(found.low), float(found.high)]
        return ends if np.isfinite(ends).all() else None

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        return "\n".join(_summary(self))

    def __repr__(self) -> str:
        size = f"{count(len(self), 'row')}, {count(len(self.classes), 'class', 'classes')}"
        return f"Evaluation({size}, error {self.error_rate:.3g}, log loss {self.log_loss:.3g})"

    def _figures(self, label: Hashable) -> ClassFigures:
        rows = int((self.codes == self.classes.index(label)).sum())
        if len(self.classes) == 1 or rows in (0, len(self)):
            return ClassFigures(rows, None, None, None)
        pair = self.scores(label)
        return ClassFigures(rows, cllr(*pair), min_cllr(*pair), eer(*pair))

    def _application(self) -> tuple[float, float, float]:
        """Prior of the second class (its mean over the rows), and costs of a miss and of a false alarm."""
        (c_pass, c_fa), (c_miss, c_hit) = self.cost
        return np.atleast_2d(self.prior).mean(axis=0)[1], c_miss - c_hit, c_fa - c_pass


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings of impossible rows: the posterior warns once, and the summary counts the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleRowWarning)
        yield


# The summary
def _summary(evaluation: Evaluation) -> Iterator[str]:
    """The lines of the summary: rows and classes, each figure with its meaning, the most frequent confusions, notes."""
    n, classes = len(evaluation), evaluation.classes
    how = ", each scored as if it had not been learnt (k-fold);" if evaluation.learnt else ","
    verdict = evaluation.verdict()
    if verdict is not None:
        yield verdict
    yield f"{count(n, 'row')}{how} {_classes_text(evaluation)}"
    wrong = int((evaluation.decided != evaluation.codes).sum())
    remark = f"{wrong:,} of {count(n, 'row')}; in brackets, {LEVEL:.0%} intervals".replace("%", " %")
    yield _line(evaluation, "error", _percent(evaluation.error_rate), remark)
    if not np.array_equal(evaluation.cost, 1 - np.eye(len(classes))):
        yield _line(evaluation, "cost", f"{evaluation.mean_cost:.3f}", "a row, at the given costs")
    of_prior = f"{evaluation.log_loss_of_prior:z.3f} for the prior alone"
    yield _line(evaluation, "log loss", f"{evaluation.log_loss:z.3f}", of_prior)
    yield _line(evaluation, "Brier", f"{evaluation.brier:.3f}", "")
    yield _cllr_line(evaluation)
    yield from _two_class_lines(evaluation) if len(classes) == 2 else _class_lines(evaluation)
    yield from _confusion_lines(evaluation)
    if evaluation.impossible:
        yield f"{count(evaluation.impossible, 'row')} with probability zero under every class: decided by the prior"
    if evaluation.selected_on:
        yield f"chosen on these rows: {', '.join(evaluation.selected_on)}"


def _classes_text(evaluation: Evaluation) -> str:
    rows = evaluation.confusion.sum(axis=1)
    named = [f'"{one_line(label)}" ({count(int(n), "row")})' for label, n in zip(evaluation.classes, rows)][
        :MAX_CLASSES
    ]
    left = len(evaluation.classes) - MAX_CLASSES
    more = f" and {left:,} more" if left > 0 else ""
    return f"{count(len(evaluation.classes), 'class', 'classes')}: {', '.join(named)}{more}"


def _cllr_line(evaluation: Evaluation) -> str:
    cost = evaluation.figure("cllr")
    if cost is None:
        return _line(evaluation, "Cllr", "–", "needs rows of every class")
    harm = "worse than no evidence (1.000); " if cost > 1 else ""
    if cost == np.inf:
        return _line(evaluation, "Cllr", "∞", f"{harm}a true class has likelihood zero")
    loss = f"calibration loss {evaluation.calibration_loss:.3f}"
    return _line(evaluation, "Cllr", f"{cost:.3f}", f"{harm}minCllr {evaluation.min_cllr:.3f}, {loss}")


def _two_class_lines(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.figure("eer") is None:
        return
    ratio, is_second = evaluation.scores()
    first, second = map(one_line, evaluation.classes)
    yield _line(evaluation, "EER", _percent(evaluation.eer), f'"{second}" against "{first}"')
    of_second, of_first = (decibans_text(_middle(ratio[side])) for side in (is_second, ~is_second))
    typical = f'typical: {of_second} dban for true "{second}" rows, {of_first} dban for true "{first}" rows'
    yield _line(evaluation, "evidence", "", typical)


def _class_lines(evaluation: Evaluation) -> Iterator[str]:
    """The classes of largest Cllr against the rest."""
    judged = [(f.cllr, label, f) for label, f in evaluation.per_class.items() if f.cllr is not None]
    for cost, label, figures in sorted(judged, key=lambda one: -one[0])[:MAX_LISTED]:
        best = f"{figures.min_cllr:.3f} with the best monotone calibration, EER {_percent(figures.eer or 0.0)}"
        yield _line(evaluation, "  Cllr", f"{cost:.3f}", f'"{one_line(label)}" against the rest; {best}')


def _confusion_lines(evaluation: Evaluation) -> Iterator[str]:
    off = evaluation.confusion * (1 - np.eye(len(evaluation.classes), dtype=int))
    worst = np.argsort(-off, axis=None, kind="stable")[:MAX_LISTED]
    pairs = [divmod(int(at), len(evaluation.classes)) for at in worst if off.flat[at]]
    for number, (true, decided) in enumerate(pairs):
        share = f"{off[true, decided]:,} of {evaluation.confusion[true].sum():,}"
        named, other = (one_line(evaluation.classes[k]) for k in (true, decided))
        text = f'{share} "{named}" rows were predicted "{other}"'
        yield _line(evaluation, "confused" if not number else "", "", text)


def _line(evaluation: Evaluation, name: str, value: str, remark: str) -> str:
    chosen = FIGURES.get(name, name) in evaluation.selected_on or name in evaluation.selected_on
    remark = "; ".join(part for part in (remark, "chosen by it" if chosen else "") if part)
    figure = FIGURES.get(name, "mean_cost" if name == "cost" else "")
    ends = evaluation.ends(figure) if figure and value != "–" else None
    digits = ".3f"
    if ends is not None and value.endswith("%"):
        ends, digits = [100 * end for end in ends], ".1f"
    interval = "" if ends is None else f"[{ends[0]:{digits}}, {ends[1]:{digits}}]"
    remark = f"{interval:<15} {remark}" if interval else remark
    return f"{name:<9} {value:>10}     {remark}".rstrip()


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _middle(values: Array) -> float:
    """The median; of an even number of values the lower middle one, since the mean of −inf and +inf is NaN."""
    return float(np.sort(values)[(len(values) - 1) // 2])
