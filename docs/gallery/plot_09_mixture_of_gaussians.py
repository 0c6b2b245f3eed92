"""
How many groups?
================

Mixtures of one to five Gaussians of three point clouds. The Bayesian information criterion (BIC) is lowest for the
number of clouds.
"""

import matplotlib.pyplot as plt
import numpy as np

from deciban import Gaussian, MixtureModel, plots

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
X = centres[rng.integers(0, 3, 400)] + rng.normal(size=(400, 2)) * [0.7, 1.0]
sizes = range(1, 6)
fits = [MixtureModel(n, Gaussian(), random_state=0).fit(X) for n in sizes]
figure, ax = plt.subplots(layout="constrained", figsize=(5, 3))
ax.plot(sizes, [fit.bic(X) for fit in fits], marker="o")
ax.set(xlabel="groups", ylabel="BIC", xticks=list(sizes))

# %%
plots.clusters(fits[2], X)
