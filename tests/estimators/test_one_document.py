"""One document at a time: the answers are those for many."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.errors import InputError

TEXTS = ["free prize money", "lunch at noon", "a prize: free lunch", "see you at noon, Zoë"] * 12
LABELS = ["spam", "ham", "spam", "ham"] * 12
ODD = ["", "prize", "PRIZE prize prize", "nothing known", "ΑΣ zoË", "noon " * 300, "free " * 20_000, "\x00 at"]

MODELS = {
    "counts": ({"transform": "counts", "pseudo_count": 1.0}, {"calibrate": None}),
    "by default": ({}, {}),
    "logarithm, calibrated": ({"transform": "log"}, {}),
    "present or not": ({"transform": "binary"}, {"calibrate": None}),
    "pairs": ({"ngrams": (1, 2)}, {}),
    "given words": ({"vocabulary": ["prize", "noon", "lunch"]}, {}),
}


@pytest.fixture(params=MODELS)
def clf(request):
    text, options = MODELS[request.param]
    return GenerativeClassifier(Text(**text), **options).fit(TEXTS, LABELS)


def test_one_document_is_answered_as_many_are(clf):
    prior = {"spam": 0.2, "ham": 0.8}
    expected, score = clf.predict_log_proba(ODD, prior=prior), clf.scorer(prior)
    np.testing.assert_allclose([score(text) for text in ODD], expected, rtol=1e-9, atol=1e-12)
    assert [score.predict(text) for text in ODD[:3]] == clf.predict(ODD[:3], prior=prior).tolist()
    assert sum(score.predict_proba("prize").values()) == pytest.approx(1)


def test_copies_answer_alike_and_outlive_what_they_were_made_of(clf):
    score = clf.scorer()
    copies = [copy.copy(score), copy.deepcopy(score), pickle.loads(pickle.dumps(score))]
    expected = [score(text).tolist() for text in ODD]
    del score, clf
    for other in copies:
        assert [other(text).tolist() for text in ODD] == expected


def test_threads_may_share_a_scorer():
    score = GenerativeClassifier().fit(TEXTS, LABELS).scorer()
    texts = [text * times for times in (1, 40, 900) for text in TEXTS[:4]] * 30
    expected = [score(text).tolist() for text in texts]
    fresh = GenerativeClassifier().fit(TEXTS, LABELS).scorer()  # its room grows while others are in it
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: fresh(text).tolist(), texts)) == expected


@pytest.mark.parametrize(
    ("given", "said"), [(b"prize", "not bytes"), (None, "not NoneType"), ("prize \ud800", "half a surrogate pair")]
)
def test_what_is_no_text_is_refused(clf, given, said):
    with pytest.raises(InputError, match=said):
        clf.scorer()(given)
