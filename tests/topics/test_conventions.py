"""scikit-learn's own checks of the topic models, none failing and none expected to."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from deciban import PLSA, TopicModel

SMALL = {"n_components": 2, "max_iter": 10}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [PLSA(**SMALL), TopicModel(**SMALL), TopicModel(**SMALL, method="scvb0"), TopicModel(**SMALL, alpha=0.1, beta=0.1)]
)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [PLSA, TopicModel])
def test_outputs_are_named_after_the_model(model):
    X = np.random.default_rng(0).poisson(1.0, (20, 5))
    fitted = model(3, random_state=0).fit(X)
    assert fitted.get_feature_names_out().tolist() == [f"{model.__name__.lower()}{k}" for k in range(3)]
    assert fitted.set_output(transform="pandas").transform(X).columns.tolist() == list(fitted.get_feature_names_out())
