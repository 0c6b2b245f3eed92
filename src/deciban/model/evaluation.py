"""Evaluation of fits: k-fold cross-validation of the whole fit, comparison of models, and posterior predictive checks.

**Cross-validation.** For each fold, the sums without its rows, the choices that labels make, and the calibrator are
obtained from the other rows, by the functions that a fit uses; the fold is then scored. A calibrator that is
cross-fitted on leave-one-out scores of the full sums does not suffice: these contain the label of the judged row.

Where all rows of the model are given and can be judged, families, transforms, bins and blocks are chosen again, too,
and the other rows are summed under these choices. With more rows, the sums of the fold are subtracted from those of the
model; what can be chosen again under these sums is, and choices that decided what was summed stay (decision 0026).

**Posterior predictive checks** compare five statistics of each column, class by class, with those of samples of the
same size that are drawn from the model: standard deviation, skewness, kurtosis, share of zeros, share of repeated
values. A statistic far from those of the samples is a finding. If another family has a higher density in k-fold
cross-validation, in the same measure, the finding names it and the difference in decibans, with its interval.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 6.3, on posterior predictive checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban.errors import DecibanError, InputError
from deciban.evaluate.intervals import standard_error
from deciban.evaluate.report import Evaluation
from deciban.evidence.scores import convert
from deciban.families.abilities import HasCandidates, HasChoices, ability
from deciban.families.gaussian import Gaussian
from deciban.families.poisson import Poisson
from deciban.families.product import BlockRows, Product, blocks_of
from deciban.families.protocol import Family, Rows
from deciban.kernels.choice import with_one_thread
from deciban.model.answers import Answers, LabelsLike, RowsLike
from deciban.model.cross_fit import without_fold
from deciban.model.fit import Request, calibrated, calibration_method, fit_lesson, rechosen
from deciban.model.judge import JUDGED_ROWS, Split, stratified
from deciban.model.model import Lesson, Model, Reader, collect, encode
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.codes import Labels, place_labels
from deciban.read.tables import Table, TypedColumns, TypedTable
from deciban.statistics import Array, Members, Stats

# -- cross-validation of the whole fit ---------------------------------------------------------------------------------
ENOUGH = 0.5  # least share of the rows of the model, or of JUDGED_ROWS, by which choices are made again
Progress: TypeAlias = Callable[[float, str], None]


class Nested(NamedTuple):
    """Scores of judged rows."""

    rows: Array  # (m,) positions among the given rows
    scores: Array  # (m, K) calibrated log-likelihoods
    kept: list[str]  # choices that were made by labels of these rows, and not made again


class FoldScorer(Protocol):
    """Scores the test rows of a split by a model without the rows that are left out."""

    def scores(self, split: Split) -> Array:
        """Return calibrated log-likelihoods of the test rows, shape (t, K)."""


@with_one_thread
def nested_scores(
    predictor: Predictor,
    request: Request,
    lesson: Lesson,
    splits: Sequence[Split],
    raw: bool = False,
    progress: Progress = lambda completed, message: None,
) -> Nested:
    """Score the test rows of each split by a model of the other rows; `request` is what the model was fitted with."""
    model, members = predictor.model, lesson.members
    judged = np.concatenate([split.test for split in splits])
    method = _method(request, model, raw)
    request = replace(request, calibrate=method, rule=model.rule, classes=model.classes, key=None)
    as_fitted = model.chosen_on is not None and bool(np.isclose(model.chosen_on, model.weight, rtol=1e-12))
    complete = holds_all_rows(model, lesson)
    if complete and any(len(split.out) == len(members) for split in splits):
        raise InputError("no rows are left to judge by. Give at least two rows that are not copies or of one group.")
    if complete and method is not None and any(_classes_left(split, members) < 2 for split in splits):
        raise InputError(
            f"{len(members)} rows are too few to be judged: without those of a fold, rows of a single class are left. "
            "Give at least two rows of each of two classes, that are not copies or of one group."
        )
    kept: list[str] = []
    judge: FoldScorer
    if complete and as_fitted and len(members) <= JUDGED_ROWS:
        judge = Refits(model, request, lesson)
    else:
        few = len(np.union1d(judged, splits[-1].train)) < ENOUGH * min(model.weight, JUDGED_ROWS)
        choices = ability(model.asked, HasChoices)
        if choices is not None and (few or not as_fitted):
            kept = choices.chosen_by_labels()
        if few and method is not None:
            kept = [*kept, "calibration"]
        judge = Subtractions(model, request, lesson, as_fitted and not few, not few)
    scores = []
    for number, split in enumerate(splits):
        progress(number, f"fold {number + 1} of {len(splits)}")
        try:
            scores.append(judge.scores(split))
        except DecibanError as error:
            raise error.but(f"without fold {number + 1} of {len(splits)}: ", *error.args) from None
    order = np.argsort(judged, kind="stable")
    return Nested(judged[order], np.concatenate(scores)[order], kept)


def holds_all_rows(model: Model, lesson: Lesson) -> bool:
    """Whether a lesson has as many rows of each class as the model has learnt."""
    return bool(np.allclose(lesson.members.weights(), model.stats.rows, rtol=1e-9))


def _classes_left(split: Split, members: Members) -> int:
    """Return how many classes the rows have that a split does not leave out."""
    return len(np.unique(np.delete(members.codes, split.out)))


def _method(request: Request, model: Model, raw: bool) -> str | None:
    """Return how folds are calibrated: as the model is now; "auto" where a fit would choose the same."""
    if raw or model.calibration is None:
        return None
    found = model.calibration.method
    chosen = calibration_method(request, model.asked, (int(model.weight), len(model.reader.columns)))
    same = found == chosen or (chosen == "features" and found in ("length", "blocks"))  # without scales of words
    automatic = request.calibrate == "auto" and same
    return "auto" if automatic else found


class Refits:
    """Fits the rows that are not left out as the whole model was fitted; documents are counted once for all folds."""

    def __init__(self, model: Model, request: Request, lesson: Lesson) -> None:
        self.model, self.request, self.lesson = model, request, lesson
        keys = model.family.keys if isinstance(model.family, Product) else [()]
        self.documents = {
            key: (family, rows)
            for key, (family, rows) in zip(keys, blocks_of(model.family, lesson.rows))
            if ability(family, HasCandidates) is not None
        }
        for family, rows in self.documents.values():
            rows.count(family.tokens)

    def scores(self, split: Split) -> Array:
        """Fit the other rows and score the test rows."""
        members = self.lesson.members
        left = np.delete(np.arange(len(members)), split.out)
        codes, weight = members.codes, members.weight  # names of classes do not matter, their order does
        table, reader = self.lesson.batch.table, self.model.reader
        if reader.schema is not None:
            table, reader = _varying(table, left, reader)
        batch = Batch(table.take(left), codes[left], None if weight is None else weight[left])
        made = fit_lesson(
            self.request,
            batch,
            reader,
            lambda family: Lesson(batch, self._encoded(family, table, left), members.take(left)),
        )
        return made.scores(self._encoded(made.model.family, table, split.test, made.model.stats.family))

    def _encoded(self, family: Family[Any], table: Table, at: Array, stats: Stats | None = None) -> Rows:
        """Encode some rows; documents that are counted already are selected."""
        rows = encode(family, table.take(at), stats)
        if not isinstance(rows, BlockRows):
            return self.documents[()][1][at] if () in self.documents else rows
        parts = list(rows.parts)
        for place, key in enumerate(family.keys if isinstance(family, Product) else ()):
            if key in self.documents:
                parts[place] = self.documents[key][1][at]
        return replace(rows, parts=tuple(parts))


def _varying(table: Table, rows: Array, reader: Reader) -> tuple[Table, Reader]:
    """Leave out columns of numbers that are the same in all of these rows, as a schema of these rows would."""
    numbers = [j for j in range(table.shape[1]) if table.kind(j) == "number"]
    fixed = {j for j in numbers if _is_constant(np.asarray(table.column(j))[rows])}
    kept = [j for j in range(table.shape[1]) if j not in fixed]
    if not fixed or not kept or not isinstance(table, TypedTable):
        return table, reader
    columns = tuple(table.columns[j] for j in kept)
    held = TypedColumns(len(table), tuple(table.data.values[j] for j in kept))
    return TypedTable(held, columns, table.named, table.origin), reader.select(columns)


def _is_constant(values: Array) -> bool:
    seen = values[~np.isnan(values)]
    return not len(seen) or bool((seen == seen[0]).all())


class Subtractions:
    """Subtracts the rows that are left out from the sums of the model, and chooses and calibrates again if asked to."""

    def __init__(self, model: Model, request: Request, lesson: Lesson, choose: bool, calibrate: bool) -> None:
        self.model, self.request, self.lesson = model, request, lesson
        self.choose, self.calibrate = choose, calibrate

    def scores(self, split: Split) -> Array:
        """Score the test rows by the other sums."""
        model, rows, members = self.model, self.lesson.rows, self.lesson.members
        out = collect(model.family, rows[split.out], members.take(split.out), model.reader.columns)
        model = replace(model, stats=without_fold(model.family, model.stats, out), ledger=None)
        train = Lesson(self.lesson.batch, rows[split.train], members.take(split.train))
        if self.choose:
            model = model.rechoose(rechosen(model, train))
        method = self.request.calibrate
        if self.calibrate or method is None:
            named = model.calibration.method if method == "auto" and model.calibration is not None else method
            made = calibrated(replace(model, calibration=None), train, named, method == "auto")
        else:
            made = Predictor(model, model.density())
        return made.scores(rows[split.test])


# -- comparison of models ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Evaluations of several models on the same rows; prints as a table, least log loss first.

    The last column of the table is the mean difference of the log losses, row by row, from the best model, with its
    interval. The differences are paired, so the interval is narrower than those of the two losses. If the best model is
    no better than the prior, the first line says so.

    Attributes
    ----------
    evaluations : dict of {str: Evaluation}
        Evaluation of each model, by name.
    level : float
        Coverage of the intervals.
    """

    evaluations: dict[str, Evaluation]
    level: float = 0.95

    @property
    def ranking(self) -> list[str]:
        """The names of the models, least log loss first."""
        return sorted(self.evaluations, key=lambda name: self.evaluations[name].log_loss)

    def losses(self, name: str) -> Array:
        """Return the log loss of each row under a model.

        Parameters
        ----------
        name : str
            Name of the model.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log losses in nats.
        """
        evaluation = self.evaluations[name]
        return -evaluation.log_posterior[np.arange(len(evaluation)), evaluation.codes]

    def difference(self, name: str, against: str) -> tuple[float, float, float]:
        """Return the mean difference of the log losses of two models, with its interval.

        Parameters
        ----------
        name : str
            Name of one model.
        against : str
            Name of the model whose loss is subtracted.

        Returns
        -------
        tuple of (float, float, float)
            Mean, lower end and upper end; all infinite if the mean is.
        """
        a, b = self.losses(name), self.losses(against)
        each = np.where(a == b, 0.0, a - b)
        mean = float(each.mean())
        if not np.isfinite(mean):
            return mean, mean, mean
        reach = float(ndtri((1 + self.level) / 2)) * standard_error(each, self.evaluations[name].groups)
        return mean, mean - reach, mean + reach

    def to_dict(self) -> dict[str, Any]:
        """Return all figures of all models, and the differences from the best.

        Returns
        -------
        dict of {str: dict}
            Figures by name of the model; ``loss_above_best`` holds the result of `difference`.
        """
        best = self.ranking[0]
        return {
            name: {**self.evaluations[name].to_dict(), "loss_above_best": self.difference(name, best)}
            for name in self.ranking
        }

    def __str__(self) -> str:
        best, width = self.ranking[0], max(map(len, self.evaluations))
        lines = [f"{'':<{width}}   error         log loss, {self.level:.0%} interval    Cllr   log loss above the best"]
        for name in self.ranking:
            evaluation = self.evaluations[name]
            mean, low, high = self.difference(name, best)
            above = "best" if name == best else f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
            note = f"   chosen on these rows: {', '.join(evaluation.selected_on)}" if evaluation.selected_on else ""
            loss = evaluation.interval("log_loss", level=self.level)
            ends = f"{loss.estimate:.3f} [{loss.low:.3f}, {loss.high:.3f}]"
            cost = evaluation.figure("cllr")
            cllr = "–" if cost is None else f"{cost:.3f}"
            lines.append(f"{name:<{width}}  {evaluation.error_rate:6.1%}  {ends:>28}  {cllr:>6}   {above}{note}")
        verdict = self.evaluations[best].verdict()
        return "\n".join(lines if verdict is None else [verdict, *lines])

    def __repr__(self) -> str:
        return f"Comparison({len(self.evaluations)} models, best {self.ranking[0]!r})"


