"""How many free parameters a family has: what BIC and AIC charge for."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import NotAvailableError
from deciban.families.bernoulli import Bernoulli
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.poisson import Poisson
from deciban.families.product import Product


def free_parameters(family: Any, stats: Any) -> int:
    """Of all groups together; tied groups share.

    >>> from deciban import Gaussian
    >>> stats = Gaussian().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]).stats
    >>> free_parameters(Gaussian("full"), stats), free_parameters(Gaussian("diagonal"), stats)
    (5, 4)
    """
    if isinstance(family, Product):
        return sum(free_parameters(f, stats.blocks[name]) for name, f in zip(family.names, family.families.values()))
    K = stats.labels["class"].size
    if isinstance(family, Gaussian):
        return _gaussian(family.structure, K, len(stats.origin))
    if isinstance(family, Multinomial):
        return K * (stats.counts.shape[1] - 1)
    if isinstance(family, Categorical) and "category" in stats.labels:
        return K * int(np.maximum(stats.labels["category"].sizes - 1, 0).sum())
    if isinstance(family, Categorical):
        return K * (stats.counts.shape[1] - 1)
    if isinstance(family, Bernoulli):
        return K * int(stats.ones.shape[1])
    if isinstance(family, Poisson):
        return K * int(stats.total.shape[1])
    if hasattr(family, "free_parameters"):
        return int(family.free_parameters(stats))
    raise NotAvailableError(
        f"how many parameters {type(family).__name__} has is not known. Compare by held-out likelihood "
        "(by='heldout'), or give the family a method free_parameters(stats)."
    )


def _gaussian(structure: str, K: int, D: int) -> int:
    each = {"full": D * (D + 1) // 2, "tied": D * (D + 1) // 2, "diagonal": D, "tied diagonal": D}.get(structure, 1)
    return K * D + (1 if structure.startswith("tied") else K) * each
