"""Look-alike dice: which of two loaded dice was rolled, when nobody says."""

from __future__ import annotations

import numpy as np

from deciban import Mixture, Multinomial

TRUTH = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
SHARES = np.array([0.58, 0.42])


def show_mixture(n: int = 300, rolls: int = 20) -> None:
    """Recover both dice, and how often each was used, by EM."""
    rng = np.random.default_rng(1)
    which = rng.choice(2, n, p=SHARES)
    X = np.stack([rng.multinomial(rolls, TRUTH[k]) for k in which])
    found = Mixture(Multinomial(), 2).fit(X, rule="ml", random_state=0)
    dice = np.exp(found.density("ml").components.log_density(np.eye(6))).T
    order = np.argsort(-dice[:, 0])  # the die loaded on one comes first, as in the truth
    told = (np.argsort(order)[found.predict(X)] == which).mean()
    print(f"[4/6] Look-alike dice: {n} rows of {rolls} rolls, and nobody says which die. EM finds both.")
    for name, shares, faces in (("found", found.weights[order], dice[order]), ("truth", SHARES, TRUTH)):
        print(
            f"      {name}  "
            + "   ".join(f"{s:.2f} × ({' '.join(f'{p:.2f}' for p in f)})" for s, f in zip(shares, faces))
        )
    print(f"      {told:.1%} of the rows told apart")
