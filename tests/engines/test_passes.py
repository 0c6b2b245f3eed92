"""Models with hidden variables over partitions: the sums of a pass are those of one machine."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from deciban import PLSA, Gaussian, HiddenMarkovModel, MixtureModel, TopicModel
from deciban.errors import InputError, NotAvailableError

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask with pandas 3.1


def parts(frame, n):
    return dd.from_pandas(frame, npartitions=n, sort=False)


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 3_000)
    return pd.DataFrame(rng.normal(code[:, None] * [2.0, -1.0], 1.0), columns=["x", "y"])


def test_a_mixture_of_partitions_is_that_of_one_machine(groups):
    one = MixtureModel(3, Gaussian("full"), tol=1e-4, random_state=0).fit(groups).fitted_
    frame = parts(groups, 4)
    empty = frame[frame["x"] > 1e9]
    two = MixtureModel(3, Gaussian("full"), tol=1e-4, random_state=0).fit(dd.concat([empty, frame])).fitted_
    np.testing.assert_allclose(two.sums.counts, one.sums.counts, rtol=1e-8)
    np.testing.assert_allclose(two.trace.objective, one.trace.objective, rtol=1e-10)
    assert len(two.trace.objective) == len(one.trace.objective) >= 2


def test_a_markov_model_of_partitions_is_that_of_one_machine(groups):
    rng = np.random.default_rng(1)
    state = np.repeat(rng.integers(0, 2, 150), 20)
    frame = pd.DataFrame({"x": rng.normal(3.0 * state, 1.0), "session": np.arange(3_000) // 60})
    options = {"family": Gaussian("diagonal"), "n_states": 2, "random_state": 0}
    one = HiddenMarkovModel(**options).fit(frame[["x"]], lengths=[60] * 50)
    shared = dd.from_pandas(frame, npartitions=3, sort=True).repartition(divisions=[0, 1_200, 1_800, 2_999])
    two = HiddenMarkovModel(**options).fit(shared, lengths="session")
    np.testing.assert_allclose(two.transmat_, one.transmat_, rtol=1e-8)
    np.testing.assert_allclose(two.trace_.objective, one.trace_.objective, rtol=1e-10)
    cut = dd.from_pandas(frame, npartitions=3, sort=True).repartition(divisions=[0, 1_210, 1_800, 2_999])
    with pytest.raises(InputError, match="partition 1: the sequence session = 20 began in partition 0"):
        HiddenMarkovModel(**options).fit(cut, lengths="session")
    with pytest.raises(InputError, match="told apart by a column"):
        HiddenMarkovModel(**options).fit(shared)


@pytest.fixture(scope="module")
def documents():
    """Texts of two topics with 20 words each; one in twenty words is of the other topic."""
    rng = np.random.default_rng(2)
    topic = rng.integers(0, 2, 400)
    word = rng.integers(0, 20, (400, 30)) + 20 * (topic[:, None] ^ (rng.random((400, 30)) < 0.05))
    return pd.Series([" ".join(f"w{each:02}" for each in row) for row in word], name="text")


@pytest.mark.parametrize("model", [TopicModel, PLSA])
def test_topics_of_partitions_are_found(model, documents):
    found = model(n_components=2, random_state=0, min_df=1).fit(parts(documents, 4))
    assert found.documents_ == 400
    assert found.tokens_ == 400 * 30
    words = np.array([int(word[1:]) // 20 for word in found.vocabulary_])
    share = np.array([[topic[words == at].sum() for at in (0, 1)] for topic in found.topics_])
    assert share.max(axis=1).min() > 0.9  # each topic has the words of one
    assert set(share.argmax(axis=1)) == {0, 1}
    alone = model(n_components=2, random_state=0, min_df=1).fit(documents.tolist())
    assert found.perplexity(documents.tolist()) < 1.02 * alone.perplexity(documents.tolist())
    again = model(n_components=2, random_state=0, min_df=1).fit(parts(documents, 4))
    np.testing.assert_array_equal(again.topics_, found.topics_)  # a pass keeps nothing


def test_what_partitions_do_not_take_is_said(groups, documents):
    with pytest.raises(NotAvailableError, match="the number of components is given"):
        MixtureModel(range(1, 3), Gaussian("full")).fit(parts(groups, 2))
    with pytest.raises(NotAvailableError, match="not sampled"):
        TopicModel(n_components=2, method="gibbs").fit(parts(documents, 2))
    with pytest.raises(NotAvailableError, match="without tempering"):
        PLSA(n_components=2, temper=0.8).fit(parts(documents, 2))
    with pytest.raises(InputError, match="partitions are one column of texts"):
        TopicModel(n_components=2).fit(parts(groups, 2))
