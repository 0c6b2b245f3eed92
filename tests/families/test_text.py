"""Text: what documents become, and what is left of them when they go."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from cases import TEXTS
from deciban import GenerativeClassifier, Multinomial, Text, kernels
from deciban.errors import HyperparameterError, InputError, MergeError, NotLearntError
from deciban.statistics import Axis, Members, Stats
from deciban.text.counting import count_rows
from deciban.text.stats import UNK, vocabulary_along, vocabulary_of, word_axis
from deciban.text.vocabulary import Vocabulary

RHYME = [
    "Mary had a little lamb, little lamb, little lamb,",
    "Mary had a little lamb, its fleece as white as snow",
]
KNOWN = ["mary", "lamb", "little", "big", "fleece", "white", "black", "snow", "rain"]
SPAM = ["free prize now", "win a free prize", "cheap pills, free pills", "prize prize money"]
HAM = ["see you at lunch", "lunch at noon", "the report is late", "meeting at noon in the office"]
TEXT, LABEL = SPAM + HAM, ["spam"] * 4 + ["ham"] * 4
PLAIN = {"transform": "counts", "pseudo_count": 1.0}


def collected(family, texts, codes=None):
    return family.collect(
        family.encode(texts, []), Members.hard(np.zeros(len(texts), int) if codes is None else codes, 2)
    )


def test_the_nursery_rhyme_counts_as_it_should():
    rhyme = Text(**PLAIN, vocabulary=KNOWN, stop_words=["a", "as", "the"], pattern=r"(?u)\b\w+\b")
    fitted = rhyme.fit(RHYME)
    assert fitted.stats.labels["word"].names == (*KNOWN, UNK)
    assert fitted.stats.counts.tolist() == [[2, 4, 4, 0, 1, 1, 0, 1, 0, 3]]
    ids = [[1, 10, 3, 2, 3, 2, 3, 2], [1, 10, 3, 2, 10, 5, 6, 8]]
    vocabulary = {word: at for at, word in enumerate([*KNOWN, UNK], 1)}
    words = [[vocabulary.get(word, 10) for word in rhyme.tokens.analyse(line)] for line in RHYME]
    assert words == ids
    # the published version lets one "as" through, which is then unk
    published = Multinomial().fit([np.bincount(line, minlength=11)[1:] for line in (ids[0], [*ids[1], 10])])
    np.testing.assert_allclose(published.density().p[0, -1], 5 / 27)
    np.testing.assert_allclose(np.exp(fitted.log_density(["wolf"])), 4 / 26)


@pytest.mark.parametrize("case", TEXTS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_and_twins_learn_score_and_leave_out_alike(case, weighted):
    family, X, members = case.data(5, 60, weighted=weighted)
    new = case.rows(np.random.default_rng(2), 30)
    for rule in case.rules:
        told = {}
        for body in ("numba", "numpy"):
            with kernels.forced(body):
                rows = family.encode(X.documents, [])
                stats = family.collect(rows, members)
                density = family.estimate(stats, rule)
                scores = density.log_density(family.encode(new, []))
                told[body] = stats, scores, family.leave_one_out(stats, family.encode(X.documents, []), members, rule)
        if not weighted:
            assert told["numba"][0].same(told["numpy"][0])
        for ours, theirs in zip(told["numba"][1:], told["numpy"][1:]):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_logarithms_are_rounded_so_that_their_sums_are_exact():
    family = Text(transform="log", pseudo_count=1.0)
    texts = [" ".join(["word"] * n + ["other"]) for n in range(1, 400)]
    stats = collected(family, texts)
    assert (stats.counts * 2**20 == np.rint(stats.counts * 2**20)).all()
    np.testing.assert_allclose(stats.counts[0, 1], np.log1p(np.arange(1, 400)).sum(), rtol=1e-6)
    backwards = sum((collected(family, [text]) for text in texts[::-1][1:]), collected(family, texts[-1:]))
    assert backwards.same(stats)


@pytest.mark.parametrize("transform", ["counts", "log", "binary", "log+idf+unit"])
def test_left_out_of_a_classifier_is_never_having_been_there(transform):
    clf = GenerativeClassifier(Text(transform=transform, pseudo_count=0.7), calibrate=None).fit(TEXT, LABEL)
    left = clf.leave_one_out(TEXT, LABEL, method="log_likelihood")
    for i in range(len(TEXT)):
        rest = clf.family_ if "idf" in transform else Text(transform=transform, pseudo_count=0.7)
        again = GenerativeClassifier(rest, calibrate=None).fit(TEXT[:i] + TEXT[i + 1 :], LABEL[:i] + LABEL[i + 1 :])
        np.testing.assert_allclose(left[i], again.log_likelihood([TEXT[i]])[0], rtol=1e-10)


@pytest.mark.parametrize("transform", ["counts", "log", "binary", "log+idf"])
def test_long_documents_and_frequent_words_are_left_out_exactly_too(transform):
    """Products of their words' shares would leave the range of floats."""
    rng = np.random.default_rng(4)
    often = " ".join(["often"] * 40)
    texts = [" ".join(f"w{j}" for j in rng.zipf(1.3, 900) % 997) + f" alone{i} {often}" for i in range(6)]
    family = Text(transform=transform, pseudo_count=1e-9)
    members = Members.hard(np.array([0, 1, 0, 1, 0, 1]), 2, rng.uniform(0.5, 2, 6))
    family = family.without_labels(family.encode(texts, []), members)
    stats = family.collect(family.encode(texts, []), members)
    family = family.resolve(stats)  # leave-one-out holds the idf
    with kernels.forced("numba"):
        left = family.leave_one_out(stats, family.encode(texts, []), members, "mean")
    for i in range(6):
        rest = np.arange(6) != i
        again = family.collect(family.encode([texts[j] for j in np.flatnonzero(rest)], []), members.take(rest))
        refitted = family.estimate(again, "mean").log_density(family.encode(texts[i : i + 1], []))
        np.testing.assert_allclose(left[i], refitted[0], rtol=1e-12)