def compare(
    models: Mapping[str, Answers] | Iterable[Answers],
    X: RowsLike,
    y: LabelsLike,
    *,
    learnt: bool = True,
    level: float = 0.95,
    **options: Any,
) -> Comparison:
    """Evaluate several fitted models on the same rows.

    Another structure, rule, prior or choice of columns of one model needs no refit:
    ``clf.reestimate(structure="tied")``.

    Parameters
    ----------
    models : dict of {str: GenerativeClassifier} or iterable of GenerativeClassifier
        Fitted models. Without names, a model is called by its family and rule.
    X : array-like, frame, file or list of str
        Rows. From a frame, a model of fewer columns takes its own by name.
    y : array-like of shape (n_samples,)
        True classes.
    learnt : bool, default=True
        Whether the models have learnt these rows; they are then judged by k-fold cross-validation of each fit, all
        models in the same folds where their columns are the same.
    level : float, default=0.95
        Coverage of the intervals.
    **options : dict
        Further arguments of `GenerativeClassifier.evaluate`.

    Returns
    -------
    Comparison
        The evaluations and their paired differences; prints as a table.

    Raises
    ------
    InputError
        If there is no model, or two models have the same name.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> full = GenerativeClassifier(Gaussian()).fit(X, y)
    >>> print(compare({"full": full, "tied": full.reestimate(structure="tied")}, X, y))
           error         log loss, 95% interval    Cllr   log loss above the best
    tied    2.0%          0.061 [0.011, 0.111]   0.056   best
    full    3.3%          0.075 [0.018, 0.132]   0.068   +0.014 [−0.008, +0.036]
    """
    pairs = list(models.items()) if isinstance(models, Mapping) else [(_name(model), model) for model in models]
    if not pairs:
        raise InputError("there is no model to compare. Give a dict of name → fitted classifier.")
    if len(dict(pairs)) < len(pairs):
        raise InputError("two of the models have the same name. Give a dict of name → fitted classifier.")
    evaluations = {name: model.evaluate(_own_columns(model, X), y, learnt=learnt, **options) for name, model in pairs}
    return Comparison(evaluations, level)


