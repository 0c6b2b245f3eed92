"""Tables of categories: support, counts, pseudo-counts and densities.

The support of a feature holds the categories that were declared or counted in any class. The support of a joint table
holds every combination of its features' categories; only the counted ones are listed. An open table has one more cell,
for all other categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.errors import HyperparameterError, NotAvailableError
from deciban.families.counts import draw
from deciban.families.dirichlet import left_over, log_theta
from deciban.families.protocol import Density, Input, Rule
from deciban.read.categories import Codes, encode_categories, refuse_negative
from deciban.statistics import Array, Axis, Members, Ragged

MOST_CELLS = 10**6  # of a joint table
PerFeature: TypeAlias = Any  # one value, a list by category, or a list of lists by feature
Names: TypeAlias = Sequence[Sequence[Any]] | None  # of the categories of each feature; None if they are 0, 1, …


@dataclass(frozen=True, eq=False)
class Support:
    """Counts and pseudo-counts of D tables with M listed cells in all, K classes."""

    axis: Ragged  # names of the listed cells
    counts: Array  # (M, K)
    alpha: Array  # (M,)  pseudo-count of a listed cell
    alpha_new: Array  # (D,)  pseudo-count of a cell that is not listed
    alpha0: Array  # (D,)  pseudo-count of the whole table
    cells: Array  # (D,)  number of cells in the support, listed or not
    features: tuple[Axis, ...] | None = None  # joint table: categories of each feature

    @property
    def table(self) -> Array:
        """(M,) table of each listed cell."""
        return np.repeat(np.arange(len(self.cells)), self.axis.sizes)

    @property
    def totals(self) -> Array:
        """(D, K) total count of each table."""
        sums = np.zeros((len(self.cells), self.counts.shape[1]))
        some = self.axis.sizes > 0
        if some.any():
            sums[some] = np.add.reduceat(self.counts, self.axis.starts[some], axis=0)
        return sums

    @property
    def unlisted(self) -> Array:
        """(D,) number of cells in the support that are not listed."""
        return self.cells - self.axis.sizes

    def logs(self, rule: Rule) -> tuple[Array, Array]:
        """Return log probabilities of listed cells (M, K) and of any other cell (D, K); NaN where there is no mode."""
        table, totals = self.table, self.totals
        prior = self.alpha0[:, None], self.cells[:, None]
        listed = log_theta(self.counts, totals[table], self.alpha[:, None], prior[0][table], prior[1][table], rule)
        other = log_cell(np.zeros_like(totals), totals, self.alpha_new[:, None], *prior, rule)
        # at a mode, categories outside the support have probability 0
        return listed, np.where(np.isnan(other) & (self.unlisted == 0)[:, None] & (totals > 0), -np.inf, other)

    def without(self, cell: Array, weight: Array | float) -> tuple[Array, Array]:
        """Return α0 and the number of cells of a cell's table without a row; the last row removes the category."""
        table, total = self.table[cell], self.counts.sum(axis=1)
        if self.features is None:
            gone = self.axis.undeclared[cell] & (left_over(total[cell], weight) == 0)
            return self.alpha0[table] - gone * self.alpha[cell], self.cells[table] - gone
        size = 1
        for j, feature in enumerate(self.features):
            place = {name: at for at, name in enumerate(feature.names)}
            code = np.array([place[name[j]] for name in self.axis.parts[0].names], dtype=np.intp)
            each, category = np.bincount(code, total, feature.size), code[cell]
            size = size * (feature.size - ((category >= feature.declared) & (left_over(each[category], weight) == 0)))
        cells = size + (self.cells[0] - prod(feature.size for feature in self.features))  # plus the open cell
        return self.alpha_new[0] * cells, np.asarray(cells)

    def left_out(self, cell: Array, k: Array, weight: Array | float, rule: Rule) -> Array:
        """Return the log probability of a cell in class k without a row of that class and cell."""
        counts, totals = left_over(self.counts[cell, k], weight), left_over(self.totals[self.table[cell], k], weight)
        return log_cell(counts, totals, self.alpha[cell], *self.without(cell, weight), rule)

    def without_category(self, cell: Array, weight: Array | float, rule: Rule) -> Array:
        """Return log probabilities (…, K) of a cell in the other classes, whose support may have lost a category."""
        alpha0, cells = self.without(cell, weight)
        totals, alpha = self.totals[self.table[cell]], self.alpha[cell, None]
        return log_cell(self.counts[cell], totals, alpha, alpha0[..., None], cells[..., None], rule)


def log_cell(counts: Array, totals: Array, alpha: Array, alpha0: Array, cells: Array, rule: Rule) -> Array:
    """Return `log_theta`, and 0 for a table without cells."""
    logs = log_theta(counts, totals, alpha, alpha0, cells, rule)
    return logs if rule == "ml" else np.where(np.equal(cells, 0), 0.0, logs)


