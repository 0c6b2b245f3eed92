"""
Class densities and evidence
============================

Heights of men and women, each class a normal distribution with a known mean and variance. The evidence of a height is
the logarithm of the ratio of the two densities; it does not depend on how many men and women there are.
"""

from deciban import Gaussian, GenerativeClassifier, plots

densities = {"man": Gaussian.of(175.33, 52.89), "woman": Gaussian.of(161.82, 46.89)}
clf = GenerativeClassifier.from_densities(densities)
ax = plots.class_densities(clf, at=174)
ax.set_xlabel("height (cm)")

# %%
# A height of 174 cm is 4.5 times as probable for a man: 6.5 decibans.
print(clf.llr([[174.0]], "man", "woman", unit="decibans").round(1))
