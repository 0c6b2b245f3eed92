"""Folds of documents as arrays: their scores equal those of statistics without the fold."""

from __future__ import annotations

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.families.word_scores import plain, source_of
from deciban.model.cross_fit import folds_by_subtraction, folds_of_words
from deciban.model.judge import stratified
from deciban.model.model import lesson
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.tables import Table
from deciban.text.word_evidence import factors_of

PLAIN, COMPILED = 60, 900  # documents: few take the numpy version, many the compiled one


def documents(n, words=400, seed=0):
    """Texts of three classes over a Zipf vocabulary; some words occur once, and one document is missing."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    share = np.exp(0.7 * rng.normal(size=(3, words))) / np.arange(1, words + 1)
    share /= share.sum(axis=1, keepdims=True)
    names = np.array([f"w{i}" for i in range(words)])
    texts = [
        " ".join(rng.choice(names, rng.poisson(30) + 1, p=share[code])) + f" only{i}" for i, code in enumerate(codes)
    ]
    return [*texts[:-1], None], np.array(list("abc"))[codes]


def folds(text, n, weight=None, learnt=None):
    """Both kinds of folds of n documents, of which all, or the first `learnt`, are divided into folds."""
    X, y = documents(n)
    model = GenerativeClassifier(text, calibrate=None).fit(X, y, weight).model_
    some = slice(0, learnt or n)
    batch = Batch(Table.of(X[some]), y[some].tolist(), None if weight is None else weight[some])
    taken = lesson(model.family, batch, model.stats.family, model.stats.classes)
    fold = stratified(taken.members.codes)
    source = model.family.folded_words(model.stats.family, taken.rows, taken.members, model.rule)
    return list(folds_by_subtraction(Predictor(model), taken, fold)), list(folds_of_words(source, model.family, fold))


@pytest.mark.parametrize("base", ["flat", "pooled"])
@pytest.mark.parametrize("transform", ["counts", "log", "binary"])
@pytest.mark.parametrize(("n", "learnt"), [(PLAIN, None), (COMPILED, None), (COMPILED, 700)])
def test_folds_of_words_have_the_scores_of_subtracted_sums(base, transform, n, learnt):
    text = Text(transform=transform, pseudo_count=0.3, base=base)
    weight = np.random.default_rng(1).integers(0, 3, n).astype(float) if transform == "log" else None
    for by_sums, by_words in zip(*folds(text, n, weight, learnt), strict=True):
        np.testing.assert_array_equal(by_words.test, by_sums.test)
        for one, two in ((by_words.left_out, by_sums.left_out), (by_words.scores, by_sums.scores)):
            np.testing.assert_allclose(contrasts(one[0]), contrasts(two[0]), rtol=1e-9, atol=1e-9)


def contrasts(scores):
    """Scores relative to the first class, which alone have a meaning."""
    table = np.asarray(plain(scores))
    return table[:, 1:] - table[:, :1]


@pytest.mark.parametrize("n", [PLAIN, COMPILED])
def test_evidence_of_folds_is_that_of_subtracted_sums(n):
    rng = np.random.default_rng(2)
    for by_sums, by_words in zip(*folds(Text(pseudo_count=0.3, transform="log"), n), strict=True):
        named, numbered = source_of(by_sums.left_out[0]), source_of(by_words.left_out[0])
        one, two = named.evidence(), numbered.evidence()
        assert one.shape == two.shape
        assert two.vocabulary is None
        factors = rng.uniform(0.0, 2.0, one.shape[1])
        # words have the same order in both: sorted by name
        np.testing.assert_allclose(contrasts(one.scores(factors)), contrasts(two.scores(factors)), rtol=1e-4, atol=1e-4)
        kept, column = factors_of(one, factors), factors_of(two, factors)
        new, old = source_of(by_words.scores[0]), source_of(by_sums.scores[0])
        np.testing.assert_allclose(contrasts(new.rescaled(column)), contrasts(old.rescaled(kept)), rtol=1e-9, atol=1e-9)


def test_folds_of_fixed_words_are_subtracted_as_statistics():
    X, y = documents(PLAIN)
    for options in ({"vocabulary": "growing"}, {"min_df": 2}, {"transform": "counts+idf"}, {"reading": "polya"}):
        model = GenerativeClassifier(Text(pseudo_count=1.0, **options), calibrate=None).fit(X, y).model_
        taken = lesson(model.family, Batch(Table.of(X), y.tolist()), model.stats.family, model.stats.classes)
        assert model.family.folded_words(model.stats.family, taken.rows, taken.members, model.rule) is None
