"""
The evidence of one row
=======================

A tumour with five measurements. Each bar is the evidence of one measurement for "malignant" over "benign"; the bars add
up to the answer.
"""

from sklearn.datasets import load_breast_cancer

from deciban import Gaussian, GenerativeClassifier, plots

data = load_breast_cancer(as_frame=True)
X = data.data[["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]]
y = data.target_names[data.target]
clf = GenerativeClassifier(Gaussian("diagonal"), rule="ml").fit(X, y)
explanation = clf.explain(X.iloc[[13]], "malignant", "benign")
plots.evidence_bars(explanation)

# %%
print(explanation)
