"""Tables of categories: counting them, and scoring by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.families.protocol import Density
from deciban.families.urns import draw
from deciban.features.categories import Codes, encode_categories, refuse_negative
from deciban.statistics import Array, Axis, Members, Ragged


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

    def _codes(self, X: Codes) -> Array:
        return (X if self.features is None else X.combined()).on(self._places)

    def index(self, X: Codes) -> Array:
        """(n, D) which of `rows` each value adds."""
        codes, M = self._codes(X), len(self.log_p)
        absent = np.where(codes == -1, M, M + 1 + np.arange(codes.shape[1]))
        return np.where((codes >= 0) & (codes < self.axis.sizes), codes + self.axis.starts, absent)

    def log_density(self, X: Codes) -> Array:
        """Σ over tables; a missing value says nothing."""
        return kernels.category_scores(self._codes(X), self.log_p, self.axis.starts, self.axis.sizes, self.unseen)

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
