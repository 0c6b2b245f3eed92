"""
EM step by step
===============

Eruptions of a geyser: minutes of eruption and of rest, without labels. EM starts from random responsibilities; the
log-likelihood rises in every iteration.
"""

import numpy as np

from deciban import Gaussian, Mixture, plots

rng = np.random.default_rng(0)
short = rng.multivariate_normal([2.04, 54.5], [[0.07, 0.44], [0.44, 33.7]], 97)
X = np.r_[short, rng.multivariate_normal([4.29, 80.0], [[0.17, 0.94], [0.94, 36.0]], 175)]
start = np.random.default_rng(1).dirichlet(np.ones(2), len(X))
fitted = Mixture(Gaussian(), 2).fit(X, start=start)
plots.em_trace(fitted, rows=len(X))

# %%
# The two groups that were found.
ax = plots.clusters(fitted, X)
ax.set(xlabel="eruption (minutes)", ylabel="rest (minutes)")
