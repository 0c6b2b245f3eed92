"""Writes the golden files that are not there yet: `python tests/store/write_golden.py`. Never write one again.

A golden file and its answers show that files of a version load for ever. A new kind of model gets a new file.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from deciban import Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson, release

GOLDEN = Path(__file__).parent / "golden"
FORMAT = 1
y = np.array(["no", "yes", "yes", "no", "yes", "no", "yes", "no"])
TABLE = np.array(
    [
        [1.5, 2.0, "red", 3],
        [2.25, 1.0, "grün", 0],
        [2.5, 1.75, "red", 1],
        [0.5, 2.5, "blue", 4],
        [3.0, 0.5, "grün", 0],
        [1.0, 3.25, "red", 2],
        [2.75, 1.5, "blue", 1],
        [0.25, 2.25, "red", 5],
    ],
    dtype=object,
)
COUNTS = np.array([[2, 0, 1], [0, 3, 1], [1, 2, 0], [4, 0, 0], [0, 1, 1], [3, 1, 0], [0, 2, 2], [1, 0, 1]])
MANY = [[f"word {i % 40}"] for i in range(80)]


def models():
    """Name → model and rows to ask about."""
    families = {(0, 1): Gaussian("tied"), 2: Categorical(), 3: Poisson()}
    mixed = GenerativeClassifier(families, rule="predictive", prior={"yes": 0.25}, cost={("yes", "no"): 3.0}).fit(
        TABLE, y
    )
    ledger = GenerativeClassifier(Multinomial(), ledger="the golden key").fit(COUNTS, y).decay(0.5).learn(COUNTS, y)
    words = GenerativeClassifier(Categorical(open=True), classes=["a", "b"]).fit(MANY, ["a", "b"] * 40)
    known = GenerativeClassifier.from_densities({1: Gaussian.of(0.0, 1.0), 2: Gaussian.of(1.0, 4.0)})
    return {
        "mixed": (mixed, TABLE),
        "mixed-released": (release(mixed), TABLE),
        "ledger": (ledger, COUNTS),
        "words": (words, np.array([*MANY[:3], ["none of them"]], dtype=object)),
        "known": (known, np.array([[0.5], [2.0]])),
        "full": (GenerativeClassifier(Gaussian("full")).fit(TABLE[:, :2].astype(float), y), TABLE[:, :2].astype(float)),
    }


if __name__ == "__main__":
    for name, (model, rows) in models().items():
        path = GOLDEN / f"{name}-{FORMAT}.deciban"
        if not path.exists():
            model.save(path)
            answers = {
                "rows": rows.tolist(),
                "classes": model.classes_.tolist(),
                "sums": model.stats_.rows.tolist(),
                "log_likelihood": model.log_likelihood(rows).tolist(),
                "predict_proba": model.predict_proba(rows).tolist(),
            }
            path.with_suffix(".json").write_text(json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
