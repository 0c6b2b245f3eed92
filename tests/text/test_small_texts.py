"""Small inputs use the numpy versions of the text kernels, without a compiler; the same facts hold."""

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text

rng = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(12)])
SHARES = np.array([np.linspace(3, 1, 12), np.linspace(1, 3, 12)])
SHARES /= SHARES.sum(axis=1, keepdims=True)
CODES = np.arange(60) % 2
TEXTS = [" ".join(rng.choice(WORDS, rng.integers(1, 20), p=SHARES[code])) for code in CODES]
LABELS = np.array(["ham", "spam"])[CODES]


def test_one_document_has_the_answer_of_many():
    clf = GenerativeClassifier(Text("multinomial", "counts", 1.0, ngrams=(1, 2))).fit(TEXTS, LABELS)
    assert abs(clf.calibration_.calibrator.shrinkage) > 0.01  # the length of a document matters
    score = clf.scorer()
    asked = [*TEXTS[:8], "", "mauve", "word0", "word0 word11 " * 30]
    np.testing.assert_allclose([score(text) for text in asked], clf.predict_log_proba(asked), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("transform", ["counts", "binary", "log"])
def test_a_document_of_weight_three_is_three_documents(transform):
    family = Text("multinomial", transform, 1.0)
    weight = 1.0 + 2 * (np.arange(60) % 3 == 0)
    weighed = GenerativeClassifier(family, calibrate=None).fit(TEXTS, LABELS, weight)
    copies = np.repeat(np.arange(60), weight.astype(int))
    repeated = GenerativeClassifier(family, calibrate=None).fit([TEXTS[i] for i in copies], LABELS[copies])
    np.testing.assert_array_equal(weighed.log_likelihood(TEXTS), repeated.log_likelihood(TEXTS))


def test_a_word_is_present_once_in_each_document_that_holds_it():
    clf = GenerativeClassifier(Text("multinomial", "binary", 1.0), calibrate=None).fit(TEXTS, LABELS)
    once = [" ".join(dict.fromkeys(text.split())) for text in TEXTS]
    same = GenerativeClassifier(Text("multinomial", "counts", 1.0), calibrate=None).fit(once, LABELS)
    np.testing.assert_allclose(clf.log_likelihood(once), same.log_likelihood(once), rtol=1e-12)


@pytest.mark.parametrize("texts", [["alpha beta", ""], ["alpha", "", ""]])
def test_without_the_only_text_that_has_words_nothing_is_said(texts):
    clf = GenerativeClassifier().fit(texts, [0, 1, 0][: len(texts)])  # its choices leave texts out, too; no warning
    np.testing.assert_array_equal(clf.leave_one_out(texts, [0, 1, 0][: len(texts)], method="log_likelihood"), 0.0)


def test_four_texts_are_judged_without_a_warning():
    texts, labels = ["alpha beta", "gamma", "x y", "z"], [0, 1, 0, 1]
    assert np.isfinite(GenerativeClassifier().fit(texts, labels).evaluate(texts, labels, learnt=True).log_loss)
