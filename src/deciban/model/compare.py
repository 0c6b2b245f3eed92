"""Comparison of several models on the same rows, with paired intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from deciban.errors import InputError
from deciban.evaluate.intervals import standard_error
from deciban.evaluate.report import Evaluation
from deciban.model.answers import Answers, LabelsLike, RowsLike
from deciban.statistics import Array


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
    evaluations = {name: model.evaluate(_columns(model, X), y, learnt=learnt, **options) for name, model in pairs}
    return Comparison(evaluations, level)


def _name(model: Answers) -> str:
    return f"{getattr(model, 'family_', model)!r}, {getattr(model, 'rule', '')}".removesuffix(", ")


def _columns(model: Answers, X: RowsLike) -> RowsLike:
    """Return the columns of a frame that a model uses."""
    wanted = list(getattr(model, "columns_", ()))
    given: Any = X
    return given[wanted] if wanted and hasattr(given, "columns") and list(given.columns) != wanted else X
