"""
Decision regions
================

Three kinds of iris by the size of their petals, each with a covariance matrix of its own: boundaries are curves. With
one matrix for all classes (`"tied"`) they are straight lines.
"""

from sklearn.datasets import load_iris

from deciban import Gaussian, GenerativeClassifier, plots

data = load_iris(as_frame=True)
X, y = data.data[["petal length (cm)", "petal width (cm)"]], data.target_names[data.target]
clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
plots.decision_regions(clf, tuple(X.columns), X, y)

# %%
# The same sums, estimated with one matrix for all classes; the rows are not read again.
plots.decision_regions(clf.reestimate(structure="tied"), tuple(X.columns), X, y)