@pytest.mark.parametrize("case", TEXTS, ids=repr)
def test_texts_that_differ_in_the_prior_alone_leave_out_as_each_by_itself(case):
    family, X, members = case.data(3, 40)
    stats, rows = family.collect(X, members), np.array([1, 5, 6, 30])
    stronger = replace(family, pseudo_count=2.5)
    alike = family.left_out_scores(stats, X, members, "mean")
    for one in (stronger, family, stronger):
        alone = one.leave_one_out(stats, X[rows], members.take(rows), "mean")
        np.testing.assert_array_equal(alike(one, rows), alone)


@pytest.mark.parametrize("vocabulary", ["learnt", "growing", ["free", "noon", "absent"]])
@pytest.mark.parametrize("rows", [[1, 4, 6], [0, 7, 4, 2], [2, 3, 5], [1, 3, 4, 6]])
def test_rows_counted_ahead_are_counted_as_if_they_had_not_been(vocabulary, rows):
    family = Text(**PLAIN, vocabulary=vocabulary)
    gaps = [None if text == SPAM[1] else text for text in TEXT]
    members = Members.hard(np.arange(8) % 2, 2)
    plain, looked_at = family.encode(gaps, []), family.encode(gaps, [])
    ahead = np.array([1, 3, 4, 6])
    looked_at[ahead].count(family.tokens)
    stats, some = family.collect(plain, members), np.array(rows)
    here, there = (family.leave_one_out(stats, X[some], members.take(some), "mean") for X in (plain, looked_at))
    np.testing.assert_array_equal(here, there)
    for X in (plain[some], looked_at[some]):
        X.count_by(vocabulary_along(family, stats.labels["word"]), family.tokens)
        words = [0 if i == 1 else len([w for w in TEXT[i].split() if len(w) > 1]) for i in rows]
        np.testing.assert_array_equal(family.lengths(X), words)


def test_words_outside_a_learnt_vocabulary_say_nothing_until_they_are_learnt():
    clf = GenerativeClassifier(Text(**PLAIN), calibrate=None).fit(TEXT, LABEL)
    words = clf.stats_.family.labels["word"]
    np.testing.assert_array_equal(clf.log_likelihood(["free zebra"]), clf.log_likelihood(["free"]))
    clf.learn(["zebra zebra free"], ["spam"])
    assert set(clf.stats_.family.labels["word"].names) == {*words.names, "zebra"}


def test_a_growing_vocabulary_learns_words_and_forgets_them_again():
    clf = GenerativeClassifier(Text(**PLAIN, vocabulary="growing"), calibrate=None).fit(TEXT, LABEL)
    before = clf.stats_
    unknown = clf.llr(["zebra"], "spam", "ham")
    clf.learn(["zebra zebra"], ["spam"])
    assert "zebra" in clf.stats_.family.labels["word"].names
    assert clf.llr(["zebra"], "spam", "ham") > unknown
    clf.unlearn(["zebra zebra"], ["spam"])
    assert clf.stats_.same(before)


def test_merging_growing_models_takes_the_union():
    made = [GenerativeClassifier(Text(**PLAIN, vocabulary="growing"), calibrate=None) for _ in range(3)]
    a, b, both = made[0].fit(TEXT[::2], LABEL[::2]), made[1].fit(TEXT[1::2], LABEL[1::2]), made[2].fit(TEXT, LABEL)
    assert (a + b).stats_.same(both.stats_)
    np.testing.assert_array_equal((a + b).predict_proba(TEXT), both.predict_proba(TEXT))


def test_vocabularies_that_clash_cannot_be_merged():
    a, b = (
        GenerativeClassifier(Text(**PLAIN, vocabulary=[word, "noon"])).fit(TEXT, LABEL) for word in ("free", "late")
    )
    with pytest.raises(MergeError, match="different choices"):
        a + b


def test_outside_a_given_vocabulary_everything_is_unk_with_its_own_prior():
    family = Text(**PLAIN, vocabulary=["free", "noon"], unk=3.0)
    stats = collected(family, ["free zebra zebra", "noon"])
    assert stats.counts[0].tolist() == [1, 1, 2]
    density = family.estimate(stats, "mean")
    np.testing.assert_allclose(np.exp(density.inner.log_p[:, 0]), np.array([2, 2, 5]) / 9)


