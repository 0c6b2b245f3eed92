"""Why: which feature, block or word said how much, and the llr as a formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from deciban.errors import InputError, NotAvailableError
from deciban.estimators.scoring import Scoring
from deciban.evidence import scores as score
from deciban.evidence.explanation import Explanation
from deciban.families.abilities import HasParts, HasPolynomial, HasSelection
from deciban.families.product import Product
from deciban.model import model
from deciban.statistics import Array


class Discriminant(NamedTuple):
    """llr(x) = xᵀA x + xᵀb + c; A is None when it is linear."""

    A: Array | None
    b: Array
    c: float


@dataclass(frozen=True, eq=False)
class Chained:
    """The density of correlated features, one at a time: log f(x) = Σ_d log f(x_d | x_1 … x_{d−1})."""

    density: Any

    def parts(self, X: Array) -> Array:
        """(n, K, D) by differences of marginals."""
        D = X.shape[1]
        sums = [self.density.select(np.arange(d + 1)).log_density(X[:, : d + 1]) for d in range(D)]
        return np.diff(np.stack([np.zeros_like(sums[0]), *sums], axis=2), axis=2)


class Explaining(Scoring):
    """What a classifier's answers rest on."""

    def explain(
        self, X: Any, over: Any = None, against: Any = None, *, prior: Any = None, chain: bool = False
    ) -> Explanation:
        """Which feature, or block, said how much for one class over another; prints as bars.

        With nothing named: classes_[1] over classes_[0] of two, else each row's most probable class over the next. A
        block of correlated features is one part; `chain` splits it, each feature given those before it.
        """
        check_is_fitted(self)
        table = self._table(X)
        block = model.encode(self.family_, table, self.stats_.family)
        scores, log_prior = self._evidence(block), self._log_prior(prior)
        each = np.arange(len(scores))
        if over is None and len(self.classes_) > 2:
            ranked = np.argsort(-score.log_joint(scores, log_prior), axis=1, kind="stable")
            one, other = ranked[:, 0], ranked[:, 1]
        else:
            pair = self._pair(over, against)
            if pair[1] is None:
                raise InputError("the evidence against all the rest has no parts. Name the class to compare with.")
            one, other = (np.full(len(scores), k) for k in pair)
        names, parts, values, of_block = self._parts(table, block, chain)
        evidence = score.log_ratio(parts[each, one], parts[each, other])
        impossible = np.isneginf(scores[each, one]) & np.isneginf(scores[each, other])
        evidence[impossible] = 0.0  # neither class can say anything of these rows
        evidence, extra = self._calibrated_parts(block, evidence, of_block, scores, one, other)
        return Explanation(
            names,
            evidence,
            self.classes_[one],
            self.classes_[other],
            values=values,
            prior_part=score.log_ratio(log_prior[one], log_prior[other]),
            other=extra,
            exhaustive=len(self.classes_) == 2,
        )

    def discriminant(self, over: Any = None, against: Any = None) -> Discriminant:
        """The llr as a formula of x: linear, or quadratic."""
        check_is_fitted(self)
        one, other = self._pair(over, against)
        if other is None or not isinstance(self.density, HasPolynomial):
            raise NotAvailableError(
                "a discriminant is the llr of one class over another, for families whose log density is linear or "
                "quadratic in x. Name two classes, and use rule 'ml', 'map' or 'mean'."
            )
        A, b, c = self.density.polynomial()
        return Discriminant(None if A is None else A[one] - A[other], b[one] - b[other], float(c[one] - c[other]))

    def _calibrated_parts(
        self, block: Any, parts: Array, of_block: Array, scores: Array, one: Array, other: Array
    ) -> tuple[Array, dict[str, Array]]:
        """Parts as they count after calibration, and what it adds; together they are the llr."""
        if self.calibration_ is None:
            return parts, {}
        each = np.arange(len(parts))
        if hasattr(self.calibration_.calibrator, "offsets"):
            scales = self.calibration_.scales(model.block_lengths(self.family_, block), len(parts))
            parts = parts * (scales if len(scales) == 1 else scales[of_block]).T
        whole = score.log_ratio(scores[each, one], scores[each, other])
        return parts, {"calibration": score.log_ratio(whole, parts.sum(axis=1))}

    def _parts(self, table: Any, block: Any, chain: bool = False) -> tuple[list[str], Array, Array, Array]:
        """Names (P,), log densities (n, K, P), values (n, P) and blocks (P,) of the parts the density is a sum of."""
        product = isinstance(self.family_, Product)
        names: list[str] = []
        parts: list[Array] = []
        values: list[Any] = []
        whole: Any = self.density
        of_block: list[int] = []
        for place, (name, at) in enumerate(self._places().items()):
            density, X = (whole.blocks[name], block.parts[name]) if product else (whole, block)
            if hasattr(density, "named_parts"):  # words, which are no columns
                words, said, counts = density.named_parts(X)
                names += words if len(self._places()) == 1 else [f"{name}: {word}" for word in words]
                parts.append(said)
                values.append(counts)
                of_block += [place] * len(words)
                continue
            total = density.log_density(X)
            if isinstance(density, HasParts) and sp.issparse(X) and isinstance(density, HasSelection):
                at = [at[j] for j in np.unique(X.indices[X.data != 0])]  # only the events that occur in these rows
                density, X = density.select(np.array(at, dtype=np.intp)), X[:, at].toarray()
            split = isinstance(density, HasParts)
            if not split and chain and isinstance(density, HasSelection) and not sp.issparse(X):
                density, split = Chained(density), True
            if split:
                names += [str(self.columns_[j]) for j in at]
                parts.append(density.parts(X))
                values.append(table.pick(at))
                rest = score.log_ratio(total, parts[-1].sum(axis=2))  # what no single feature says
            else:
                rest, name = total, name if product else "all features together"
            if np.abs(rest).max(initial=0) > 1e-12 * max(1, np.abs(total[np.isfinite(total)]).max(initial=0)):
                names.append(f"{name}: all else" if split else name)
                parts.append(rest[:, :, None])
                values.append(np.full((len(table), 1), None, dtype=object))
            of_block += [place] * (len(names) - len(of_block))
        held = [np.asarray(v.toarray() if sp.issparse(v) else v).astype(object) for v in values]
        return names, np.concatenate(parts, axis=2), np.concatenate(held, axis=1), np.array(of_block, dtype=np.intp)

    def _places(self) -> dict[str, list[int]]:
        if isinstance(self.family_, Product):
            return self.family_.positions(self.columns_)
        return {f"all {len(self.columns_)} columns": list(range(len(self.columns_)))}
