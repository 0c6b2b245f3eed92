"""
Sixteen classifiers from one pass
=================================

Four covariance structures in four projected spaces, on pictures of digits. The sums n, Σx and Σxxᵀ of each class are
collected once; PCA, Fisher's directions and all sixteen classifiers are computed from them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from deciban import PCA, Fisher, Gaussian, Members

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
train, test = order[:1200], order[1200:]
sums = Gaussian("full").collect(X[train], Members.hard(y[train], 10))

spaces = {}
for width in (40, 20, 9):
    pca = PCA(width).fit_stats(sums)
    spaces[f"PCA {width}"] = pca.apply(sums), pca.transform(X[test])
wide, rows = spaces["PCA 40"]
fisher = Fisher(9).fit_stats(wide)
spaces["PCA 40, Fisher 9"] = fisher.apply(wide), fisher.transform(rows)

structures = ("tied diagonal", "tied", "diagonal", "full")
errors = np.empty((4, 4))
for j, (projected, rows) in enumerate(spaces.values()):
    for i, structure in enumerate(structures):
        density = Gaussian(structure).estimate(projected, "mean")
        errors[i, j] = 100 * (density.log_density(rows).argmax(axis=1) != y[test]).mean()

figure, ax = plt.subplots(layout="constrained", figsize=(7, 3.5))
ax.imshow(errors, cmap="viridis_r", aspect="auto")
ax.set_xticks(range(4), list(spaces))
ax.set_yticks(range(4), structures)
for (i, j), value in np.ndenumerate(errors):
    ax.text(j, i, f"{value:.1f} %", ha="center", va="center", color="white" if value > errors.mean() else "black")
ax.set_title("wrong among 597 digits")
