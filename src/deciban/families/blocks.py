"""What a product is made of, block by block: its rows, its statistics, and its density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import NotAvailableError
from deciban.families.abilities import HasParts, HasPolynomial
from deciban.families.protocol import Density
from deciban.statistics import Array, Stats, nested


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of several blocks side by side; selecting rows selects them in each."""

    parts: dict[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        shapes = [part.shape for part in self.parts.values()]
        return shapes[0][0], sum(shape[1] for shape in shapes)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __getitem__(self, rows: Any) -> Blocks:
        return Blocks({name: part[rows] for name, part in self.parts.items()})


@dataclass(frozen=True, eq=False, repr=False)
class ProductStats(Stats):
    """The statistics of each block."""

    blocks: dict[str, Stats] = nested()


@dataclass(frozen=True, eq=False)
class ProductDensity(Density):
    """Densities of blocks, multiplied."""

    blocks: dict[str, Density]

    @property
    def K(self) -> int:
        return next(iter(self.blocks.values())).K

    def log_density(self, X: Blocks) -> Array:
        """Σ over blocks."""
        return sum(density.log_density(X.parts[name]) for name, density in self.blocks.items())  # type: ignore[return-value]

    def log_base(self, X: Blocks) -> Array | float:
        """Σ over blocks."""
        return sum(density.log_base(X.parts[name]) for name, density in self.blocks.items())

    def parts(self, X: Blocks) -> Array:
        """(n, K, P): one part a feature where the block is a sum over features, else one for the block."""
        return np.concatenate([_parts(density, X.parts[name]) for name, density in self.blocks.items()], axis=2)

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Blocks side by side, in the order of the blocks."""
        for name, density in self.blocks.items():
            if not isinstance(density, HasPolynomial):
                raise NotAvailableError(f"block {name!r} has no linear or quadratic discriminant.")
        each = [density.polynomial() for density in self.blocks.values()]  # type: ignore[attr-defined]
        sizes = [b.shape[1] for _, b, _ in each]
        A = None
        if any(block is not None for block, _, _ in each):
            A = np.zeros((self.K, sum(sizes), sum(sizes)))
            for (block, _, _), end, size in zip(each, np.cumsum(sizes), sizes):
                if block is not None:
                    A[:, end - size : end, end - size : end] = block
        return A, np.concatenate([b for _, b, _ in each], axis=1), sum(c for _, _, c in each)

    def sample(self, codes: Array, rng: np.random.Generator) -> Blocks:
        """Each block for itself: independent given the class."""
        return Blocks({name: density.sample(codes, rng) for name, density in self.blocks.items()})


def _parts(density: Density, X: Any) -> Array:
    return density.parts(X) if isinstance(density, HasParts) else density.log_density(X)[:, :, None]