def separate(axis: Ragged, counts: Array, prior: float | list[Array], open: bool) -> Support:
    """Return one table per feature; `prior` is one pseudo-count, or those of every cell of every feature."""
    sizes = axis.sizes
    cells = sizes + int(open)
    if not isinstance(prior, list):
        each = np.full(len(sizes), float(prior))
        return Support(axis, counts, np.full(axis.size, float(prior)), each, prior * cells, cells)
    vectors = [np.asarray(vector, dtype=float) for vector in prior]
    for j, (vector, size) in enumerate(zip(vectors, cells)):
        if len(vector) != size:
            raise HyperparameterError(
                f"the prior of feature {j} has {len(vector)} numbers, but there are {size} categories"
                f"{', one of them the open cell' if open else ''}: {axis.parts[j].names}. "
                "Declare categories=, or give one pseudo-count for all."
            )
    new = [vector[-1] if open else vector.mean() for vector in vectors]
    listed = [vector[: len(vector) - int(open)] for vector in vectors]
    return Support(
        axis, counts, np.concatenate(listed), np.array(new), np.array([vector.sum() for vector in vectors]), cells
    )


def joint(names: Axis, counts: Array, declared: Sequence[Axis], prior: float, open: bool) -> Support:
    """Return one table over all combinations of the features' categories."""
    found = [Axis(tuple(sorted(set(values)))) for values in zip(*names.names)]
    features = tuple(a.union(b) for a, b in zip(declared, found)) if found and declared else tuple(found or declared)
    size = prod(feature.size for feature in features) if features else 0
    if size > MOST_CELLS:
        raise NotAvailableError(
            f"a joint table of {' × '.join(str(feature.size) for feature in features)} categories has {size:,} cells, "
            f"more than {MOST_CELLS:,}. Leave out features, merge rare categories, or use joint=False."
        )
    cells = np.array([size + int(open)])
    alpha = np.full(names.size, float(prior))
    return Support(Ragged((names,)), counts, alpha, np.array([float(prior)]), prior * cells, cells, features)


