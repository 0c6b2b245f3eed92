"""The classifier: one family, or one per column, for every class; a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from deciban.errors import InputError
from deciban.estimators.storing import Storing
from deciban.estimators.sureness import Sureness
from deciban.families.known import KnownDensities
from deciban.families.protocol import Density, Rule
from deciban.model.model import ModelStats, class_axis


class GenerativeClassifier(Storing, Sureness, ClassifierMixin, BaseEstimator):
    """Learns how each class produces data; answers with evidence, and can take it back.

    families : a family such as `Gaussian("tied")`, a dict of column → family, or "auto"
    rule     : how parameters are read: "ml", "map", "mean" (of the posterior) or "predictive" (integrated out)
    prior    : of the classes: "learnt", "uniform", a dict or an array; `prior=` of each call overrides it
    cost     : (true, decided) → cost, a dict or a K × K array; 0 and 1 where not given
    classes  : names declared before they are seen
    calibrate: "offsets", "length", "blocks", "affine", "pav" or None; "auto" where deciban chose, and for text
    ledger   : note a hash of every row, so that only rows that were learnt can be unlearnt; True, or a key
    kinds    : column → what it is, where "auto" is to be told: a kind such as "category" or "identifier", or a family

    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GenerativeClassifier(Gaussian("tied")).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> int((clf.leave_one_out(X, y, method="predict") != y).sum())    # 150 exact refits, for free
    3
    """

    def __init__(
        self,
        families: Any = "auto",
        *,
        rule: Rule = "mean",
        prior: Any = "learnt",
        cost: Any = None,
        classes: Any = None,
        calibrate: Any = "auto",
        ledger: Any = False,
        kinds: Any = None,
    ) -> None:
        self.families = families
        self.rule = rule
        self.prior = prior
        self.cost = cost
        self.classes = classes
        self.calibrate = calibrate
        self.ledger = ledger
        self.kinds = kinds

    @classmethod
    def from_densities(cls, densities: Mapping[Any, Density], prior: Any = "uniform", cost: Any = None) -> Self:
        """A classifier of known densities, one per class: nothing is learnt.

        >>> from deciban import Gaussian, GenerativeClassifier
        >>> men, women = Gaussian.of(175.33, 52.89), Gaussian.of(161.82, 46.89)
        >>> clf = GenerativeClassifier.from_densities({"m": men, "f": women})
        >>> round(float(np.exp(clf.llr([[174.0]], "m", "f"))[0]), 3)
        4.504
        """
        for name, density in densities.items():
            if not isinstance(density, Density) or density.K != 1:
                raise InputError(f"{name!r}: {density!r} is not one known density. Use for example Gaussian.of(0, 1).")
        family = KnownDensities(tuple(densities.values()))
        clf = cls(family, prior=prior, cost=cost)
        axis = class_axis((), list(densities))
        stats = ModelStats({"class": axis}, np.zeros(axis.size), family.no_sums(axis))
        D = family.densities[0].sample(np.zeros(1, dtype=np.intp), np.random.default_rng(0)).shape[1]
        clf.n_features_in_, clf.columns_, clf.asked_, clf.family_ = D, range(D), family, family
        clf.reasons_ = {f"all {D} columns": "known densities"}
        clf.decayed_ = clf.unlearnt_ = False
        clf.calibration_ = None
        return clf._set(stats, eager=True)

    @property
    def choices_(self) -> str:
        """Where the frozen choices come from, and whether they are out of date."""
        if self.unlearnt_:
            return "frozen at the first fit, and still reflecting rows unlearnt since; rechoose() takes them anew"
        return "frozen at the first fit"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
