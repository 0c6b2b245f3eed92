"""The E-step over many rows: responsibilities and the sums they weigh, a block of rows at a time.

    γ_nm ∝ π_m f(x_n|m)        N_m = Σ w γ_nm        the family's `collect` with members γ

Large tables of numbers and of counts take one fused pass (`fused`); every other family takes this one. Both add up the
same sums, and neither holds anything as long as the table, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.latent import fused
from deciban.latent.components import MixtureDensity, MixtureSums
from deciban.statistics import Array, Axis, Members

BLOCK_CELLS = 2**19  # numbers in a block of rows, or in its responsibilities
LEAST_ROWS, MOST_ROWS = 256, 2**15


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a mixture is fitted to."""

    family: Any  # of the components, its choices frozen
    X: Any
    weight: Array | None = None  # None means 1 each

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def total_weight(self) -> float:
        """Σ w."""
        return float(len(self) if self.weight is None else self.weight.sum())

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    def kept(self, name: str, compute: Callable[[], Any]) -> Any:
        """What no guess changes: computed once."""
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]

    def base(self, density: MixtureDensity) -> float:
        """Σ w log_base(x)."""

        def add() -> float:
            return sum(float(np.sum(w * density.log_base(x))) for x, w in self.blocks(1))

        return self.kept("base", add)

    def take(self, rows: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.family, self.X[rows], None if self.weight is None else self.weight[rows])

    def blocks(self, M: int) -> Iterator[tuple[Any, Array]]:
        """Blocks of rows and their weights; small tables are one block."""
        n = len(self)
        width = max(M, 1 if sp.issparse(self.X) else self.X.shape[1])
        size = int(np.clip(BLOCK_CELLS // width, LEAST_ROWS, MOST_ROWS))
        for at in range(0, n, size):
            rows = slice(at, min(at + size, n))
            weight = np.ones(rows.stop - at) if self.weight is None else self.weight[rows]
            yield (self.X if n <= size else self.X[rows]), weight

    # -- E-steps -----------------------------------------------------------------------------------------------------
    def expect(self, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float]:
        """Sums under a guess, and the log-likelihood of that guess; None where some row has no density at all."""
        fast = fused.expect(self, density, names)
        if fast is not None:
            sums, total = fast
            return sums, total + self.base(density)
        total, parts = 0.0, _Adder()
        for x, w in self.blocks(names.size):
            joint = density.log_joint(x)
            top = kernels.log_sum_exp(joint)
            total += float(w @ top)
            if not np.isfinite(total):
                return None, total
            shares = kernels.softmax(joint, out=joint)
            shares *= w[:, None]
            parts.add(self.collect(x, shares, names, density))
        return parts.total, total + self.base(density)

    def collect(self, x: Any, shares: Array, names: Axis, density: MixtureDensity | None = None) -> MixtureSums:
        """The sums of a block; families with hidden values of their own collect under the guess too."""
        members = Members.soft(shares, names)
        under = getattr(self.family, "collect_under", None)
        if under is None or density is None:
            sums = self.family.collect(x, members)
        else:
            sums = under(x, members, density.components)
        return MixtureSums({"class": names}, shares.sum(axis=0), sums)

    def collect_shares(self, names: Axis, shares: Callable[[int, int], Array]) -> MixtureSums:
        """The sums under responsibilities given by shares(begin, end), not yet weighted."""
        parts, begin = _Adder(), 0
        for x, w in self.blocks(names.size):
            parts.add(self.collect(x, shares(begin, begin + len(w)) * w[:, None], names))
            begin += len(w)
        return parts.total

    def log_density(self, density: MixtureDensity) -> Array:
        """(n,) log f(x), a block at a time."""
        blocks = [density.log_density(x)[:, 0] + density.log_base(x) for x, _ in self.blocks(1)]
        return np.concatenate(blocks) if blocks else np.zeros(0)


class _Adder:
    """Adds sums up as they come."""

    total: Any = None

    def add(self, sums: Any) -> None:
        self.total = sums if self.total is None else self.total + sums
