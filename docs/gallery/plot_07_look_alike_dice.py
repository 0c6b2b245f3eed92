"""
Look-alike dice
===============

Two loaded dice that look alike: 300 rows of 20 rolls, each row by one of them. EM finds both dice and how often each
was used.
"""

import matplotlib.pyplot as plt
import numpy as np

from deciban import Mixture, Multinomial

rng = np.random.default_rng(0)
dice = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
used = rng.choice(2, 300, p=[0.58, 0.42])
X = np.array([rng.multinomial(20, dice[die]) for die in used])
found = Mixture(Multinomial(), 2).fit(X, random_state=0)
faces = np.exp(found.density("ml").components.log_density(np.eye(6))).T  # (2, 6)
order = np.argsort(-faces[:, 0])

figure, axes = plt.subplots(1, 2, sharey=True, layout="constrained", figsize=(7, 3))
for ax, die, at in zip(axes, (0, 1), order):
    ax.bar(np.arange(1, 7) - 0.2, dice[die], 0.4, label="true")
    ax.bar(np.arange(1, 7) + 0.2, faces[at], 0.4, label="found")
    ax.set(xlabel="face", title=f"used in {found.weights[at]:.0%} of the rows")
axes[0].set_ylabel("probability")
axes[0].legend()
