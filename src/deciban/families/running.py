"""Sums in the making: batches are added as they come, after the first rows have settled what was open.

Adding makes new sums of the old ones and the batch's. A family whose sums are large beside a batch, such as those of a
vocabulary, keeps something that grows in place instead, and makes sums of it in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deciban.families.blocks import Blocks, ProductStats
from deciban.families.fitted import collect_checked
from deciban.families.protocol import Rule
from deciban.statistics import Axis, Members

if TYPE_CHECKING:
    from deciban.families.product import Product


class Running:
    """A family, and its sums so far, of the first rows to begin with.

    >>> import numpy as np
    >>> from deciban import Poisson
    >>> sums = Running(Poisson(), np.array([[1.0], [2.0]]), Members.one_group(2), ["calls"])
    >>> sums.add(np.array([[4.0]]), Members.one_group(1))
    >>> sums.total().total
    array([[7.]])
    """

    def __init__(self, family: Any, X: Any, members: Members, columns: Sequence[Any]) -> None:
        self.family, self.columns = family, columns
        self.stats = collect_checked(family, X, members, columns)

    @property
    def known(self) -> Any:
        """Statistics whose names later rows are encoded by."""
        return self.stats

    def choose(self, X: Any, members: Members, rule: Rule) -> None:
        """Let the family freeze what it left open, by the first rows and their sums."""
        self.family = self.family.choose(self.stats, (X, members), rule)

    def add(self, X: Any, members: Members) -> None:
        """Add the sums of a batch."""
        self.stats = self.stats + collect_checked(self.family, X, members, self.columns)

    def total(self) -> Any:
        """The sums of everything that was added."""
        return self.stats


class RunningBlocks:
    """The same for a product, block by block."""

    def __init__(self, product: Product, classes: Axis, blocks: dict[str, Any]) -> None:
        self.product, self.classes, self.blocks = product, classes, blocks

    @property
    def family(self) -> Product:
        """The product of the blocks' families."""
        return self.product.with_families({name: block.family for name, block in self.blocks.items()})

    @property
    def known(self) -> ProductStats:
        """Of each block."""
        return ProductStats({"class": self.classes}, {name: block.known for name, block in self.blocks.items()})

    def choose(self, X: Blocks, members: Members, rule: Rule) -> None:
        """Block by block."""
        for name, block in self.blocks.items():
            block.choose(X.parts[name], members, rule)

    def add(self, X: Blocks, members: Members) -> None:
        """Add the sums of a batch to each block's."""
        self.classes = self.classes.union(members.classes)
        for name, block in self.blocks.items():
            block.add(X.parts[name], members)

    def total(self) -> ProductStats:
        """The sums of each block."""
        return ProductStats({"class": self.classes}, {name: block.total() for name, block in self.blocks.items()})
