"""How sure an answer is, and whom it owes: credible intervals of an llr, and the influence of learnt rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deciban.errors import InputError, NotLearntError
from deciban.estimators.trusting import Trusting
from deciban.evidence import scores as score
from deciban.model import model
from deciban.model.fit_checks import FitReport, check_fit
from deciban.read.numbers import row_weights
from deciban.statistics import Array, Axis, Members

BLOCK = 2**22  # numbers of one block of groups


class LLRInterval(NamedTuple):
    """(n,) each: the llr of the posterior's median, and the equal-tailed interval around it."""

    median: Array
    low: Array
    high: Array


class Sureness(Trusting):
    """What is behind an answer."""

    def llr_interval(
        self,
        X: Any,
        over: Any = None,
        against: Any = None,
        *,
        level: float = 0.9,
        draws: int = 400,
        unit: str = "nats",
        random_state: Any = 0,
    ) -> LLRInterval:
        """The credible interval of each row's llr, by drawing the parameters from their posterior.

        It says how far the answer may be off because few rows were learnt, not because the family is wrong.
        """
        from deciban.families.draws import draw

        if not 0 < level < 1:
            raise InputError(f"level={level}: give a probability between 0 and 1.")
        block = self._block(X)
        one, other = self._pair(over, against)
        rng = np.random.default_rng(random_state)
        log_prior = self._log_prior()
        llrs = []
        for _ in range(draws):
            scores = model.block_scores(self.family_, draw(self.family_, self.stats_.family, rng), block)
            llrs.append(score.llr(self._calibrated(scores, block), one, other, log_prior))
        ends = np.quantile(np.stack(llrs), (0.5, (1 - level) / 2, (1 + level) / 2), axis=0)
        return LLRInterval(*(score.convert(end, unit) for end in ends))

    def influence(
        self, row: Any, X: Any, y: Any, over: Any = None, against: Any = None, *, sample_weight: Any = None
    ) -> Array:
        """(n,) by how much the llr of one row would change if each of the learnt rows (X, y) were unlearnt.

        Exact, by subtraction. The rows with the largest values are the evidence the verdict rests on.
        """
        check_is_fitted(self)
        one, other = self._pair(over, against)
        if other is None:
            raise InputError("influence on the evidence against all the rest is not defined. Name two classes.")
        target = self._block(row)
        if target.shape[0] != 1:
            raise InputError(f"influence is on one row's answer, and {target.shape[0]} were given.")
        table = self._table(X)
        codes = self._learnt_codes(y, len(table))
        members = Members.hard(codes, self.stats_.axis, row_weights(sample_weight, len(table)))
        block = model.encode(self.family_, table, self.stats_.family)
        self.stats_.without(model.collect(self.family_, block, members, self.columns_), NotLearntError)
        before = self._scores(target)[0]
        changed = np.zeros(len(table))
        concerned = np.arange(len(codes)) if self.family_.shared else np.flatnonzero(np.isin(codes, (one, other)))
        for rows in _blocks(concerned, self.stats_):
            after = self._without_each(block, members, rows, target)
            changed[rows] = (after[:, one] - after[:, other]) - (before[one] - before[other])
        return changed

    def check_fit(self, X: Any, y: Any, *, random_state: Any = 0) -> FitReport:
        """Does data drawn from the model look like the data? What does not, in words, with a remedy."""
        check_is_fitted(self)
        return check_fit(self, X, y, random_state)

    def _without_each(self, block: Any, members: Members, rows: Array, target: Any) -> Array:
        """(m, K) scores of the target by models that lack one row each."""
        before = self._scores(target)[0]
        after = np.repeat(before[None, :], len(rows), axis=0)
        if self.family_.shared:  # every class may move: one model at a time
            for at, i in enumerate(rows):
                lacking = self.stats_.family - self.family_.collect(block[i : i + 1], members.take(slice(i, i + 1)))
                after[at] = self.family_.estimate(lacking, self.rule).log_density(target)[0]
            return after
        # only the row's own class moves: as many groups as rows, each that class without the row
        codes = members.codes[rows]
        weight = None if members.weight is None else members.weight[rows]
        each = Axis.of(len(rows))
        own = self.family_.collect(block[rows], Members.hard(np.arange(len(rows)), each, weight))
        groups = self.stats_.family.select("class", codes)
        groups = _renamed(groups, each) - own
        after[np.arange(len(rows)), codes] = self.family_.estimate(groups, self.rule).log_density(target)[0]
        return after


def _renamed(stats: Any, axis: Axis) -> Any:
    """The same sums with other names along the class axis, nested ones too."""
    renamed = replace(stats, labels={**stats.labels, "class": axis})
    if hasattr(stats, "blocks"):
        renamed = replace(renamed, blocks={name: _renamed(part, axis) for name, part in stats.blocks.items()})
    return renamed


def _blocks(rows: Array, stats: model.ModelStats) -> list[Array]:
    """Rows in portions whose groups fit in memory."""
    sizes = [np.size(values) for _, values in stats.family._items() if isinstance(values, np.ndarray)]
    width = max(sizes, default=1) // max(len(stats.rows), 1)
    step = max(1, BLOCK // max(width, 1))
    return [rows[at : at + step] for at in range(0, len(rows), step)]
