"""Draw the pictures of the documentation: `python docs/images/make.py [NAME…]`; all of them without a name.

Data come with scikit-learn or are simulated, so every picture can be drawn anew anywhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris

from deciban import (
    Bernoulli,
    Categorical,
    Gaussian,
    GenerativeClassifier,
    HiddenMarkovModel,
    Mixture,
    TopicModel,
    plots,
)

HERE = Path(__file__).parent
PICTURES: dict[str, Callable[[], Any]] = {}
FEW = ["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]


def picture(draw: Callable[[], Any]) -> Callable[[], Any]:
    """Keep a picture under its name."""
    PICTURES[draw.__name__.replace("_", "-")] = draw
    return draw


# -- the models -------------------------------------------------------------------------------------------------------
def heights() -> Any:
    """Men and women, as known densities."""
    densities = {"man": Gaussian.of(175.33, 52.89), "woman": Gaussian.of(161.82, 46.89)}
    return GenerativeClassifier.from_densities(densities)


@cache
def tumours(few: bool = False) -> tuple[Any, Any]:
    """Cell nuclei: thirty measurements that repeat each other, or five."""
    data = load_breast_cancer(as_frame=True)
    return data.data[FEW] if few else data.data, data.target_names[data.target]


@cache
def judged(calibrate: str | None) -> Any:
    """Naive Bayes on all thirty, each row scored as if it had never been learnt."""
    X, y = tumours()
    clf = GenerativeClassifier(Gaussian("diagonal"), calibrate=calibrate).fit(X, y)
    return clf.evaluate(X, y, learnt=True)


@cache
def irises() -> tuple[Any, Any]:
    """Three flowers, by their petals."""
    data = load_iris(as_frame=True)
    return data.data[["petal length (cm)", "petal width (cm)"]], data.target_names[data.target]


def both(draw: Callable[..., Any], **options: Any) -> Any:
    """The same model without and with calibration."""
    ax = draw(judged(None), over="malignant", label="raw", **options)
    return draw(judged("offsets"), over="malignant", label="calibrated", ax=ax, **options)


# -- evidence and priors ----------------------------------------------------------------------------------------------
@picture
def height_densities() -> Any:
    """A person of 174 cm."""
    ax = plots.class_densities(heights(), at=174)
    ax.set_xlabel("height (cm)")
    ax.annotate("4.5 to 1: +6.5 dban", (174, 0.05395), (180, 0.0565), arrowprops={"arrowstyle": "-", "lw": 0.6})
    return ax


@picture
def height_prior() -> Any:
    """The same densities where nine of ten are women: the boundary moves."""
    ax = plots.class_densities(heights(), at=174, prior={"woman": 0.9})
    ax.set_xlabel("height (cm)")
    return ax


@picture
def regions_two() -> Any:
    """Two flowers, and priors that move the boundary."""
    X, y = irises()
    two = y != "setosa"
    clf = GenerativeClassifier(Gaussian("tied")).fit(X[two], y[two])
    also = {"virginica 1 in 100": {"virginica": 0.01}, "virginica 99 in 100": {"virginica": 0.99}}
    return plots.decision_regions(clf, tuple(X.columns), X[two], y[two], prior="uniform", also=also)


@picture
def regions_three() -> Any:
    """Three flowers, each with a covariance of its own."""
    X, y = irises()
    clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    return plots.decision_regions(clf, tuple(X.columns), X, y)


@picture
def ellipses() -> Any:
    """The same three Gaussians as ellipses."""
    X, y = irises()
    clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    return plots.covariance_ellipses(clf, tuple(X.columns), X, y)


# -- judging ----------------------------------------------------------------------------------------------------------
@picture
def bayes_error() -> Any:
    """What miscalibration costs, at every prior."""
    return both(plots.bayes_error)


@picture
def roc() -> Any:
    """Hits against false alarms."""
    return plots.roc(judged(None), over="malignant")


@picture
def det() -> Any:
    """The same on probit axes."""
    return plots.det(judged(None), over="malignant")


@picture
def tippett() -> Any:
    """How much evidence, how often."""
    return plots.tippett(judged("offsets"), over="malignant")


@picture
def llr_histogram() -> Any:
    """How the evidence is spread."""
    return plots.llr_histogram(judged("offsets"), over="malignant")


@picture
def reliability() -> Any:
    """Promised and kept."""
    return both(plots.reliability)


@picture
def empirical_cross_entropy() -> Any:
    """The cost in bits, at every prior."""
    return both(plots.empirical_cross_entropy)


# -- one answer, and parameters ---------------------------------------------------------------------------------------
@picture
def evidence_bars() -> Any:
    """One tumour, taken apart."""
    X, y = tumours(few=True)
    clf = GenerativeClassifier(Gaussian("diagonal"), rule="ml").fit(X, y)
    return plots.evidence_bars(clf.explain(X.iloc[[13]], "malignant", "benign"))


@picture
def nomogram() -> Any:
    """The same tumour, on paper."""
    X, y = tumours(few=True)
    clf = GenerativeClassifier(Gaussian("tied diagonal"), rule="ml").fit(X, y)
    return plots.nomogram(clf, X, "malignant", "benign", row=13)


@picture
def beta() -> Any:
    """A coin: what is known before, after ten flips, and after a hundred."""
    ten = [1, 1, 0, 0, 0, 1, 0, 1, 1, 1]
    coin = Bernoulli()
    return plots.beta({"no flips": (1, 1), "10 flips": coin.fit(ten), "100 flips": coin.fit(10 * ten)})


@picture
def dirichlet() -> Any:
    """Three sorts of cats among twelve."""
    cats = np.repeat(["black", "white", "orange"], [6, 4, 2])
    fitted = Categorical(categories=[["black", "white", "orange"]]).fit(cats[:, None])
    return plots.dirichlet(fitted, corners=("black", "white", "orange"), draws=200)


# -- hidden variables --------------------------------------------------------------------------------------------------
@cache
def eruptions() -> Any:
    """Eruptions like those of Old Faithful: minutes of eruption, minutes of rest."""
    rng = np.random.default_rng(0)
    short = rng.multivariate_normal([2.04, 54.5], [[0.07, 0.44], [0.44, 33.7]], 97)
    return np.r_[short, rng.multivariate_normal([4.29, 80.0], [[0.17, 0.94], [0.94, 36.0]], 175)]


@picture
def clusters() -> Any:
    """Two kinds of eruption, found without labels."""
    ax = plots.clusters(Mixture(Gaussian(), 2).fit(eruptions(), random_state=0), eruptions())
    ax.set(xlabel="eruption (minutes)", ylabel="rest (minutes)")
    return ax


@picture
def em_trace() -> Any:
    """EM from a start that knows nothing."""
    start = np.random.default_rng(1).dirichlet(np.ones(2), 272)
    return plots.em_trace(Mixture(Gaussian(), 2).fit(eruptions(), start=start), rows=272)


@picture
def state_sequence() -> Any:
    """A casino that swaps its dice."""
    dice = {"fair": Categorical.of([1 / 6] * 6), "loaded": Categorical.of([0.1] * 5 + [0.5])}
    casino = HiddenMarkovModel.from_densities(dice, start=[0.5, 0.5], transitions=[[0.98, 0.02], [0.05, 0.95]])
    rolls, rolled = casino.sample(300, random_state=3)
    return plots.state_sequence(casino, rolls, rolled)


@cache
def tales() -> tuple[Any, list[str]]:
    """Short tales of four subjects, each with its own words, some of two."""
    subjects = [
        ["ship", "sail", "sea", "harbour", "captain", "storm", "wave", "anchor"],
        ["wolf", "sheep", "forest", "shepherd", "night", "howl", "flock", "hill"],
        ["bread", "oven", "flour", "baker", "dough", "salt", "yeast", "loaf"],
        ["king", "crown", "castle", "knight", "throne", "sword", "queen", "banner"],
    ]
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(4, 0.15), 300)
    habits = [rng.dirichlet(np.full(8, 2.0)) for _ in subjects]
    texts = [" ".join(rng.choice(subjects[t], p=habits[t]) for t in rng.choice(4, 40, p=p)) for p in shares]
    return TopicModel(4, random_state=0).fit(texts), texts


@picture
def topic_map() -> Any:
    """Topics, the nearer the more alike."""
    return plots.topic_map(tales()[0])


@picture
def topic_words() -> Any:
    """The words of a topic."""
    return plots.topic_words(tales()[0], 0)


@picture
def topic_shares() -> Any:
    """What one document is about, and how sure that is."""
    return plots.topic_shares(*tales(), row=3)


def main() -> None:
    """Write the pictures that are asked for."""
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(PICTURES)}")
    wanted = parser.parse_args().names or list(PICTURES)
    if unknown := [name for name in wanted if name not in PICTURES]:
        parser.error(f"no picture {', '.join(unknown)}; there are {', '.join(PICTURES)}")
    matplotlib.use("agg")
    for name in wanted:
        axes = PICTURES[name]()
        axes.figure.savefig(HERE / f"{name}.png", dpi=90)
        plt.close(axes.figure)
        print(f"{name}.png")


if __name__ == "__main__":
    main()
