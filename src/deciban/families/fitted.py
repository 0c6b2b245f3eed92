"""A family fitted without classes, for example one coin or one Gaussian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError
from deciban.families.abilities import HasCandidates, HasEvidence, HasPosterior, ability, with_frame
from deciban.families.product import BlockRows, footprint, without_ability
from deciban.families.protocol import Density, Family, Input, Posterior, Rows, Rule, check_rule
from deciban.read.arrays import row_weights
from deciban.statistics import Additive, Array, Members, Ragged, Stats
from deciban.statistics.members import collect_checked


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Additive):
    """A family and its sums; immutable, learning returns another value.

    Parameters
    ----------
    family : Family
        The family, with its choices made.
    stats : Stats
        Sums of the rows learnt.

    Examples
    --------
    >>> from deciban import Bernoulli
    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> coin.posterior().mean.round(4)
    array([[0.5833]])
    """

    family: Family[Any]
    stats: Any

    @classmethod
    def of(cls, family: Family[Any], X: Input, sample_weight: ArrayLike | None = None) -> Fitted:
        """Collect the sums, and let the family make its open choices.

        Parameters
        ----------
        family : Family
            The family to fit.
        X : array-like, sparse matrix, frame or list of str
            Rows to learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; 1 if None.

        Returns
        -------
        Fitted
            The fitted family.
        """
        block, members = _one_group(family, X, sample_weight)
        open_family = ability(family, HasCandidates)
        if open_family is not None:
            family = open_family.without_labels(block, members)  # type: ignore[assignment]
        stats = collect_checked(family, block, members, _columns(block))
        return cls(family.choose(stats, (block, members)), stats)

    def density(self, rule: Rule = "mean") -> Density:
        """Estimate the density.

        Parameters
        ----------
        rule : {"ml", "map", "mean", "predictive"}, default="mean"
            How parameters are obtained from the posterior.

        Returns
        -------
        Density
            The density, of a single group.
        """
        check_rule(rule)
        return self.family.estimate(self.stats, rule)

    def log_density(self, X: Input, rule: Rule = "mean") -> Array:
        """Compute log f(x) with all constants, so that f sums or integrates to one.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows to score.
        rule : {"ml", "map", "mean", "predictive"}, default="mean"
            How parameters are obtained from the posterior.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log density of each row.
        """
        require_columns(self.family, self.stats, X)
        block = self.family.encode(X, (), self.stats)
        self.family.check(block, ())
        density = self.density(rule)
        return density.log_density(block)[:, 0] + density.log_base(block)

    def leave_one_out(self, X: Input, rule: Rule = "mean", sample_weight: ArrayLike | None = None) -> Array:
        """Compute log f(x_i) by the sums without row i.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows that were learnt.
        rule : {"ml", "map", "mean", "predictive"}, default="mean"
            How parameters are obtained from the posterior.
        sample_weight : array-like of shape (n_samples,), optional
            Weights with which the rows were learnt; 1 if None.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log density of each row.
        """
        block, members = _one_group(self.family, X, sample_weight, self.stats)
        self.stats.require(footprint(self.family, block, members))
        density = self.density(rule)
        scores = self.family.leave_one_out(self.stats, block, members, rule, density)[:, 0]
        return scores + density.log_base(block)

    def posterior(self) -> Posterior:
        """Describe the posterior of every parameter.

        Returns
        -------
        Posterior
            Mean, mode, standard deviation and credible intervals, by the name of the parameter.
        """
        family = ability(self.family, HasPosterior)
        if family is None:
            raise NotAvailableError(f"{without_ability(self.family, HasPosterior)} does not describe its posterior.")
        return family.posterior(self.stats)

    def log_evidence(self) -> float:
        """Compute the log marginal likelihood log ∫ p(D|θ) p(θ) dθ.

        Returns
        -------
        float
            The evidence of the rows learnt, in nats.
        """
        family = ability(self.family, HasEvidence)
        if family is None:
            raise NotAvailableError(f"{without_ability(self.family, HasEvidence)} has no closed-form evidence.")
        return float(np.sum(family.log_evidence(self.stats)))

    def sample(self, n: int, rule: Rule = "mean", random_state: np.random.Generator | int | None = None) -> Rows:
        """Draw rows.

        Parameters
        ----------
        n : int
            Number of rows.
        rule : {"ml", "map", "mean", "predictive"}, default="mean"
            How parameters are obtained from the posterior.
        random_state : int or numpy.random.Generator, optional
            Seed or source of random numbers.

        Returns
        -------
        rows
            The rows, as `learn` takes them; of a product with named columns, a dict of columns.
        """
        rows = self.density(rule).sample(np.zeros(n, dtype=np.intp), np.random.default_rng(random_state))
        return rows.by_name(self.family.keys) if isinstance(rows, BlockRows) else rows  # type: ignore[attr-defined]

    def learn(self, X: Input, sample_weight: ArrayLike | None = None) -> Fitted:
        """Add the sums of more rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows to learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; 1 if None.

        Returns
        -------
        Fitted
            The family with the new sums.
        """
        stats = self.stats + self._collect(X, sample_weight)
        return replace(self, family=with_frame(self.family, stats), stats=stats)

    def unlearn(self, X: Input, sample_weight: ArrayLike | None = None) -> Fitted:
        """Subtract the sums of rows that were learnt before.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows that were learnt.
        sample_weight : array-like of shape (n_samples,), optional
            Weights with which they were learnt; 1 if None.

        Returns
        -------
        Fitted
            The family with the sums that are left.

        Raises
        ------
        UnlearnError
            If the sums show that a row was never learnt.
        """
        return replace(self, stats=self.stats.without(self._collect(X, sample_weight)))

    def __add__(self, other: Fitted) -> Fitted:
        return replace(self, stats=self.stats + other.stats)

    def _collect(self, X: Input, sample_weight: ArrayLike | None) -> Stats:
        require_columns(self.family, self.stats, X)
        block, members = _one_group(self.family, X, sample_weight)  # without stats: new names are added
        sums: Stats = collect_checked(self.family, block, members, _columns(block))
        return sums

    def __repr__(self) -> str:
        return f"Fitted({self.family!r}, {self.stats!r})"


def number_of_columns(stats: Stats) -> int | None:
    """Return the number of columns that sums were collected from; None for those of a product of blocks."""
    for name in ("feature", "category", "word", "combination"):
        axis = stats.labels.get(name)
        if isinstance(axis, Ragged):
            return len(axis.parts)
        if axis is not None and name != "combination":
            return axis.size
        if axis is not None and axis.size:
            return len(axis.names[0])
    return None


def require_columns(family: Family[Any], stats: Stats, X: Input) -> None:
    """Refuse rows that have more or fewer columns than those that were learnt."""
    learnt = number_of_columns(stats)
    if learnt is None or "text" in family.accepts:
        return
    shape: tuple[int, ...] | None = getattr(X, "shape", None)
    if isinstance(X, list | tuple) and len(X):
        shape = len(X), *np.shape(X[0])[:1]
    given = learnt if shape is None else shape[1] if len(shape) > 1 else 1
    if given != learnt:
        raise InputError(f"the rows have {given} columns, and {learnt} were learnt. Give the same columns.")


def _one_group(
    family: Family[Any], X: Input, sample_weight: ArrayLike | None, stats: Stats | None = None
) -> tuple[Rows, Members]:
    block = family.encode(X, (), stats)
    n = block.shape[0]
    if n == 0:
        raise InputError("there are no rows. Give at least one.")
    weight = row_weights(sample_weight, n)
    if weight is not None and not weight.all():
        block, weight = block[weight > 0], weight[weight > 0]
        n = len(weight)
    return block, Members.one_group(n, weight)


def _columns(block: Rows) -> list[str]:
    return [str(j) for j in range(block.shape[1])]