def test_a_cap_keeps_what_says_most_about_the_class():
    texts = ["the free the", "the free", "the noon", "the noon the"]
    clf = GenerativeClassifier(Text(**PLAIN, most=2, by="information")).fit(texts, [1, 1, 0, 0])
    assert clf.family_.words == ("free", "noon")
    assert clf.stats_.family.counts.tolist() == [[0, 2, 3], [2, 0, 3]]  # 'the' is unk


def test_limits_are_those_of_the_documents():
    clf = GenerativeClassifier(Text(**PLAIN, min_df=2, max_df=0.5)).fit(TEXT, LABEL)
    X, vocabulary = count_rows(TEXT)
    documents = np.asarray((X > 0).sum(axis=0)).ravel()
    assert clf.family_.words == tuple(word for word, n in zip(vocabulary, documents) if 2 <= n <= 4)


@pytest.mark.parametrize("reading", ["multinomial", "bernoulli", "polya"])
def test_every_reading_learns_and_unlearns_to_the_bit(reading):
    clf = GenerativeClassifier(Text(reading), calibrate=None).fit(TEXT * 3, LABEL * 3)
    before, chosen = clf.stats_, clf.family_
    clf.learn(["free lunch", "prize at noon"], ["spam", "ham"]).unlearn(
        ["free lunch", "prize at noon"], ["spam", "ham"]
    )
    assert clf.stats_.same(before)
    assert clf.family_ == chosen
    with pytest.raises(NotLearntError):
        clf.unlearn(["free free free free lunch lunch"], ["ham"])


def test_documents_without_words_and_missing_ones():
    texts = [*TEXT, "", None, "   "]
    labels = [*LABEL, "ham", "ham", "ham"]
    for reading in ("multinomial", "bernoulli"):
        clf = GenerativeClassifier(Text(reading, pseudo_count=1.0, transform="auto"), calibrate=None).fit(texts, labels)
        scores = clf.log_likelihood([None, ""])
        np.testing.assert_array_equal(scores[0], 0.0)
        assert (scores[1] == 0).all() == (reading == "multinomial")  # absence speaks, for Bernoulli
        assert clf.stats_.rows.tolist() == [7, 4]
        assert clf.stats_.family.rows.tolist() == [6, 4]


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["", "  "], "no words"),
        (["the", "a the"], "no words"),
        (["half \ud800", "x"], "surrogate"),
        (["word", 3], "not a text but int"),
    ],
)
def test_what_is_no_text_is_refused_by_name(texts, error):
    with pytest.raises(InputError, match=error):
        GenerativeClassifier(Text(stop_words="english")).fit(texts, [0, 1])


@pytest.mark.parametrize(
    "options",
    [
        {"reading": "poisson"},
        {"transform": "squares"},
        {"transform": "log+binary"},
        {"reading": "bernoulli", "transform": "log"},
        {"pseudo_count": -1},
        {"vocabulary": "small"},
        {"vocabulary": ["a", UNK]},
        {"vocabulary": []},
        {"vocabulary": ["a"], "min_df": 2},
        {"ngrams": "pairs"},
        {"ngrams": (2, 1)},
        {"ngrams": "auto", "unit": "char"},
        {"unit": "letters"},
        {"stem": "klingon"},
        {"stop_words": "klingon"},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises((HyperparameterError, InputError)):
        Text(**options)


def test_limits_that_leave_nothing_say_so():
    with pytest.raises(InputError, match="no terms remain"):
        GenerativeClassifier(Text(min_df=7)).fit(TEXT, LABEL)


def test_a_word_spelt_unk_is_unk():
    family = Text(**PLAIN, vocabulary="growing", pattern=r"\S+")
    stats = collected(family, [f"one {UNK} {UNK}", "one two"])
    assert stats.labels["word"].names == (UNK, "one", "two")
    assert stats.counts[0].tolist() == [2, 2, 1]


def test_an_axis_of_words_spells_them_out_only_when_asked():
    words = Vocabulary.of(["lamb", "snow"], "learnt")
    axis = word_axis(words, "learnt")
    assert vocabulary_of(axis, "learnt") is words
    assert word_axis(words, "learnt") == axis
    assert axis.size == 2
    assert "as_tuple" not in vars(axis.names)
    assert axis == Axis(("lamb", "snow")) == axis
    assert axis != Axis(("lamb", "snow"), 1)
    assert hash(axis) == hash(Axis(axis.names))
    again = pickle.loads(pickle.dumps(axis))
    assert (again, again.names, again.declared) == (axis, ("lamb", "snow"), 0)
    assert vocabulary_of(again, "learnt") == words


def test_what_nothing_is_counted_under_is_pruned_and_nothing_else():
    stats = collected(Text(**PLAIN), TEXT, np.arange(8) % 2)
    assert stats.pruned() is stats
    gone = replace(stats, counts=stats.counts * (np.arange(stats.counts.shape[1]) != 3))
    assert gone.pruned().labels["word"].names == stats.labels["word"].names[:3] + stats.labels["word"].names[4:]
    assert gone.pruned().same(Stats.pruned(gone))