def frozen(value: PerFeature) -> PerFeature:
    """Convert arrays and lists to tuples, which cannot change."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def nested(value: PerFeature) -> bool:
    """Whether there is a list for each feature."""
    return isinstance(value, tuple) and any(isinstance(part, tuple) for part in value)


def each(value: PerFeature) -> tuple[Any, ...]:
    """Return the value of each feature, or the only value."""
    return tuple(value) if nested(value) else (value,)


def per_feature(value: PerFeature, D: int) -> list[Any]:
    """Return one value per feature: as given, or the same for all."""
    if not nested(value):
        return [value] * D
    if len(value) != D:
        raise HyperparameterError(f"there are {D} features, but lists for {len(value)} of them. Give one list each.")
    return list(value)


def count_categories(X: Codes, members: Members) -> tuple[Array, Array, Names]:
    """Return the number of categories (D,), counts (K, Σ numbers), and names; None where the codes are the names."""
    if X.names is None and members.shares is None:
        try:
            sizes, counts = kernels.category_counts_growing(X.values, members.codes, members.weight, members.K)
            return sizes, counts, None
        except kernels.CategoryError:
            refuse_negative(X, ())
    X = X.named()  # also codes that are too large to be positions in a table
    sizes = np.array([len(names) for names in X.names or ()], dtype=np.intp)
    if members.shares is None:
        return sizes, kernels.category_counts(X.values, members.codes, members.weight, sizes, members.K), X.names
    seen = X.values >= 0
    starts = np.r_[0, np.cumsum(seen.sum(axis=1))]
    flags = sp.csr_array(
        (np.ones(starts[-1]), (X.values + np.cumsum(sizes) - sizes)[seen], starts), (len(X), int(sizes.sum()))
    )
    return sizes, members.total(flags), X.names


@dataclass(frozen=True, eq=False)
class CategoricalDensity(Density):
    """Probabilities of D tables with M listed cells in all, K classes."""

    axis: Ragged  # names of the listed cells
    log_p: Array  # (M, K)  log probability of a listed cell
    unseen: Array  # (D, K)  log probability of any other category
    unlisted: Array | int = 0  # (D,)  number of cells in the support that are not listed
    features: tuple[Axis, ...] | None = None  # joint table: categories of each feature

    @property
    def K(self) -> int:
        return int(self.log_p.shape[1])

    @property
    def p(self) -> Array:
        """(K, M) probability of each listed cell."""
        return np.exp(self.log_p.T)

    @property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        """Names of the listed cells of each table; tuples if it is joint."""
        return tuple(tuple(part.names) for part in self.axis.parts)

    @cached_property
    def rows(self) -> Array:
        """(M + 1 + D, K) score of a value: listed cells, then missing, then a category not listed in each table."""
        return np.concatenate([self.log_p, np.zeros((1, self.K)), self.unseen])

    @cached_property
    def _places(self) -> list[dict[Any, int]]:
        return [{name: at for at, name in enumerate(part.names)} for part in self.axis.parts]

    def encode(self, X: Input, columns: Sequence[str]) -> Codes:
        """Convert names to codes."""
        return encode_categories(X, columns)

    def _codes(self, X: Codes) -> Array:
        return (X if self.features is None else X.combined()).on(self._places)

    def index(self, X: Codes) -> Array:
        """(n, D) position of each value's score in `rows`."""
        codes, M = self._codes(X), len(self.log_p)
        absent = np.where(codes == -1, M, M + 1 + np.arange(codes.shape[1]))
        return np.where((codes >= 0) & (codes < self.axis.sizes), codes + self.axis.starts, absent)

    def log_density(self, X: Codes) -> Array:
        """Sum over tables; a missing value adds 0, and a joint table is summed over the features that a row misses."""
        scores = kernels.category_scores(self._codes(X), self.log_p, self.axis.starts, self.axis.sizes, self.unseen)
        for rows, marginal in self._marginals(X):
            scores[rows] = marginal
        return scores

    def with_gaps(self, X: Codes) -> Array:
        """(n,) whether a row misses some, but not all, features of a joint table."""
        missing = X.values < 0
        return np.asarray(missing.any(axis=1) & ~missing.all(axis=1) & bool(self.features))

    def _marginals(self, X: Codes) -> Iterator[tuple[Array, Array]]:
        """Yield rows of a joint table with gaps, and the log probability (m, K) of the values that they have."""
        at = np.flatnonzero(self.with_gaps(X))
        if not len(at):
            return
        features, M = self.features or (), len(self.log_p)
        places = [{name: code for code, name in enumerate(feature.names)} for feature in features]
        listed = np.array([[place[name] for place, name in zip(places, cell)] for cell in self.names[0]], dtype=np.intp)
        codes, sizes = X[at].on(places), np.array([feature.size for feature in features])
        for gaps in np.unique(codes < 0, axis=0):
            alike = np.flatnonzero(((codes < 0) == gaps).all(axis=1))
            seen = np.concatenate([listed.reshape(M, -1), codes[alike]])[:, ~gaps]
            groups, place = np.unique(seen, axis=0, return_inverse=True)
            p, cells = np.zeros((len(groups), self.K)), np.bincount(place[:M], minlength=len(groups))
            np.add.at(p, place[:M], np.exp(self.log_p))
            known = (groups < sizes[~gaps]).all(axis=1)  # the code of an unknown category is that after the last
            p += np.where(known, sizes[gaps].prod() - cells, 1)[:, None] * np.exp(self.unseen)
            with np.errstate(divide="ignore"):
                yield at[alike], np.log(p[place[M:]])

    def parts(self, X: Codes) -> Array:
        """Return the score of each feature, shape (n, K, D); that of a joint table stands at its first feature."""
        parts = self.rows[self.index(X)].transpose(0, 2, 1)
        if self.features is None:
            return parts
        for rows, marginal in self._marginals(X):
            parts[rows, :, 0] = marginal
        return np.concatenate([parts, np.zeros((*parts.shape[:2], X.shape[1] - 1))], axis=2)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw names, shape (n, D); the open cell has no name and is never drawn."""
        if self.features:
            return self._sample_joint(codes, rng)
        drawn = np.full((len(codes), len(self.unseen)), None, dtype=object)
        for j, (start, part) in enumerate(zip(self.axis.starts, self.axis.parts)):
            if part.size:
                cells = draw(self.p[:, start : start + part.size], codes, rng)
                drawn[:, j] = np.array([*part.names, None], dtype=object)[cells]
        return drawn

    def _sample_joint(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw combinations, listed or not."""
        features = self.features or ()
        shape = [feature.size for feature in features]
        places = [{name: at for at, name in enumerate(feature.names)} for feature in features]
        listed = [[place[part] for place, part in zip(places, name)] for name in self.names[0]]
        cells: Any = np.ravel_multi_index(tuple(np.array(listed, dtype=np.intp).reshape(-1, len(shape)).T), shape)
        others = np.setdiff1d(np.arange(np.prod(shape)), cells)
        p = np.concatenate([self.p, len(others) * np.exp(self.unseen.T)], axis=1)
        at = draw(p, codes, rng)
        new = at == len(cells)
        at[~new] = cells[at[~new]]
        at[new] = rng.choice(others, int(new.sum())) if new.any() else 0
        columns = zip(features, np.unravel_index(at, shape))
        return np.stack([np.array([*f.names, None], dtype=object)[column] for f, column in columns], axis=1)
