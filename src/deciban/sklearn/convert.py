"""Fitted models of scikit-learn as classifiers of deciban, and back, where both have the same model."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import scipy.linalg
import sklearn.discriminant_analysis
import sklearn.mixture
import sklearn.naive_bayes
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, NotAvailableError
from deciban.estimators.classifier import GenerativeClassifier
from deciban.estimators.clustering import MixtureModel
from deciban.families.bernoulli import Bernoulli, BernoulliStats
from deciban.families.categorical import Categorical, CategoricalStats
from deciban.families.fixed import KnownDensities
from deciban.families.gaussian import DiagonalStats, Gaussian, GaussianStats
from deciban.families.gaussian.densities import NormalDensity
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.families.protocol import Family
from deciban.model.model import Model, ModelStats, Reader, Reason, class_axis
from deciban.model.predictor import Predictor
from deciban.sklearn.dropin import Array, DropIn
from deciban.statistics import Axis, Ragged, Stats

MADE = Reason("made of a fitted model of scikit-learn")


# -- from scikit-learn -------------------------------------------------------------------------------------------------
def from_sklearn(estimator: Any) -> GenerativeClassifier:
    """Return a classifier of deciban with the model of a fitted estimator of scikit-learn.

    Classifiers of naive Bayes keep their sums: the result learns, unlearns and adds. So do discriminant analyses of
    deciban.sklearn without shrinkage; those of scikit-learn, which hold no sums, become known densities, which can
    answer, but not learn.

    Parameters
    ----------
    estimator : GaussianNB, MultinomialNB, BernoulliNB, CategoricalNB, LinearDiscriminantAnalysis or \
