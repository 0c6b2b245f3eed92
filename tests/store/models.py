"""Classifiers of every family and structure, small and made of fixed numbers, for the tests of model files."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Mixture, Multinomial, Poisson, Text

rng = np.random.default_rng(7)
N = 90
LABELS = np.array(["ham", "news", "spam"])
y = LABELS[rng.integers(0, 3, N)]
COUNTS = rng.poisson(2.0, (N, 5)) + (y == "spam")[:, None] * rng.poisson(2, (N, 5))
FLAGS = (COUNTS > 2).astype(float)
NUMBERS = rng.normal(3, 2, (N, 4)) + (y == "ham")[:, None]
COLOURS = rng.choice(["red", "green", "blå"], (N, 2)).astype(object)
TEXTS = np.array([" ".join(np.repeat(["red", "blå", "green", "NUL\0", "日本 fem"], row)) for row in COUNTS], object)
FRAME = pd.DataFrame(
    {
        "height": NUMBERS[:, 0],
        "width": np.where(rng.random(N) < 0.1, np.nan, NUMBERS[:, 1]),
        "colour": COLOURS[:, 0],
        "wild": rng.random(N) < 0.5,
        "events": COUNTS[:, 0],
    }
)

ODD = pd.DataFrame({"ett två": NUMBERS[:, 0], "key": COLOURS[:, 0], "class": COUNTS[:, 0]})

DISCRETE = {
    "multinomial": (Multinomial(), COUNTS),
    "multinomial-csr": (Multinomial(0.5), sp.csr_array(COUNTS.astype(float))),
    "multinomial-evidence": (Multinomial("evidence"), COUNTS),
    "poisson": (Poisson(1.5), COUNTS),
    "poisson-chosen": (Poisson(), COUNTS),
    "bernoulli": (Bernoulli(2.0, [1.0, 2.0, 3.0, 1.5, 1.25]), FLAGS),
    "bernoulli-csr": (Bernoulli(), sp.csr_array(FLAGS)),
    "categorical": (Categorical(), COUNTS),
    "strings": (Categorical(open=True), COLOURS),
    "joint": (Categorical(joint=True), COLOURS),
    "declared": (Categorical(categories=["blå", "green", "mauve", "red"]), COLOURS),
    "text": (Text(pseudo_count=0.5, transform="log"), TEXTS),
    "text-growing": (Text("bernoulli", pseudo_count=1.5, vocabulary="growing", unk=2.0), TEXTS),
    "text-chosen": (Text(ngrams="auto", stop_words=["red"]), TEXTS),
    "text-derived-idf": (Text(transform="log+idf", pseudo_count=1.5), TEXTS),
    "text-idf": (Text(transform="log+idf+unit", pseudo_count=1.5, min_df=2), TEXTS),
    "product": ({0: Poisson(), (1, 2): Multinomial(), 3: Categorical()}, COUNTS),
}
GAUSSIAN = {
    structure.replace(" ", "-"): (Gaussian(structure), NUMBERS)
    for structure in ("full", "tied", "diagonal", "tied diagonal", "spherical", "tied spherical", "auto")
}
MIXED = {
    "frame": ("auto", FRAME),
    "frame-named": ({("height", "events"): Gaussian("tied"), "colour": Categorical(), "wild": Bernoulli()}, FRAME),
    "odd names": ({"ett två": Gaussian(), "key": Categorical(), "class": Multinomial()}, ODD),
    "mixture": (Mixture(Gaussian("diagonal"), 2), NUMBERS),
    "gaussian-sparse": (Gaussian("diagonal"), sp.csr_array(NUMBERS * (NUMBERS > 3))),
    "shrunk": (Gaussian("full", strength=20, target="tied"), NUMBERS),
}
FAMILIES = DISCRETE | GAUSSIAN | MIXED


def some(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def fitted(name, rule="mean", **parameters):
    """A classifier that was fitted, and its rows."""
    families, X = FAMILIES[name]
    if name == "categorical" and rule == "map":
        families = Categorical(2.0)
    return GenerativeClassifier(families, rule=rule, **parameters).fit(X, y), X
