"""
Priors move the threshold
=========================

The same densities where nine of ten people are women. The evidence of 174 cm stays; the decision changes, since the
densities are weighted by the prior.
"""

from deciban import Gaussian, GenerativeClassifier, plots

densities = {"man": Gaussian.of(175.33, 52.89), "woman": Gaussian.of(161.82, 46.89)}
clf = GenerativeClassifier.from_densities(densities)
ax = plots.class_densities(clf, at=174, prior={"woman": 0.9})
ax.set_xlabel("height (cm)")

# %%
# The probability of a man at 174 cm for three priors.
for women in (0.5, 0.7, 0.9):
    print(f"{women:.0%} women: P(man) = {clf.predict_proba([[174.0]], prior={'woman': women})[0, 0]:.3f}")