QuadraticDiscriminantAnalysis
        A fitted estimator, or a drop-in. A linear discriminant analysis of scikit-learn must have its `covariance_`.

    Returns
    -------
    GenerativeClassifier
        A fitted classifier that gives the same posterior probabilities. `BernoulliNB` thresholds its rows; the result
        takes rows of 0 and 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from deciban.sklearn import from_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = from_sklearn(GaussianNB().fit(X[::2], y[::2])).learn(X[1::2], y[1::2])
    >>> clf.llr(X[:1], 0, 1, unit="decibans").round()
    array([179.])
    """
    check_is_fitted(estimator)
    for kind, convert in FROM.items():
        if isinstance(estimator, kind):
            clf = convert(estimator)
            if hasattr(estimator, "feature_names_in_"):
                clf.feature_names_in_ = estimator.feature_names_in_
            return clf
    names = ", ".join(kind.__name__ for kind in FROM)
    raise NotAvailableError(f"{type(estimator).__name__} has no equivalent among deciban's models. There are: {names}.")


def _with_sums(family: Family[Any], sums: Stats, rule: Any, estimator: Any, prior: Any) -> GenerativeClassifier:
    """Return a classifier of these sums."""
    axis = class_axis((), estimator.classes_.tolist())
    counts = estimator._moments.weight if isinstance(sums, GaussianStats) else estimator.class_count_
    stats = ModelStats({"class": axis}, np.asarray(counts, dtype=float), sums)
    names = getattr(estimator, "feature_names_in_", None)
    reader = Reader(range(estimator.n_features_in_) if names is None else tuple(names))
    clf = GenerativeClassifier(family, rule=rule, prior=prior)
    clf.n_features_in_ = estimator.n_features_in_
    model = Model(family, stats, reader, rule, family, (MADE,), chosen_on=float(stats.rows.sum()))
    return clf.use(Predictor(model, model.density()))


def _labels(estimator: Any, **others: Any) -> dict[str, Any]:
    return {"class": class_axis((), estimator.classes_.tolist()), **others}


def _from_gaussian(nb: Any) -> GenerativeClassifier:
    count = np.asarray(nb.class_count_, dtype=float)[:, None]
    mean, variance = np.asarray(nb.theta_, dtype=float), np.asarray(nb.var_, dtype=float)
    origin = (count * mean).sum(axis=0) / count.sum()
    shift, weight = mean - origin, np.repeat(count, mean.shape[1], axis=1)
    labels = _labels(nb, feature=Axis.of(mean.shape[1]))
    sums = DiagonalStats(labels, weight, count * shift, count * (variance + shift**2), origin)
    prior = "learnt" if nb.priors is None else nb.class_prior_.tolist()
    return _with_sums(Gaussian("diagonal", origin=origin), sums, "ml", nb, prior)


def _discrete_prior(nb: Any) -> Any:
    if nb.class_prior is None and nb.fit_prior:
        return "learnt"
    return np.exp(nb.class_log_prior_).tolist()


def _from_multinomial(nb: Any) -> GenerativeClassifier:
    K, V = nb.feature_count_.shape
    labels = _labels(nb, word=Axis.of(V))
    sums = MultinomialStats(labels, nb.feature_count_, nb.class_count_, np.zeros((K, 2)))
    return _with_sums(Multinomial(_alpha(nb)), sums, "mean", nb, _discrete_prior(nb))


def _from_bernoulli(nb: Any) -> GenerativeClassifier:
    labels = _labels(nb, feature=Axis.of(nb.feature_count_.shape[1]))
    sums = BernoulliStats(labels, nb.feature_count_, nb.class_count_[:, None] - nb.feature_count_)
    return _with_sums(Bernoulli(_alpha(nb), _alpha(nb)), sums, "mean", nb, _discrete_prior(nb))


def _from_categories(nb: Any) -> GenerativeClassifier:
    sizes = [table.shape[1] for table in nb.category_count_]
    labels = _labels(nb, category=Ragged(tuple(Axis(tuple(range(size))) for size in sizes)))
    sums = CategoricalStats(labels, np.concatenate(nb.category_count_, axis=1))
    family = Categorical(_alpha(nb), categories=[list(range(size)) for size in sizes])
    return _with_sums(family, sums, "mean", nb, _discrete_prior(nb))


def _alpha(nb: Any) -> Any:
    alpha = nb._check_alpha()
    return float(alpha) if np.ndim(alpha) == 0 else np.asarray(alpha, dtype=float)


def _from_linear(analysis: Any) -> GenerativeClassifier:
    if _has_sums(analysis) and (analysis.priors is None or analysis.solver == "svd"):
        return _from_moments(analysis, "tied")
    if not hasattr(analysis, "covariance_"):
        raise NotAvailableError("this analysis has no covariance_. Fit it with store_covariance=True.")
    return _known(analysis, [analysis.covariance_] * len(analysis.classes_))


def _has_sums(analysis: Any) -> bool:
    """Whether an analysis keeps sums from which its covariances follow without shrinkage."""
    plain = not analysis.shrinkage and analysis.covariance_estimator is None and not getattr(analysis, "reg_param", 0)
    return plain and getattr(analysis, "_moments", None) is not None


def _from_moments(analysis: Any, structure: Any) -> GenerativeClassifier:
    origin, (weight, first, second) = analysis._moments.about_mean()
    labels = _labels(analysis, feature=Axis.of(len(origin)))
    prior = "learnt" if analysis.priors is None else analysis.priors_.tolist()
    family = Gaussian(structure, origin=origin)
    return _with_sums(family, GaussianStats(labels, weight, first, second, origin), "ml", analysis, prior)


def _from_quadratic(analysis: Any) -> GenerativeClassifier:
    if _has_sums(analysis):
        return _from_moments(analysis, "full")
    covariances = [(R * s) @ R.T for R, s in zip(analysis.rotations_, analysis.scalings_)]
    return _known(analysis, covariances)


def _known(analysis: Any, covariances: list[Array]) -> GenerativeClassifier:
    """Return a classifier of Gaussians with known means and covariances."""
    each = zip(analysis.classes_.tolist(), analysis.means_, covariances)
    densities = {name: Gaussian.of(mean, covariance) for name, mean, covariance in each}
    return GenerativeClassifier.from_densities(densities, prior=np.asarray(analysis.priors_, dtype=float).tolist())


FROM: dict[type, Callable[[Any], GenerativeClassifier]] = {
    sklearn.naive_bayes.GaussianNB: _from_gaussian,
    sklearn.naive_bayes.MultinomialNB: _from_multinomial,
    sklearn.naive_bayes.BernoulliNB: _from_bernoulli,
    sklearn.naive_bayes.CategoricalNB: _from_categories,
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis: _from_linear,
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis: _from_quadratic,
}


# -- to scikit-learn ---------------------------------------------------------------------------------------------------
def to_sklearn(estimator: GenerativeClassifier | MixtureModel | DropIn | Pipeline) -> Any:
    """Return an estimator of scikit-learn with the model of a fitted estimator.

    It is scikit-learn's own class, so that programs without deciban can use a pickle of it. Pickle it after
    `unpatch_sklearn()`: under the patch, its class is not the one that pickle finds under its name.

    Parameters
    ----------
    estimator : GenerativeClassifier, MixtureModel, class of deciban.sklearn, or Pipeline
        A fitted classifier of one Gaussian, `Multinomial`, `Bernoulli` or `Categorical`, without calibration and not
        under rule "predictive", or of known normal densities. Categories must be the numbers 0, 1, …. Or a mixture of
        Gaussians; or a drop-in whose own options, such as `handle_missing`, have their defaults; or a pipeline of such
        estimators and others.

    Returns
    -------
    estimator
        A fitted GaussianNB (diagonal Gaussians), LinearDiscriminantAnalysis (tied), QuadraticDiscriminantAnalysis
        (full), MultinomialNB, BernoulliNB or CategoricalNB; a GaussianMixture; or the class of the drop-in's name.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> from deciban.sklearn import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> to_sklearn(GenerativeClassifier(Gaussian("tied")).fit(X, y)).predict(X[:2])
    array([0, 0])
    """
    if isinstance(estimator, DropIn):
        return _plain(estimator)
    if isinstance(estimator, Pipeline):
        return _of_pipeline(estimator)
    if not isinstance(estimator, GenerativeClassifier | MixtureModel):
        wrong = "has no equivalent in scikit-learn" if _of_deciban(estimator) else "is no class of deciban"
        raise NotAvailableError(f"{type(estimator).__name__} {wrong}. Convert the estimators that it holds.")
    check_is_fitted(estimator)
    found = _of_mixture(estimator) if isinstance(estimator, MixtureModel) else _of_classifier(estimator)
    found.n_features_in_ = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        found.feature_names_in_ = estimator.feature_names_in_
    return found


def _plain(estimator: Any) -> Any:
    """Return scikit-learn's estimator with the parameters and the fitted attributes of a drop-in."""
    check_is_fitted(estimator)
    original = type(estimator).original
    if original is None:
        raise NotAvailableError(f"{type(estimator).__name__} is no class of scikit-learn.")
    given, theirs = estimator.get_params(deep=False), original._get_param_names()
    for name in given.keys() - set(theirs):
        if given[name] is not estimator._defaults[name]:
            raise NotAvailableError(f"scikit-learn's {original.__name__} has no {name}={given[name]!r}.")
    plain = original(**{name: given[name] for name in theirs})
    for name, value in vars(estimator).items():
        if name not in given and name != "_vocabulary":  # vectorizers derive `vocabulary_` from it
            value = _plain(value) if isinstance(value, DropIn) else value
            if not _of_deciban(value):
                setattr(plain, name, deepcopy(value))
    if hasattr(estimator, "vocabulary_"):
        plain.vocabulary_ = dict(estimator.vocabulary_)
    return plain


