"""Scikit-learn patched: programs run unchanged, and get scikit-learn's own class where they need it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
import sklearn.discriminant_analysis
import sklearn.mixture
import sklearn.naive_bayes
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone

import deciban.sklearn as ours
from deciban.sklearn import dropin, is_accelerated, patch_sklearn, unpatch_sklearn

THEIRS = sklearn.naive_bayes.GaussianNB


@pytest.fixture
def patched():
    patch_sklearn()
    yield
    unpatch_sklearn()


def test_every_class_is_replaced_and_restored():
    before = sklearn.naive_bayes.GaussianNB, sklearn.mixture.GaussianMixture
    patch_sklearn()
    try:
        assert sklearn.naive_bayes.GaussianNB is ours.GaussianNB
        assert sklearn.mixture.GaussianMixture is ours.GaussianMixture
        assert is_accelerated(sklearn.naive_bayes.GaussianNB())
    finally:
        unpatch_sklearn()
    assert (sklearn.naive_bayes.GaussianNB, sklearn.mixture.GaussianMixture) == before
    assert not is_accelerated(THEIRS())
    assert dropin.is_patched(ours.GaussianNB) is False


@pytest.mark.usefixtures("patched")
def test_a_subclass_is_derived_from_scikit_learns_own_class():
    class Mine(sklearn.naive_bayes.GaussianNB):
        def fit(self, X, y):
            self.seen_ = len(X)
            return super().fit(X, y)

    assert THEIRS in Mine.__mro__
    assert ours.GaussianNB not in Mine.__mro__
    assert Mine().fit([[0.0], [1.0]], [0, 1]).seen_ == 2
    assert not is_accelerated(Mine())
    assert isinstance(Mine(), sklearn.naive_bayes.GaussianNB)
    assert issubclass(Mine, sklearn.naive_bayes.GaussianNB)
    assert isinstance(THEIRS(), sklearn.naive_bayes.GaussianNB)
    assert not isinstance(sklearn.naive_bayes.MultinomialNB(), sklearn.naive_bayes.GaussianNB)


def test_a_subclass_of_the_import_that_was_changed_is_one_of_ours():
    class Mine(ours.GaussianNB):
        pass

    assert ours.GaussianNB in Mine.__mro__
    assert is_accelerated(Mine())


def test_arguments_that_we_lack_are_left_to_scikit_learn():
    analysis = ours.LinearDiscriminantAnalysis
    assert is_accelerated(analysis(solver="eigen"))
    assert not is_accelerated(analysis(solver="lsqr", shrinkage="auto"))
    assert not is_accelerated(ours.CountVectorizer(analyzer=str.split))
    assert not is_accelerated(ours.HashingVectorizer(binary=True))


@pytest.mark.usefixtures("patched")
def test_estimators_clone_and_pickle():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
    clf = sklearn.naive_bayes.GaussianNB().fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert type(again) is type(clone(clf)) is ours.GaussianNB
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert repr(clf) == "GaussianNB()"


def kind_of(estimator):
    return type(estimator).__module__, "deciban.sklearn.gaussian_nb" in str(sklearn.naive_bayes.GaussianNB)


@pytest.mark.usefixtures("patched")
def test_workers_of_joblib_are_patched_too():
    get_reusable_executor().shutdown()  # workers that were started before the patch are not changed by it
    (found,) = Parallel(n_jobs=2)(delayed(kind_of)(each) for each in [sklearn.naive_bayes.GaussianNB()])
    assert found == ("deciban.sklearn.gaussian_nb", True)


SCRIPT = """
import sys
import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
rng = np.random.default_rng(0)
X, y = rng.normal(size=(30_000, 4)), np.arange(30_000) % 3
for _ in range(2):
    GaussianNB().fit(X, y)
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[:60], y[:60])
    CountVectorizer(analyzer=str.split).fit(["to be"])
    TfidfVectorizer().fit(["to be"])
    HashingVectorizer().transform(["to be"])
print(GaussianNB.__module__, sys.argv[1:], __name__)
"""


def test_a_program_runs_unchanged_and_the_log_names_each_reason_once(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "deciban.sklearn", str(script), "--flag"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "DECIBAN_LOG": "info"}, check=True
    )
    assert done.stdout.strip() == "deciban.sklearn.gaussian_nb ['--flag'] __main__"
    assert done.stderr.splitlines() == [
        "GaussianNB: deciban",
        "LinearDiscriminantAnalysis: scikit-learn, because shrinkage='auto'",
        "CountVectorizer: scikit-learn, because the kernels lack its options of tokens",
        "TfidfVectorizer: scikit-learn, because the input is small",
        "HashingVectorizer: scikit-learn, because the input is small",
    ]


def test_an_untested_version_is_left_alone(monkeypatch):
    monkeypatch.setattr(dropin, "TESTED", ("0.1",))
    with pytest.warns(UserWarning, match="is not patched"):
        patch_sklearn()
    assert sklearn.naive_bayes.GaussianNB is THEIRS
    assert not is_accelerated(ours.GaussianNB())
