"""Answers: evidence first, then posteriors and decisions at whatever prior and cost the asker has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from deciban import decide, score
from deciban.errors import InputError, NotAvailableError
from deciban.estimators import model
from deciban.estimators.calibration import total
from deciban.estimators.learning import Learning
from deciban.explain import Explanation
from deciban.families.product import Blocks, Product
from deciban.families.protocol import HasParts, HasPolynomial, HasSelection
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


class Answers(Learning):
    """What a classifier says of rows."""

    # -- evidence: no prior in it ----------------------------------------------------------------------------------
    def log_likelihood(self, X: Any, *, raw: bool = False) -> Array:
        """(n, K) log f(x|class), every constant included; calibrated, unless `raw`."""
        block = self._block(X)
        return self._evidence(block, raw) + np.reshape(self.density.log_base(block), (-1, 1))

    def llr(
        self, X: Any, over: Any = None, against: Any = None, *, unit: str = "nats", prior: Any = None, raw: bool = False
    ) -> Array:
        """(n,) the weight of evidence for a class over another, or over the rest weighed by the prior.

        With two classes and nothing named: classes_[1] over classes_[0].
        """
        scores = self._evidence(self._block(X), raw)
        one, other = self._pair(over, against)
        return score.convert(score.llr(scores, one, other, self._log_prior(prior)), unit)

    # -- posteriors -----------------------------------------------------------------------------------------------
    def predict_log_proba(self, X: Any, prior: Any = None, *, raw: bool = False) -> Array:
        """(n, K) log P(class|x)."""
        scores = self._evidence(self._block(X), raw)
        spare = scores if scores.dtype == float and scores.flags.writeable else None
        return score.log_posterior(scores, self._log_prior(prior), out=spare)

    def predict_proba(self, X: Any, prior: Any = None, *, raw: bool = False) -> Array:
        """(n, K) P(class|x)."""
        return np.exp(self.predict_log_proba(X, prior, raw=raw))

    def decision_function(self, X: Any, prior: Any = None, *, raw: bool = False) -> Array:
        """Posterior log-odds (n,) of classes_[1] where there are two classes, else log posteriors (n, K)."""
        return self._answer("decision_function", self._evidence(self._block(X), raw), self._log_prior(prior))

    def log_marginal(self, X: Any, prior: Any = None) -> Array:
        """(n,) log Σ_c P(c) f(x|c): how well the model as a whole explains each row."""
        return score.log_marginal(self.log_likelihood(X), self._log_prior(prior))

    # -- decisions --------------------------------------------------------------------------------------------------
    def predict(self, X: Any, prior: Any = None, cost: Any = None) -> Array:
        """(n,) the class of least expected cost; at equal costs the most probable one."""
        return self._answer("predict", self._evidence(self._block(X)), self._log_prior(prior), cost)

    def decide(
        self,
        X: Any,
        *,
        unsure: float | None = None,
        reject_cost: float | None = None,
        prior: Any = None,
        cost: Any = None,
    ) -> decide.Decisions:
        """Label (None where unsure), posterior, llr over the runner-up, and expected cost of each row."""
        scores = self._evidence(self._block(X))
        prior, cost = np.exp(self._log_prior(prior)), self._cost(cost)
        return decide.Decisions.of(scores, prior, self.classes_, cost, unsure=unsure, reject_cost=reject_cost)

    # -- why ----------------------------------------------------------------------------------------------------------
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

    def sample(self, n: int = 1, random_state: Any = None, *, prior: Any = None) -> tuple[Any, Array]:
        """N rows like the ones learnt, and their labels."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        codes = rng.choice(len(self.classes_), size=n, p=np.exp(self._log_prior(prior)))
        rows = self.density.sample(codes, rng)
        if isinstance(rows, Blocks):  # columns side by side, in the order of the blocks
            columns = list(rows.parts.values())
            rows = sp.hstack(columns).tocsr() if all(map(sp.issparse, columns)) else np.column_stack(columns)
        return rows, self.classes_[codes]

    # -- the machinery --------------------------------------------------------------------------------------------
    def _block(self, X: Any) -> Any:
        check_is_fitted(self)
        return model.encode(self.family_, self._table(X), self.stats_.family)

    def _scores(self, block: Any) -> Array:
        """(n, K) log f(x|class) up to what all classes share; bad values are named when they show."""
        with np.errstate(invalid="ignore", over="ignore"):
            scores = self.density.log_density(block)
            whole = np.isfinite(scores.sum())
        if not whole:
            self.family_.check(block, [str(name) for name in self.columns_])
        return scores

    def _evidence(self, block: Any, raw: bool = False) -> Array:
        """The scores, calibrated where the model is."""
        if raw or self.calibration_ is None:
            return self._scores(block)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = model.block_scores(self.family_, self.density, block)
            whole = all(np.isfinite(part.sum()) for part in scores)
        if not whole:
            self.family_.check(block, [str(name) for name in self.columns_])
        return self._calibrated(scores, block)

    def _calibrated(self, scores: list[Array], block: Any, raw: bool = False) -> Array:
        """Scores of each block, together; calibrated, unless `raw`."""
        if raw or self.calibration_ is None:
            return total(scores)
        return self.calibration_.apply(scores, model.block_lengths(self.family_, block), self.stats_.classes)

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

    def _answer(self, method: str, scores: Array, log_prior: Array, cost: Any = None) -> Array:
        """What `method` says of these log-likelihoods; log_prior is (K,), or (n, K) in leave-one-out."""
        if method == "log_likelihood":
            return scores
        if method == "decision_function" and len(self.classes_) == 2:
            joint = score.log_joint(scores, log_prior)
            return score.log_ratio(joint[:, 1], joint[:, 0])
        if method == "llr":
            return score.llr(scores, *self._pair(None, None))
        if method == "predict" and cost is None and self.cost is None:
            joint = score.log_joint(scores, log_prior)
            best = joint.argmax(axis=1)
            if not np.isneginf(joint[np.arange(len(best)), best]).any():
                return self.classes_[best]
        log_posterior = score.log_posterior(scores, log_prior)
        if method == "predict":
            return self.classes_[decide.decide(log_posterior, self._cost(cost))]
        if method == "predict_proba":
            return np.exp(log_posterior)
        if method == "decision_function" and len(self.classes_) == 1:
            return log_posterior[:, 0]
        if method in ("predict_log_proba", "decision_function"):
            return log_posterior
        raise InputError(
            f"method={method!r} is not an answer. Use predict, predict_proba, predict_log_proba, decision_function, "
            "log_likelihood or llr."
        )

    def _log_prior(self, prior: Any = None) -> Array:
        check_is_fitted(self)
        given = self.prior if prior is None else prior
        return score.log_probability(decide.resolve_prior(given, self.classes_, self.stats_.rows))

    def _cost(self, cost: Any = None) -> Array:
        return decide.resolve_cost(self.cost if cost is None else cost, self.classes_)

    def _pair(self, over: Any, against: Any) -> tuple[int, int | None]:
        if over is None:
            if len(self.classes_) != 2:
                raise InputError(f"there are {len(self.classes_)} classes: name the one the evidence is for.")
            return 1, 0
        place = {name: at for at, name in enumerate(self.classes_.tolist())}
        for name in (over, against):
            if name is not None and name not in place:
                raise InputError(f"no such class: {name!r}; the model knows {list(place)}.")
        return place[over], None if against is None else place[against]

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
