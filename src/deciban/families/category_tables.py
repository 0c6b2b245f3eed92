"""What a categorical feature can be, how often it was, and how the prior is spread over it.

The known categories are the support: those declared, and those counted in some class. A joint table's support is every
combination of its features' known categories, of which only the counted ones are listed. An open table has one more
cell, for anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.errors import HyperparameterError, NotAvailableError
from deciban.families.counts import draw
from deciban.families.dirichlet import left_over, log_theta
from deciban.families.protocol import Density, Rule
from deciban.read.categories import Codes, encode_categories, refuse_negative
from deciban.statistics import Array, Axis, Members, Ragged

MOST_CELLS = 10**6  # of a joint table


@dataclass(frozen=True, eq=False)
class Support:
    """D tables side by side, M listed cells in all, K classes."""

    axis: Ragged  # names of the listed cells
    counts: Array  # (M, K)
    alpha: Array  # (M,)  pseudo-count of a listed cell
    alpha_new: Array  # (D,)  of a cell that is not listed
    alpha0: Array  # (D,)  of the whole table
    cells: Array  # (D,)  in the support, listed or not
    sizes: Array  # (D,)  listed cells
    features: tuple[Axis, ...] | None = None  # of a joint table: the known categories of each feature

    @cached_property
    def table(self) -> Array:
        """(M,) the table of each cell."""
        return np.repeat(np.arange(len(self.cells)), self.sizes)

    @cached_property
    def undeclared(self) -> Array:
        """(M,) of bool: the cells that are removed when nothing is counted in them."""
        return self.axis.undeclared

    @cached_property
    def totals(self) -> Array:
        """(D, K) counts of whole tables."""
        sums = np.zeros((len(self.cells), self.counts.shape[1]))
        some = self.sizes > 0
        if some.any():
            starts = np.cumsum(self.sizes) - self.sizes
            sums[some] = np.add.reduceat(self.counts, starts[some], axis=0)
        return sums

    @property
    def unlisted(self) -> Array:
        """(D,) cells of the support that are not listed."""
        return self.cells - self.sizes

    def logs(self, rule: Rule) -> tuple[Array, Array]:
        """(M, K) of the listed cells, (D, K) of any other; NaN where the rule defines none."""
        table, totals = self.table, self.totals
        prior = self.alpha0[:, None], self.cells[:, None]
        listed = log_theta(self.counts, totals[table], self.alpha[:, None], prior[0][table], prior[1][table], rule)
        other = log_cell(np.zeros_like(totals), totals, self.alpha_new[:, None], *prior, rule)
        # a mode that exists gives nothing to what is outside the support
        return listed, np.where(np.isnan(other) & (self.unlisted == 0)[:, None] & (totals > 0), -np.inf, other)

    def without(self, cell: Array, weight: Any) -> tuple[Array, Array]:
        """Pseudo-counts and cells of a cell's table once a row is gone from it, perhaps the last of its category."""
        table, total = self.table[cell], self.counts.sum(axis=1)
        if self.features is None:
            gone = self.undeclared[cell] & (left_over(total[cell], weight) == 0)
            return self.alpha0[table] - gone * self.alpha[cell], self.cells[table] - gone
        size = 1
        for j, feature in enumerate(self.features):
            place = {name: at for at, name in enumerate(feature.names)}
            code = np.array([place[name[j]] for name in self.axis.parts[0].names], dtype=np.intp)
            each, category = np.bincount(code, total, feature.size), code[cell]
            size = size * (feature.size - ((category >= feature.declared) & (left_over(each[category], weight) == 0)))
        cells = size + (self.cells[0] - prod(feature.size for feature in self.features))  # the open cell
        return self.alpha_new[0] * cells, np.asarray(cells)

    def left_out(self, cell: Array, k: Array, weight: Any, rule: Rule, prior: tuple[Array, Array]) -> Array:
        """Log probability of a cell in class k without a row that was there; `prior` is `without(cell, weight)`."""
        totals = self.totals[self.table[cell], k]
        counts, totals = left_over(self.counts[cell, k], weight), left_over(totals, weight)
        return log_cell(counts, totals, self.alpha[cell], *prior, rule)

    def noticed(self, cell: Array, weight: Any, rule: Rule) -> Array:
        """(…, K) log probability of a cell in the classes that lost no row, but perhaps know a category less."""
        alpha0, cells = self.without(cell, weight)
        totals, alpha = self.totals[self.table[cell]], self.alpha[cell, None]
        return log_cell(self.counts[cell], totals, alpha, alpha0[..., None], cells[..., None], rule)


def log_cell(counts: Any, totals: Any, alpha: Any, alpha0: Any, cells: Any, rule: Rule) -> Array:
    """As `log_theta`; a table without a single cell says nothing."""
    logs = log_theta(counts, totals, alpha, alpha0, cells, rule)
    return logs if rule == "ml" else np.where(np.equal(cells, 0), 0.0, logs)