def _name(model: Answers) -> str:
    return f"{getattr(model, 'family_', model)!r}, {getattr(model, 'rule', '')}".removesuffix(", ")


def _own_columns(model: Answers, X: RowsLike) -> RowsLike:
    """Return the columns of a frame that a model uses."""
    wanted = list(getattr(model, "columns_", ()))
    given: Any = X
    return given[wanted] if wanted and hasattr(given, "columns") and list(given.columns) != wanted else X


# -- posterior predictive checks ---------------------------------------------------------------------------------------
REPLICATES = 200
MOST_ROWS = 500  # of a class that are compared
LEAST_ROWS = 8  # of a class or column, to be compared
THRESHOLD = 4.5  # standard deviations of the samples
LEAST_VARIANCE = 1e-100  # of a constant column; its powers are not rounded to 0

Seed: TypeAlias = np.random.Generator | int | None


def _skewness(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return (z**3).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), LEAST_VARIANCE) ** 1.5


def _tails(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return np.log((z**4).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), LEAST_VARIANCE) ** 2 + 1e-12)


STATISTICS: dict[str, Callable[[Array], Array]] = {
    "spread": lambda x: np.log(x.std(axis=-1) + 1e-300),
    "skewness": _skewness,
    "tails": _tails,
    "zeros": lambda x: (x == 0).mean(axis=-1),
    "repeats": lambda x: (np.diff(np.sort(x, axis=-1), axis=-1) == 0).mean(axis=-1),
}
WORDS = {
    "spread": ("has a smaller spread", "has a larger spread"),
    "skewness": ("is more skewed to the left", "is more skewed to the right"),
    "tails": ("has lighter tails", "has heavier tails"),
    "zeros": ("has fewer zeros", "has more zeros"),
    "repeats": ("has fewer repeated values", "has more repeated values"),
}


