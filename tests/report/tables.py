"""A table with every kind of column, whose names and values hold markup."""

import numpy as np
import pandas as pd

from deciban import Categorical, Gaussian, GenerativeClassifier, Poisson, Text, Transformed

NASTY = "<img src=x onerror=alert(1)>"


def mixed_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.4
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"])
    table = {
        "age": 40 + 10 * sick + 10 * rng.normal(size=n),
        "income": np.exp(rng.normal(size=n) + sick),
        "visits": rng.poisson(3 + 2 * sick),
        NASTY: np.where(rng.random(n) < 0.4 + 0.3 * sick, "</script><b>", rng.choice(["blue", "green & 'red'"], n)),
        "note": [
            " ".join(rng.choice(words, 9)) + (" win" if (one ^ (rng.random() < 0.1)) else " lose") for one in sick
        ],
        "state": np.where(sick, "sick <i>", "well"),
    }
    return pd.DataFrame(table)


def mixed_model(table):
    """A model with a family for each column, calibrated block by block."""
    families = {
        "age": Gaussian("diagonal"),
        "income": Transformed("log"),
        "visits": Poisson(),
        NASTY: Categorical(),
        "note": Text(),
    }
    kept = {name: family for name, family in families.items() if name in table.columns}
    return GenerativeClassifier(kept, calibrate="blocks", ledger=True).fit(table, "state")


def table_with_pairs(n=500, seed=0):
    """Columns whose pairs predict the class, with missing values that predict it, too."""
    rng = np.random.default_rng(seed)
    one, two, three = (rng.integers(0, 3, n) for _ in range(3))
    odd = ((one + two) % 2 == 1) ^ (rng.random(n) < 0.1)
    size = rng.normal(size=n) + (three == 1) * np.where(odd, 1.5, -1.5)
    gap = rng.random(n) < np.where(odd, 0.3, 0.05)
    names = np.array(["red", "green", "blue"])
    return pd.DataFrame({
        "one": names[one], "two": names[two], "three": names[three], "size": np.where(gap, np.nan, size),
        "class": np.where(odd, "odd", "even"),
    })  # fmt: skip
