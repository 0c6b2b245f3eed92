"""Models that hold other models, as files."""

import numpy as np

from deciban import Gaussian, GenerativeClassifier, SemiSupervised, load, save

rng = np.random.default_rng(0)
X = np.r_[rng.normal(0, 1, (60, 2)), rng.normal(3, 1, (60, 2))]
y = np.full(120, None)
y[:10], y[60:70] = "a", "b"


def test_a_model_whose_parameter_is_a_model_that_is_not_fitted_comes_back(tmp_path):
    model = SemiSupervised(GenerativeClassifier(Gaussian("tied"), rule="map")).fit(X, y)
    save(model, tmp_path / "model.deciban")
    loaded = load(tmp_path / "model.deciban")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.classifier.get_params(deep=False) == model.classifier.get_params(deep=False)