@dataclass(frozen=True, eq=False)
class Finding:
    """A column that differs from samples of the model in one class."""

    column: str
    label: Any
    statistic: str
    surprise: float  # difference from the mean of the samples, in their standard deviations
    better: str | None  # a family with a higher density of rows that it was not fitted to
    decibans: float  # by how much higher, over all rows of the class
    interval: tuple[float, float] = (0.0, 0.0)  # of the difference, at 95 %

    @property
    def what(self) -> str:
        """How the column differs, in words."""
        return WORDS[self.statistic][self.surprise > 0]

    def __str__(self) -> str:
        text = f"column {self.column!r} in class {self.label!r} {self.what} than samples of the model"
        if self.better is None:
            return f"{text}. Consider Binned(), or leave the column out; calibration cannot correct this."
        low, high = (f"{end:,.0f}".replace("-", "−") for end in self.interval)
        return f"{text}; {self.better} fits {self.decibans:,.0f} [{low}, {high}] decibans better."


@dataclass(frozen=True, eq=False, repr=False)
class FitReport:
    """The columns that differ from samples of the model, largest difference first."""

    findings: tuple[Finding, ...]
    checked: int  # pairs of column and class

    def __str__(self) -> str:
        if not self.findings:
            return f"No differences from samples of the model ({self.checked} pairs of column and class checked)."
        return "\n".join(map(str, self.findings))

    def __repr__(self) -> str:
        return f"FitReport({len(self.findings)} findings in {self.checked} pairs of column and class)"


