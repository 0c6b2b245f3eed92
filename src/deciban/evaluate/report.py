"""An evaluation in a dozen lines that a person wants to read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import DecibanError, ImpossibleRowWarning, InputError, NotAvailableError
from deciban.evaluate.checks import Codes, Flags, class_log_prior, class_scores
from deciban.evaluate.intervals import Figure, Interval, bootstrap
from deciban.evaluate.multiclass import brier_of, calibration_error_of, multiclass_calibration_loss, multiclass_cllr
from deciban.evaluate.two_class import cllr, dcf, eer, min_cllr, min_dcf
from deciban.evidence import decisions as decide
from deciban.evidence import scores as score
from deciban.evidence.explanation import count, decibans_text, plain
from deciban.evidence.scores import Array

MOST = 3  # confusions and classes that are named
FIGURES = {"error": "error_rate", "log loss": "log_loss", "Brier": "brier", "Cllr": "cllr", "EER": "eer"}


def summary(told: Evaluation) -> Iterator[str]:
    """Line by line: the size, each figure with what it means, the worst confusions, and warnings."""
    how = ", each scored as if it had not been learnt" if told.learnt else ""
    yield f"{count(len(told), 'row')}, {count(len(told.classes), 'class', 'classes')}{how}"
    wrong = int((told.decided != told.codes).sum())
    yield _line(told, "error", _percent(told.error_rate), f"{wrong:,} of {len(told):,}")
    if not np.array_equal(told.cost, 1 - np.eye(len(told.classes))):
        yield _line(told, "cost", f"{told.mean_cost:.3f}", "a row, at the given costs")
    yield _line(told, "log loss", f"{told.log_loss:.3f}", f"{told.log_loss_of_prior:.3f} for knowing only the prior")
    yield _line(told, "Brier", f"{told.brier:.3f}", "")
    yield _cllr_line(told)
    if len(told.classes) == 2:
        yield from _two_class_lines(told)
    else:
        yield from _class_lines(told)
    yield from _confusion_lines(told)
    if told.impossible:
        yield f"{count(told.impossible, 'row')} that no class could have produced: answered with the prior"
    if told.selected_on:
        yield f"selected on these very rows: {', '.join(told.selected_on)}; new rows may do worse"


def _cllr_line(told: Evaluation) -> str:
    cost = told.known("cllr")
    if cost is None:
        return _line(told, "Cllr", "–", "needs rows of every class")
    harm = "worse than saying nothing (1.00); " if cost > 1 else ""
    if cost == np.inf:
        return _line(told, "Cllr", "∞", f"{harm}a true class was held impossible")
    least, lost = told.min_cllr, told.calibration_loss
    remark = f"{harm}{least:.3f} if calibrated at its best, so at most {lost:.3f} is lost to calibration"
    return _line(told, "Cllr", f"{cost:.3f}", remark)


def _two_class_lines(told: Evaluation) -> Iterator[str]:
    if told.known("eer") is None:
        return
    ratio, is_second = told.scores()
    first, second = told.classes
    yield _line(told, "EER", _percent(told.eer), f"{second} against {first}")
    for_second, for_first = (decibans_text(_middle(ratio[side])) for side in (is_second, ~is_second))
    remark = f"typically for {second} where it is true; {for_first} where {first} is"
    yield _line(told, "evidence", f"{for_second} dban", remark)


def _class_lines(told: Evaluation) -> Iterator[str]:
    """The classes that are told from the rest least well."""
    judged = [(label, figures) for label, figures in told.per_class.items() if figures.cllr is not None]
    for label, figures in sorted(judged, key=lambda one: -one[1].cllr)[:MOST]:  # type: ignore[operator]
        remark = f"{label} against the rest; {figures.min_cllr:.3f} at best, EER {_percent(figures.eer or 0.0)}"
        yield _line(told, "  Cllr", f"{figures.cllr:.3f}", remark)


def _confusion_lines(told: Evaluation) -> Iterator[str]:
    off = told.confusion * (1 - np.eye(len(told.classes), dtype=int))
    worst = np.argsort(-off, axis=None, kind="stable")[:MOST]
    pairs = [divmod(int(at), len(told.classes)) for at in worst if off.flat[at]]
    for number, (true, decided) in enumerate(pairs):
        names = f"{told.classes[true]} taken for {told.classes[decided]}"
        share = f"{off[true, decided]:,} of {told.confusion[true].sum():,}"
        yield _line(told, "confused" if not number else "", "", f"{names} {share}")


def _line(told: Evaluation, name: str, value: str, remark: str) -> str:
    chosen = FIGURES.get(name, name) in told.selected_on or name in told.selected_on
    remark = "; ".join(part for part in (remark, "selected on" if chosen else "") if part)
    return f"{name:<9} {value:>10}     {remark}".rstrip()


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _middle(values: Array) -> float:
    """The median, and of an even number the lower middle one: the mean of −inf and +inf is nothing."""
    return float(np.sort(values)[(len(values) - 1) // 2])


# -- report ----------
# What `evaluate` answers: every figure about a set of judged rows, each computed when it is first asked for.
#
# Curves and intervals come from `scores`, which gives what their functions take: `roc(*evaluation.scores("spam"))`.


class ClassFigures(NamedTuple):
    """How well one class is told from the rest, weighed by the prior; None where it, or the rest, has no rows."""

    rows: int
    cllr: float | None
    min_cllr: float | None
    eer: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The judgement on rows whose classes are known, at a prior and a cost.

    `prior` is (K,), or (n, K) where each row has its own; `cost` is (K, K), cost[true, decided], 0/1 unless given.
    `learnt` says that the rows were learnt and each was scored without itself. `selected_on` names figures by which
    something was chosen on these very rows. Three people of 174, 160 and 170 cm:

    >>> heights = np.log([[.01198, .05395], [.05624, .00595], [.02854, .04194]])
    >>> told = Evaluation(heights, [1, 0, 0], ["f", "m"], [.5, .5])
    >>> told
    Evaluation(3 rows, 2 classes, error 0.333, log loss 0.402)
    >>> print(told)
    3 rows, 2 classes
    error         33.3 %     1 of 3
    log loss       0.402     0.693 for knowing only the prior
    Brier          0.132
    Cllr           0.507     0.000 if calibrated at its best, so at most 0.507 is lost to calibration
    EER            0.0 %     m against f
    evidence   +6.5 dban     typically for m where it is true; −9.8 where f is
    confused                 f taken for m 1 of 2
    """

    log_likelihood: Array  # (n, K)
    codes: Codes  # (n,)  the true class of each row
    classes: Sequence[Any]  # K labels
    prior: Any = "uniform"  # becomes (K,) or (n, K) probabilities
    cost: Any = None  # becomes (K, K)
    learnt: bool = False
    selected_on: Sequence[str] = ()

    def __post_init__(self) -> None:
        table, codes = class_scores(self.log_likelihood, self.codes)
        n, K = table.shape
        if len(self.classes) != K:
            raise InputError(f"{len(self.classes)} classes for {K} columns of log-likelihoods. Name each column.")
        classes = tuple(plain(label) for label in self.classes)
        by_row = np.ndim(self.prior) == 2 and not isinstance(self.prior, str)
        prior = np.asarray(self.prior, dtype=float) if by_row else decide.resolve_prior(self.prior, classes)
        class_log_prior(score.log_probability(np.maximum(prior, 0)), K, n)
        checked = (table, codes, classes, prior, decide.resolve_cost(self.cost, classes), tuple(self.selected_on))
        for name, value in zip(("log_likelihood", "codes", "classes", "prior", "cost", "selected_on"), checked):
            object.__setattr__(self, name, value)

    @cached_property
    def log_posterior(self) -> Array:
        """(n, K), at the prior."""
        return score.log_posterior(self.log_likelihood, score.log_probability(self.prior))

    @cached_property
    def decided(self) -> Codes:
        """The class number decided for each row, at the prior and the cost."""
        return decide.decide(self.log_posterior, self.cost)

    @cached_property
    def confusion(self) -> Codes:
        """(K, K) rows, by true and decided class."""
        K = len(self.classes)
        return np.bincount(self.codes * K + self.decided, minlength=K * K).reshape(K, K)

    @property
    def error_rate(self) -> float:
        return float((self.decided != self.codes).mean())

    @property
    def mean_cost(self) -> float:
        """What the decisions cost a row."""
        return float(self.cost[self.codes, self.decided].mean())

    @property
    def log_loss(self) -> float:
        """Nats a row."""
        return float(-self.log_posterior[np.arange(len(self)), self.codes].mean())

    @property
    def log_loss_of_prior(self) -> float:
        """What the log loss would be for somebody who knows the prior, and does not look."""
        logs = np.broadcast_to(score.log_probability(self.prior), self.log_likelihood.shape)
        return float(-logs[np.arange(len(self)), self.codes].mean())

    @property
    def brier(self) -> float:
        return brier_of(np.exp(self.log_posterior), self.codes)

    @property
    def expected_calibration_error(self) -> float:
        return calibration_error_of(self.log_posterior, self.codes)

    @property
    def impossible(self) -> int:
        """Rows that no class could have produced."""
        return int(np.isneginf(self.log_likelihood.max(axis=1)).sum())

    @cached_property
    def cllr(self) -> float:
        """The cost of the evidence at even odds, in bits over log2 K: 1 says nothing."""
        with _quietly():
            return multiclass_cllr(self.log_likelihood, self.codes)

    @cached_property
    def min_cllr(self) -> float:
        """The Cllr if calibrated at its best: monotonely for two classes, else by a scale and offsets."""
        if len(self.classes) == 2:
            return min_cllr(*self.scores())
        with _quietly():
            lost = multiclass_calibration_loss(self.log_likelihood, self.codes)
        return self.cllr - lost if np.isfinite(lost) else self.cllr

    @property
    def calibration_loss(self) -> float:
        """What a better scale of the same evidence would save."""
        return self.cllr - self.min_cllr if np.isfinite(self.cllr) else self.cllr

    @property
    def eer(self) -> float:
        """Two classes: the rate at which both errors are equally frequent."""
        return eer(*self.scores())

    @property
    def dcf(self) -> float:
        """Two classes: what deciding costs, at the prior and the cost, relative to not looking."""
        return dcf(*self.scores(), *self._application())

    @property
    def min_dcf(self) -> float:
        """Two classes: the same at the best threshold."""
        return min_dcf(*self.scores(), *self._application())

    @cached_property
    def per_class(self) -> dict[Any, ClassFigures]:
        """Each class against the rest."""
        return {label: self._figures(label) for label in self.classes}

    def scores(self, over: Any = None) -> tuple[Array, Flags]:
        """The llr of a class against the rest, and the rows that are of it; of two classes, the second by default."""
        if over is None and len(self.classes) != 2:
            raise NotAvailableError(
                f"one llr needs two classes, and there are {len(self.classes)}. Name the class that stands against the "
                "rest: scores(over=…), or per_class."
            )
        if over is not None and over not in self.classes:
            raise InputError(f"class {over!r} is unknown. The classes are {', '.join(map(repr, self.classes))}.")
        at = 1 if over is None else self.classes.index(over)
        with _quietly():
            ratio = score.llr(self.log_likelihood, at, log_prior=score.log_probability(self.prior))
        return ratio, self.codes == at

    def interval(self, figure: Figure, over: Any = None, **options: Any) -> Interval:
        """The bootstrap interval of any figure of (llr, is_h1)."""
        return bootstrap(figure, *self.scores(over), **options)

    def to_dict(self) -> dict[str, Any]:
        """Every figure as plain values; None where a figure does not exist for these rows."""
        common = ("error_rate", "mean_cost", "log_loss", "log_loss_of_prior", "brier", "expected_calibration_error")
        evidence = (
            "cllr",
            "min_cllr",
            "calibration_loss",
            *(("eer", "dcf", "min_dcf") if len(self.classes) == 2 else ()),
        )
        return {
            "rows": len(self),
            "classes": list(self.classes),
            "prior": np.atleast_2d(self.prior).mean(axis=0).tolist(),
            "cost": self.cost.tolist(),
            "learnt": self.learnt,
            "selected_on": list(self.selected_on),
            **{name: getattr(self, name) for name in common},
            **{name: self.known(name) for name in evidence},
            "impossible": self.impossible,
            "confusion": self.confusion.tolist(),
            "per_class": [{"class": label, **figures._asdict()} for label, figures in self.per_class.items()],
        }

    def known(self, name: str) -> float | None:
        """A figure by name, or None where these rows do not determine it."""
        try:
            return getattr(self, name)
        except DecibanError:
            return None

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        return "\n".join(summary(self))

    def __repr__(self) -> str:
        size = f"{count(len(self), 'row')}, {count(len(self.classes), 'class', 'classes')}"
        return f"Evaluation({size}, error {self.error_rate:.3g}, log loss {self.log_loss:.3g})"

    def _figures(self, label: Any) -> ClassFigures:
        rows = int((self.codes == self.classes.index(label)).sum())
        if len(self.classes) == 1 or rows in (0, len(self)):
            return ClassFigures(rows, None, None, None)
        pair = self.scores(label)
        return ClassFigures(rows, cllr(*pair), min_cllr(*pair), eer(*pair))

    def _application(self) -> tuple[float, float, float]:
        """The prior of the second class (the mean of the rows' own), and what errors cost beyond right decisions."""
        (c_pass, c_fa), (c_miss, c_hit) = self.cost
        return np.atleast_2d(self.prior).mean(axis=0)[1], c_miss - c_hit, c_fa - c_pass


@contextmanager
def _quietly() -> Iterator[None]:
    """Impossible rows are warned of once, by the posterior, and counted in the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleRowWarning)
        yield
