"""
Unlearning a patient
====================

A patient asks for erasure. The row is subtracted from the sums; the model is then the one that would have been fitted
without it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from deciban import Gaussian, GenerativeClassifier

X, y = load_breast_cancer(return_X_y=True)
patient = 13
others = np.delete(np.arange(len(X)), patient)
clf = GenerativeClassifier(Gaussian("diagonal"), calibrate=None).fit(X, y)
before = clf.llr(X, 0, 1, unit="decibans")
clf.unlearn(X[[patient]], y[[patient]])
after = clf.llr(X, 0, 1, unit="decibans")
never = GenerativeClassifier(Gaussian("diagonal"), calibrate=None).fit(X[others], y[others])
print(
    "largest difference to a fit without the row:", f"{np.abs(after - never.llr(X, 0, 1, unit='decibans')).max():.1e}"
)

# %%
# What the erasure changed, for every row.
figure, ax = plt.subplots(layout="constrained", figsize=(6, 3))
ax.plot(before, after - before, ".", ms=3)
ax.plot(before[patient], (after - before)[patient], "o", label="the erased row")
ax.set(xlabel="evidence before (decibans)", ylabel="change (decibans)")
ax.legend()