def check_fit(predictor: Predictor, table: Table, y: ArrayLike | Labels | None, random_state: Seed = 0) -> FitReport:
    """Compare numeric columns with samples of the model, class by class."""
    rng = np.random.default_rng(random_state)
    model = predictor.model
    codes = place_labels(y, len(table), model.classes)
    findings, checked = [], 0
    for k, label in enumerate(model.classes):
        rows = np.flatnonzero(codes == k)
        if len(rows) < LEAST_ROWS:
            continue
        if len(rows) > MOST_ROWS:
            rows = rng.choice(rows, MOST_ROWS, replace=False)
        drawn = predictor.density.sample(np.full(REPLICATES * len(rows), k), rng)
        for name, values, samples in _columns(model, table, rows, drawn):
            checked += 1
            seen = values[~np.isnan(values)]
            if len(seen) < LEAST_ROWS:
                continue
            found = _surprises(seen, samples.reshape(REPLICATES, -1)[:, : len(seen)])
            if found is not None:
                better, gain, ends = _alternative(seen, int((codes == k).sum()) / len(rows))
                findings.append(Finding(name, label, *found, better, gain, ends))
    return FitReport(tuple(sorted(findings, key=lambda f: -abs(f.surprise))), checked)


def _columns(model: Model, table: Table, rows: Array, drawn: Rows) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, values and samples of each numeric column."""
    parts = drawn.parts if isinstance(drawn, BlockRows) else (drawn,)
    for at, sampled in zip(model.positions, parts):
        if not isinstance(sampled, np.ndarray) or sampled.dtype.kind != "f":
            continue  # categories have no such statistics; sparse counts have too many columns
        raw = np.asarray(table.take(rows).pick(at), dtype=float)
        for j, place in enumerate(at):
            yield str(model.reader.columns[place]), raw[:, j], sampled[:, j]


def _surprises(values: Array, samples: Array) -> tuple[str, float] | None:
    """Return the statistic furthest from the samples and its distance; None if all are within the threshold."""
    worst = None
    for name, statistic in STATISTICS.items():
        expected, own = statistic(samples), float(statistic(values))
        surprise = (own - expected.mean()) / max(float(expected.std()), 1e-3)
        if abs(surprise) > THRESHOLD and (worst is None or abs(surprise) > abs(worst[1])):
            worst = name, float(surprise)
    return worst


def _alternative(values: Array, share: float) -> tuple[str | None, float, tuple[float, float]]:
    """Return a family with a higher density than a Gaussian in k-fold, the gain in decibans and its interval; or None.

    The gain is that of `share` times as many rows.
    """
    nothing = None, 0.0, (0.0, 0.0)
    if np.ptp(values) == 0:
        return nothing
    column = values[:, None]
    offered: dict[str, Array] = {}
    if (values > 0).all():
        logs = np.log(column)
        offered["log-Gaussian (take its logarithm)"] = _k_fold_density(Gaussian(), logs) - logs[:, 0]
    if (values >= 0).all() and (values == np.round(values)).all():
        offered["Poisson()"] = _k_fold_density(Poisson(), column)
    if not offered:
        return nothing
    best = max(offered, key=lambda name: float(offered[name].sum()))
    each = np.asarray(convert(offered[best] - _k_fold_density(Gaussian(), column), "decibans"))
    gain, error = float(each.sum()) * share, standard_error(each) * len(each) * share
    reach = float(ndtri(0.975)) * error
    return (best, gain, (gain - reach, gain + reach)) if gain > 10 else nothing


def _k_fold_density(family: Any, column: Array) -> Array:
    """Return the log density of each value under the family fitted to the values of other folds, shape (n,)."""
    fold, scores = stratified(np.zeros(len(column), dtype=np.intp)), np.empty(len(column))
    for k in range(fold.max() + 1):
        scores[fold == k] = family.fit(column[fold != k]).log_density(column[fold == k])
    return scores
