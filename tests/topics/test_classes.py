"""Topics meet classes: shares as features of a classifier, and topics of its own for each class."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import deciban
from deciban import ClassTopics, Gaussian, GenerativeClassifier, Members, Multinomial, TopicModel
from deciban.errors import HyperparameterError, NotAvailableError
from topics.simulated import corpus

SEA = ["ships sail the sea", "boats and ships at sea"] * 10
WILD = ["wolves hunt sheep", "sheep flee wolves"] * 10


def two_classes(seed=0, D=600, T=3):
    """Each class has topics of its own, which share all their words with those of the other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, D)
    phi = rng.dirichlet(np.full(60, 0.1), (2, T))
    X = np.zeros((D, 60))
    for d in range(D):
        theta = rng.dirichlet(np.full(T, 0.1))
        X[d] = rng.multinomial(40, theta @ phi[y[d]])
    return sp.csr_array(X), y


def test_topic_shares_feed_a_classifier():
    model = make_pipeline(TopicModel(2, random_state=0), GenerativeClassifier(Gaussian("diagonal")))
    y = ["sea"] * len(SEA) + ["wild"] * len(WILD)
    assert model.fit(SEA + WILD, y).score(SEA + WILD, y) == 1


def test_shares_of_topics_and_other_columns_make_one_table():
    from sklearn.compose import ColumnTransformer

    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": SEA + WILD, "depth": [9.0, 8.0] * 10 + [0.0, 1.0] * 10})
    y = ["sea"] * len(SEA) + ["wild"] * len(WILD)
    blocks = ColumnTransformer([("topics", TopicModel(2, random_state=0), "text")], remainder="passthrough")
    model = make_pipeline(blocks, GenerativeClassifier(Gaussian("diagonal")))
    assert model.fit(frame, y).score(frame, y) == 1


def test_topics_of_classes_classify_better_than_one_topic_each():
    X, y = two_classes()
    many = cross_val_score(GenerativeClassifier(ClassTopics(3)), X, y, cv=3, scoring="neg_log_loss").mean()
    one = cross_val_score(GenerativeClassifier(Multinomial(0.1)), X, y, cv=3, scoring="neg_log_loss").mean()
    assert many > one


def test_one_topic_a_class_is_a_multinomial():
    X, y = two_classes()
    members = Members.hard(y, 2)
    family = ClassTopics(1, pseudo_count=0.5)
    density = family.estimate(family.collect(X, members), "mean")
    plain = Multinomial(0.5)
    expected = plain.estimate(plain.collect(X, members), "mean").log_density(X)
    np.testing.assert_allclose(density.log_density(X), expected, rtol=1e-5)


def test_probabilities_of_all_documents_of_two_words_sum_to_one():
    """A row of two words stands for both their orders, which are scored as one of them."""
    rng = np.random.default_rng(0)
    family = ClassTopics(2)
    X = sp.csr_array(rng.poisson(1.0, (50, 4)).astype(float))
    density = family.estimate(family.collect(X, Members.hard(np.zeros(50, int), 1)), "mean")
    rows = [np.eye(4)[a] + np.eye(4)[b] for a in range(4) for b in range(4)]
    total = np.exp(logsumexp(density.log_density(sp.csr_array(np.array(rows)))[:, 0]))
    assert total == pytest.approx(1.0, abs=0.05)


def test_learning_adds_under_the_guess_and_what_is_not_exact_is_refused():
    X, y = two_classes()
    clf = GenerativeClassifier(ClassTopics(3)).fit(X[:400], y[:400])
    before = clf.stats_.family.counts.sum()
    clf.learn(X[400:], y[400:])
    assert clf.stats_.family.counts.sum() == pytest.approx(before + X[400:].data.sum(), rel=1e-4)
    with pytest.raises(NotAvailableError, match="cannot be unlearnt exactly"):
        clf.unlearn(X[:1], y[:1])
    with pytest.raises(NotAvailableError, match="no exact leave-one-out"):
        clf.leave_one_out(X, y)
    with pytest.raises(NotAvailableError, match="class 7 is new"):
        clf.learn(X[:1], [7])


def test_samples_are_of_their_class():
    X, y = two_classes()
    clf = GenerativeClassifier(ClassTopics(3)).fit(X, y)
    codes = np.repeat([0, 1], 100)
    family = clf.family_
    drawn = family.estimate(clf.stats_.family, "mean").sample(codes, np.random.default_rng(0))
    assert (clf.predict(drawn) == codes).mean() > 0.8


def test_a_classifier_of_topics_is_stored(tmp_path):
    X, y = two_classes(D=200)
    clf = GenerativeClassifier(ClassTopics(2)).fit(X, y)
    clf.save(tmp_path / "classes.deciban")
    loaded = deciban.load(tmp_path / "classes.deciban")
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def test_hyperparameters_must_be_above_zero():
    with pytest.raises(HyperparameterError, match="n_components=0"):
        ClassTopics(0)


def test_empty_documents_get_the_prior():
    X, _ = corpus(D=60, V=30, K=2)
    y = np.arange(60) % 3
    clf = GenerativeClassifier(ClassTopics(2)).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(sp.csr_array((1, 30))), [[1 / 3] * 3], atol=1e-9)
