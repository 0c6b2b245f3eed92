"""
Calibration before and after
============================

Naive Bayes treats thirty measurements as independent, which they are not, so its probabilities are too extreme. A scale
fitted on leave-one-out scores corrects that. Every row is judged as if it had never been learnt.
"""

from sklearn.datasets import load_breast_cancer

from deciban import Gaussian, GenerativeClassifier, plots

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
raw = GenerativeClassifier(Gaussian("diagonal"), calibrate=None).fit(X, y).evaluate(X, y, learnt=True)
calibrated = GenerativeClassifier(Gaussian("diagonal"), calibrate="offsets").fit(X, y).evaluate(X, y, learnt=True)
ax = plots.reliability(raw, over="malignant", label="raw")
plots.reliability(calibrated, over="malignant", label="calibrated", ax=ax)

# %%
# The log loss shows what the correction is worth.
print(f"log loss: {raw.log_loss:.3f} raw, {calibrated.log_loss:.3f} calibrated")
