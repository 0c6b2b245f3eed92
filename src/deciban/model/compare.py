"""Several models side by side on the same rows, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from deciban.errors import InputError
from deciban.evaluate.report import Evaluation
from deciban.statistics import Array


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Evaluations of several models on the same rows; prints as a table, best log loss first.

    The last column is how much more each loses than the best, row by row, with its interval: a difference is paired, so
    it is known better than either loss.
    """

    evaluations: dict[str, Evaluation]
    level: float = 0.95

    @property
    def ranking(self) -> list[str]:
        """Names by log loss, least first."""
        return sorted(self.evaluations, key=lambda name: self.evaluations[name].log_loss)

    def losses(self, name: str) -> Array:
        """(n,) log loss of each row under a model."""
        told = self.evaluations[name]
        return -told.log_posterior[np.arange(len(told)), told.codes]

    def difference(self, name: str, against: str) -> tuple[float, float, float]:
        """Mean difference of the log losses, and the ends of its interval; NaN-free also where a loss is infinite."""
        a, b = self.losses(name), self.losses(against)
        each = np.where(a == b, 0.0, a - b)
        mean = float(each.mean())
        if not np.isfinite(mean):
            return mean, mean, mean
        reach = float(ndtri((1 + self.level) / 2) * each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.inf
        return mean, mean - reach, mean + reach

    def to_dict(self) -> dict[str, Any]:
        """Every figure of every model, and the differences from the best."""
        best = self.ranking[0]
        return {
            name: {**self.evaluations[name].to_dict(), "loss_above_best": self.difference(name, best)}
            for name in self.ranking
        }

    def __str__(self) -> str:
        best, width = self.ranking[0], max(map(len, self.evaluations))
        lines = [f"{'':<{width}}   error   log loss    Cllr   log loss above the best, {self.level:.0%} interval"]
        for name in self.ranking:
            told = self.evaluations[name]
            mean, low, high = self.difference(name, best)
            above = "best" if name == best else f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
            note = f"   selected on: {', '.join(told.selected_on)}" if told.selected_on else ""
            lines.append(
                f"{name:<{width}}  {told.error_rate:6.1%}  {told.log_loss:9.3f}  {told.cllr:6.3f}   {above}{note}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Comparison({len(self.evaluations)} models, best {self.ranking[0]!r})"


def compare(models: Any, X: Any, y: Any, *, learnt: bool = True, level: float = 0.95, **options: Any) -> Comparison:
    """Evaluate several fitted models on the same rows; `options` are those of `evaluate`.

    Structures, rules, priors and columns of one model need no refitting: `clf.reestimate(structure="tied")`. A model of
    fewer columns takes them from a frame by name.

    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> full = GenerativeClassifier(Gaussian()).fit(X, y)
    >>> print(compare({"full": full, "tied": full.reestimate(structure="tied")}, X, y))
           error   log loss    Cllr   log loss above the best, 95% interval
    tied    2.0%      0.054   0.049   best
    full    2.7%      0.056   0.050   +0.001 [−0.014, +0.017]
    """
    pairs = list(models.items()) if isinstance(models, Mapping) else [(_name(model), model) for model in models]
    if not pairs:
        raise InputError("there is no model to compare. Give a dict of name → fitted classifier.")
    if len(dict(pairs)) < len(pairs):
        raise InputError("two of the models have the same name. Give a dict of name → model.")
    told = {name: model.evaluate(_columns(model, X), y, learnt=learnt, **options) for name, model in pairs}
    return Comparison(told, level)


def _name(model: Any) -> str:
    return f"{model.family_!r}, {model.rule}"


def _columns(model: Any, X: Any) -> Any:
    """The columns a model uses, where it uses fewer than there are and they have names."""
    if hasattr(X, "columns") and list(X.columns) != list(model.columns_):
        return X[list(model.columns_)]
    return X
