"""
Two sites merge their models
============================

Two hospitals keep their rows and exchange sums. The sum of their models equals one model of all rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from deciban import Gaussian, GenerativeClassifier

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :10]  # the means of ten measurements
here, there = np.arange(0, 120), np.arange(120, len(X))
make = lambda rows: GenerativeClassifier(Gaussian("tied"), calibrate=None).fit(X[rows], y[rows])  # noqa: E731
a, b, whole = make(here), make(there), make(np.arange(len(X)))
both = a + b
print("largest difference in probability:", f"{np.abs(both.predict_proba(X) - whole.predict_proba(X)).max():.1e}")

# %%
figure, ax = plt.subplots(layout="constrained", figsize=(5, 4))
ax.plot(whole.llr(X, 0, 1, unit="decibans"), a.llr(X, 0, 1, unit="decibans"), ".", ms=3, label="120 rows of one site")
ax.plot(whole.llr(X, 0, 1, unit="decibans"), both.llr(X, 0, 1, unit="decibans"), ".", ms=3, label="both merged")
ax.set(xlabel="evidence, all rows in one place (decibans)", ylabel="evidence (decibans)")
ax.legend()