def separate(axis: Ragged, counts: Array, prior: Any, open: bool) -> Support:
    """A table for each feature; `prior` is a number, or numbers for every cell of every feature."""
    sizes = axis.sizes
    cells = sizes + int(open)
    if not isinstance(prior, list):
        each = np.full(len(sizes), float(prior))
        return Support(axis, counts, np.full(len(counts), float(prior)), each, prior * cells, cells, sizes)
    vectors = [np.asarray(vector, dtype=float) for vector in prior]
    for j, (vector, size) in enumerate(zip(vectors, cells)):
        if len(vector) != size:
            raise HyperparameterError(
                f"the prior of feature {j} has {len(vector)} numbers, but there are {size} categories"
                f"{', one of them for anything else' if open else ''}: {axis.parts[j].names}. "
                "Declare categories=, or give one pseudo-count for all."
            )
    new = [vector[-1] if open else vector.mean() for vector in vectors]
    listed = [vector[: len(vector) - int(open)] for vector in vectors]
    return Support(
        axis,
        counts,
        np.concatenate(listed),
        np.array(new),
        np.array([vector.sum() for vector in vectors]),
        cells,
        sizes,
    )


def joint(names: Axis, counts: Array, declared: Sequence[Axis], prior: float, open: bool) -> Support:
    """One table over all combinations of the features' known categories."""
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
    axis, sizes = Ragged((names,)), np.array([names.size])
    return Support(axis, counts, alpha, np.array([float(prior)]), prior * cells, cells, sizes, features)


# -- tables ----------
# Tables of categories: counting them, and scoring by them.


def count_categories(X: Codes, members: Members) -> tuple[Array, Array, Any]:
    """Sizes (D,), counts (K, Σ sizes), and names, None where numbers are their own."""
    if X.names is None and members.shares is None:
        try:
            sizes, counts = kernels.category_counts_growing(X.values, members.codes, members.weight, members.K)
            return sizes, counts, None
        except kernels.CategoryError:
            refuse_negative(X, ())
    X = X.named()  # also numbers too large for a table as long as they are
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
    """D tables side by side, M listed cells in all, K classes."""

    axis: Ragged  # the names of the cells
    log_p: Array  # (M, K)
    unseen: Array  # (D, K)  for a name that is not listed
    unlisted: Any = 0  # (D,)  cells of the support that are not listed; 0: none
    features: tuple[Axis, ...] | None = None  # of a joint table, each feature's categories

    @property
    def K(self) -> int:
        return self.log_p.shape[1]

    @property
    def p(self) -> Array:
        """(K, M) the probabilities of the listed cells."""
        return np.exp(self.log_p.T)

    @property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        """The cells of each table; tuples where it is joint."""
        return tuple(tuple(part.names) for part in self.axis.parts)

    @cached_property
    def rows(self) -> Array:
        """(M + 1 + D, K) what a value adds: the listed cells, then missing, then a name not listed in each table."""
        return np.concatenate([self.log_p, np.zeros((1, self.K)), self.unseen])

    @cached_property
    def _places(self) -> list[dict[Any, int]]:
        return [{name: at for at, name in enumerate(part.names)} for part in self.axis.parts]

    def encode(self, X: Any, columns: Sequence[str]) -> Codes:
        """Names as codes."""
        return encode_categories(X, columns)

    @cached_property
    def _layout(self) -> tuple[Array, Array]:
        """(D,) position of the first cell of each table, and number of its listed cells."""
        sizes = self.axis.sizes
        return np.cumsum(sizes) - sizes, sizes

    def codes(self, X: Codes) -> Array:
        """(n, D) position of each value in its table; −1 if missing, the size of the table if not listed."""
        return (X if self.features is None else X.combined()).on(self._places)

    def index(self, X: Codes) -> Array:
        """(n, D) which of `rows` each value adds."""
        codes, M = self.codes(X), len(self.log_p)
        absent = np.where(codes == -1, M, M + 1 + np.arange(codes.shape[1]))
        starts, sizes = self._layout
        return np.where((codes >= 0) & (codes < sizes), codes + starts, absent)

    def log_density(self, X: Codes) -> Array:
        """Σ over tables; a missing value says nothing."""
        return self.score(self.codes(X), self.log_p)

    def score(self, codes: Array, log_p: Array) -> Array:
        """(n, K) Σ over tables of what the codes have in `log_p`, (M, K)."""
        return kernels.category_scores(codes, log_p, *self._layout, self.unseen)

    def parts(self, X: Codes) -> Array:
        """(n, K, D); a joint table is one part, shown with its first feature."""
        parts = self.rows[self.index(X)].transpose(0, 2, 1)
        if self.features is None:
            return parts
        return np.concatenate([parts, np.zeros((*parts.shape[:2], X.shape[1] - 1))], axis=2)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """(n, D) names; an open cell has none, so it is never drawn."""
        if self.features:
            return self._sample_joint(codes, rng)
        drawn = np.full((len(codes), len(self.unseen)), None, dtype=object)
        for j, (start, part) in enumerate(zip(self.axis.starts, self.axis.parts)):
            if part.size:
                cells = draw(self.p[:, start : start + part.size], codes, rng)
                drawn[:, j] = np.array([*part.names, None], dtype=object)[cells]
        return drawn

    def _sample_joint(self, codes: Array, rng: np.random.Generator) -> Array:
        """A combination that is listed, or one of the others."""
        features: Any = self.features
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
