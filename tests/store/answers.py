"""Questions to the models of golden files: the writer stores the answers, the tests compare them.

The JSON file beside a golden file holds `rows`, `input` (the form in which the rows are given to the model), `labels`,
`new` (rows that were not learnt) and `key` (of the ledger) where a question needs them, and for each question of ASKED
that the model can answer one entry with the answer.
"""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from deciban import load

# how the rows of the JSON file are given to the model
INPUT = {
    "array": np.array,
    "numbers": lambda rows: np.array(rows, dtype=float),  # null is NaN
    "object": lambda rows: np.array(rows, dtype=object),
    "sparse": lambda rows: sp.csr_array(np.array(rows, dtype=float)),
    "texts": list,
    "sequences": list,
    "frame": lambda rows: pd.DataFrame(rows),
}


def changed(change, answer):
    """A question about a copy of the model: what it answers after learning or unlearning its labelled rows."""

    def ask(model, X, asked):
        getattr(model, change)(X, asked["labels"])
        return getattr(model, answer)(X)

    return ask


def _left_out(model, X, labels):
    """Left-out log-likelihoods without the terms of `log_base`: golden files were written without them."""
    predictor = model.predictor_
    shared = model.log_likelihood(X) - predictor.scores(predictor.model.encode(model._table(X)))
    return model.leave_one_out(X, labels, method="log_likelihood") - shared


# name of a question → function of the model, its rows, and the JSON's other entries
ASKED = {
    "classes": lambda model, X, asked: model.classes_.tolist(),
    "sums": lambda model, X, asked: model.stats_.rows.tolist(),
    "log_likelihood": lambda model, X, asked: model.log_likelihood(X),
    "predict_proba": lambda model, X, asked: model.predict_proba(X),
    "of_new": lambda model, X, asked: model.predict_proba(INPUT[asked["input"]](asked["new"])),  # rows not learnt
    "predict": lambda model, X, asked: model.predict(X).tolist(),
    "llr": lambda model, X, asked: model.llr(X, *model.classes_.tolist()[:2]),
    "leave_one_out": lambda model, X, asked: _left_out(model, X, asked["labels"]),
    "prequential": lambda model, X, asked: [model.prequential_.total, model.prequential_.rows, model.prequential_.new],
    "log_density": lambda model, X, asked: model.log_density(X),
    "log_density_predictive": lambda model, X, asked: model.log_density(X, "predictive"),
    "score_samples": lambda model, X, asked: model.score_samples(X),
    "transform": lambda model, X, asked: model.transform(X),
    "top_words": lambda model, X, asked: model.top_words(3),
    "perplexity": lambda model, X, asked: model.perplexity(X),
    "learn": changed("learn", "predict_proba"),
    "unlearn": changed("unlearn", "predict_proba"),
}
OTHER = {"rows", "input", "labels", "new", "key"}


def given(asked):
    """The rows of a golden file, as they are given to its model."""
    return INPUT[asked.get("input", "array")](asked["rows"])


def answers(path, asked, questions):
    """Question → answer of the model in a file, loaded anew before each question, for some change it."""
    found = {}
    for name in questions:
        model = load(path, key=asked.get("key"))
        found[name] = ASKED[name](model, given(asked), asked)
    return found