def _of_deciban(value: Any) -> bool:
    return type(value).__module__.startswith("deciban.")


def _of_pipeline(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with converted steps of deciban; its other steps are the same objects."""
    found = copy(pipeline)
    found.steps = [(name, to_sklearn(step) if _of_deciban(step) else step) for name, step in pipeline.steps]
    return found


def _of_mixture(model: MixtureModel) -> Any:
    family = model.fitted_.family
    if type(family) is not Gaussian:
        raise NotAvailableError(f"a mixture of {type(family).__name__} has no equivalent in scikit-learn.")
    kind = {"full": "full", "tied": "tied"}.get(family.structure, "diag")
    covariances = {"full": model.covariances_, "tied": model.covariances_[0]}.get(kind)
    if covariances is None:
        covariances = np.diagonal(model.covariances_, axis1=1, axis2=2).copy()
    mixture = sklearn.mixture.GaussianMixture(model.n_components_, covariance_type=kind)
    mixture.weights_, mixture.means_, mixture.covariances_ = model.weights_, model.means_, covariances
    mixture.precisions_cholesky_ = _compute_precision_cholesky(covariances, kind)
    mixture.converged_, mixture.n_iter_, mixture.lower_bound_ = model.converged_, model.n_iter_, model.lower_bound_
    mixture._set_parameters(mixture._get_parameters())  # derives `precisions_`
    return mixture


def _of_classifier(clf: GenerativeClassifier) -> Any:
    model = clf.model_
    if model.calibration is not None:
        raise NotAvailableError("scikit-learn's classes have no calibration. Fit with calibrate=None.")
    if model.rule == "predictive":
        raise NotAvailableError("scikit-learn's classes do not integrate parameters out. Use reestimate(rule='mean').")
    convert = TO.get(type(model.family))
    if convert is None:
        raise NotAvailableError(f"{type(model.family).__name__} has no equivalent in scikit-learn.")
    found = convert(clf)
    found.classes_ = clf.classes_
    return found


def _to_gaussian(clf: GenerativeClassifier) -> Any:
    structure = clf.family_.structure  # type: ignore[attr-defined]
    if structure in ("full", "tied"):
        return _to_quadratic(clf) if structure == "full" else _to_linear(clf)
    nb = sklearn.naive_bayes.GaussianNB()
    nb.theta_, nb.var_, nb.epsilon_ = clf.means_, clf.variances_, 0.0
    nb.class_count_, nb.class_prior_ = clf.class_count_, clf.class_prior_
    return nb


def _to_known(clf: GenerativeClassifier) -> Any:
    if not all(isinstance(density, NormalDensity) for density in clf.family_.densities):  # type: ignore[attr-defined]
        raise NotAvailableError("densities that are not all normal have no equivalent in scikit-learn.")
    covariances = clf.covariances_
    return _to_linear(clf) if (covariances == covariances[0]).all() else _to_quadratic(clf)


def _to_linear(clf: GenerativeClassifier) -> Any:
    analysis = sklearn.discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr")
    covariance = clf.covariances_[0]
    analysis.means_, analysis.priors_, analysis.covariance_ = clf.means_, clf.class_prior_, covariance
    coef = scipy.linalg.solve(covariance, clf.means_.T, assume_a="pos").T
    intercept = -0.5 * (clf.means_ * coef).sum(axis=1) + clf.log_prior()
    if len(clf.classes_) == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    analysis.coef_, analysis.intercept_ = coef, intercept
    return analysis


def _to_quadratic(clf: GenerativeClassifier) -> Any:
    analysis = sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis(store_covariance=True)
    values, vectors = np.linalg.eigh(clf.covariances_)
    analysis.means_, analysis.priors_, analysis.covariance_ = clf.means_, clf.class_prior_, list(clf.covariances_)
    analysis.scalings_, analysis.rotations_ = list(values), list(vectors)
    return analysis


def _to_multinomial(clf: GenerativeClassifier) -> Any:
    alpha: Any = clf.family_.pseudo_count  # type: ignore[attr-defined]
    nb = sklearn.naive_bayes.MultinomialNB(alpha=alpha if isinstance(alpha, (int, float)) else 1.0)
    nb.feature_count_ = clf.stats_.family.counts
    return _discrete(nb, clf)


def _to_bernoulli(clf: GenerativeClassifier) -> Any:
    nb = sklearn.naive_bayes.BernoulliNB(binarize=None)
    nb.feature_count_ = clf.stats_.family.ones
    return _discrete(nb, clf)


def _to_categories(clf: GenerativeClassifier) -> Any:
    names = clf.density.names  # type: ignore[attr-defined]
    for j, each in enumerate(names):
        if list(each) != list(range(len(each))):
            raise HyperparameterError(f"CategoricalNB has categories 0, 1, …; column {j} has {list(each)[:5]!r}.")
    nb = sklearn.naive_bayes.CategoricalNB()
    nb.category_count_ = np.split(clf.stats_.family.counts, np.cumsum([len(each) for each in names])[:-1], axis=1)
    nb.n_categories_ = np.array([len(each) for each in names])
    return _discrete(nb, clf)


def _discrete(nb: Any, clf: GenerativeClassifier) -> Any:
    nb.feature_log_prob_, nb.class_count_, nb.class_log_prior_ = (
        clf.feature_log_prob_,
        clf.class_count_,
        clf.log_prior(),
    )
    return nb


TO: dict[type, Callable[[GenerativeClassifier], Any]] = {
    Gaussian: _to_gaussian,
    Multinomial: _to_multinomial,
    Bernoulli: _to_bernoulli,
    Categorical: _to_categories,
    KnownDensities: _to_known,
}
