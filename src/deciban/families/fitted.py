"""A family that has learnt without classes: one coin, one die, one Gaussian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import InputError, NotAvailableError
from deciban.families.abilities import HasCandidates, HasEvidence, HasPosterior, ability
from deciban.families.posterior import Posterior
from deciban.families.product import footprint, without_ability
from deciban.families.protocol import Density, Family, Rule, check_rule, collect_checked
from deciban.read.numbers import row_weights
from deciban.statistics import Array, Members, Stats


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """Statistics and the family that reads them; a value: learning gives another one.

    >>> from deciban import Bernoulli
    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> coin.posterior().mean.round(4)
    array([[0.5833]])
    """

    family: Any
    stats: Any

    @classmethod
    def of(cls, family: Family, X: Any, sample_weight: Any = None) -> Fitted:
        """Collect, then freeze what the family left open."""
        block, members = _one_group(family, X, sample_weight)
        open_family = ability(family, HasCandidates)
        if open_family is not None:
            family = open_family.without_labels(block, members)  # type: ignore[assignment]
        stats = collect_checked(family, block, members, _columns(block))
        return cls(family.choose(stats, (block, members)), stats)

    def density(self, rule: Rule = "mean") -> Density:
        """The density under a rule."""
        check_rule(rule)
        return self.family.estimate(self.stats, rule)

    def log_density(self, X: Any, rule: Rule = "mean") -> Array:
        """(n,) log f(x), with every constant: it sums or integrates to one."""
        block = self.family.encode(X, (), self.stats)
        self.family.check(block, ())
        density = self.density(rule)
        return density.log_density(block)[:, 0] + density.log_base(block)

    def leave_one_out(self, X: Any, rule: Rule = "mean", sample_weight: Any = None) -> Array:
        """(n,) log f(x_i) as if row i had never been learnt."""
        block, members = _one_group(self.family, X, sample_weight, self.stats)
        self.stats.require(footprint(self.family, block, members))
        density = self.density(rule)
        scores = self.family.leave_one_out(self.stats, block, members, rule, density)[:, 0]
        return scores + density.log_base(block)

    def posterior(self) -> Posterior:
        """What is known of every parameter."""
        family = ability(self.family, HasPosterior)
        if family is None:
            raise NotAvailableError(f"{without_ability(self.family, HasPosterior)} does not describe its posterior.")
        return family.posterior(self.stats)

    def log_evidence(self) -> float:
        """Log ∫ p(D|θ) p(θ) dθ."""
        family = ability(self.family, HasEvidence)
        if family is None:
            raise NotAvailableError(f"{without_ability(self.family, HasEvidence)} has no closed-form evidence.")
        return float(np.sum(family.log_evidence(self.stats)))

    def sample(self, n: int, rule: Rule = "mean", random_state: Any = None) -> Any:
        """N rows like the ones learnt."""
        return self.density(rule).sample(np.zeros(n, dtype=np.intp), np.random.default_rng(random_state))

    def learn(self, X: Any, sample_weight: Any = None) -> Fitted:
        """Add rows."""
        return replace(self, stats=self.stats + self._collect(X, sample_weight))

    def unlearn(self, X: Any, sample_weight: Any = None) -> Fitted:
        """Take rows back; refused where they were not learnt."""
        return replace(self, stats=self.stats.without(self._collect(X, sample_weight)))

    def __add__(self, other: Fitted) -> Fitted:
        return replace(self, stats=self.stats + other.stats)

    def _collect(self, X: Any, sample_weight: Any) -> Stats:
        block, members = _one_group(self.family, X, sample_weight)  # new names are learnt
        return collect_checked(self.family, block, members, _columns(block))

    def __repr__(self) -> str:
        return f"Fitted({self.family!r}, {self.stats!r})"


def _one_group(family: Any, X: Any, sample_weight: Any, stats: Any = None) -> tuple[Any, Members]:
    block = family.encode(X, (), stats)
    n = block.shape[0]
    if n == 0:
        raise InputError("there are no rows to learn from.")
    weight = row_weights(sample_weight, n)
    if weight is not None and not weight.all():
        block, weight = block[weight > 0], weight[weight > 0]
        n = len(weight)
    return block, Members.one_group(n, weight)


def _columns(block: Any) -> list[str]:
    return [str(j) for j in range(block.shape[1])]
