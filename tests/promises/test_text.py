"""What models of texts promise about learning, unlearning and merging."""

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text

PLAIN = {"transform": "counts", "pseudo_count": 1.0}
TEXTS = ["free prize money", "win free money now", "lunch at noon today", "meeting at noon", "lunch with the team"]
LABELS = ["spam", "spam", "ham", "ham", "ham"]
OWN_WORDS, OWN_LABEL = "airdrop airdrop blockchain money", "spam"  # words that no other document has
QUERY = ["blockchain airdrop at noon"]


def words(clf):
    return set(clf.stats_.family.labels["word"].names)


def corpus(rng, documents, vocabulary=600):
    shares = 1 / np.arange(1.0, vocabulary + 1)
    drawn = rng.choice(vocabulary, (documents, 12), p=shares / shares.sum())
    return [" ".join(f"w{at}" for at in row) for row in drawn], rng.integers(0, 2, documents).astype(str)


@pytest.fixture(params=["counts", "log", "binary", "log+unit", "log+idf", "binary+idf"])
def transform(request):
    return request.param


@pytest.fixture(params=["multinomial", "polya", "bernoulli"])
def reading(request):
    return request.param


def fitted(texts, labels, **options):
    return GenerativeClassifier(Text(**{**PLAIN, **options}), calibrate=None).fit(texts, labels)


# -- learning opens the vocabulary -------------------------------------------------------------------------------------
def test_learning_takes_new_words_into_the_vocabulary():
    clf = fitted(TEXTS, LABELS)
    clf.learn([OWN_WORDS], [OWN_LABEL])
    assert {"airdrop", "blockchain"} <= words(clf)
    assert clf.llr(["airdrop"], "spam", "ham") > 0


def test_ten_lessons_about_new_words_change_the_answer_of_a_default_model():
    rng = np.random.default_rng(3)
    spam = [" ".join(rng.choice(["prize", "win", "free", "cash", "now", "you"], 6)) for _ in range(60)]
    ham = [" ".join(rng.choice(["lunch", "noon", "team", "see", "now", "you"], 6)) for _ in range(140)]
    clf = GenerativeClassifier().fit(spam + ham, ["spam"] * 60 + ["ham"] * 140)
    query = ["airdrop wallet you"]
    (before,) = clf.predict(query)
    other = "ham" if before == "spam" else "spam"
    clf.learn([f"airdrop wallet {word} now" for word in ("see", "you") * 5], [other] * 10)
    assert clf.predict(query).tolist() == [other]


def test_learning_in_two_steps_equals_one_fit(transform):
    whole, steps = fitted(TEXTS, LABELS, transform=transform), fitted(TEXTS[:3], LABELS[:3], transform=transform)
    steps.learn(TEXTS[3:], LABELS[3:])
    assert steps.stats_.same(whole.stats_)
    np.testing.assert_array_equal(steps.predict_proba(QUERY), whole.predict_proba(QUERY))


def test_learning_document_by_document_equals_one_fit(reading):
    rng = np.random.default_rng(0)
    texts, labels = corpus(rng, 60)
    options = {"reading": reading, "transform": "binary" if reading == "bernoulli" else "counts"}
    whole, steps = fitted(texts, labels, **options), fitted(texts[:5], labels[:5], **options)
    for text, label in zip(texts[5:], labels[5:]):
        steps.learn([text], [label])
    assert steps.stats_.same(whole.stats_)


def test_words_that_were_never_learnt_say_nothing():
    clf = fitted(TEXTS, LABELS)
    np.testing.assert_array_equal(clf.log_likelihood(["free zebra"]), clf.log_likelihood(["free"]))


@pytest.mark.parametrize("limits", [{"min_df": 2}, {"max_df": 0.5}, {"most": 4}])
def test_limits_keep_the_list_of_the_first_fit(limits):
    clf = fitted(TEXTS, LABELS, **limits)
    before = words(clf)
    clf.learn([OWN_WORDS] * 3, [OWN_LABEL] * 3)
    assert words(clf) == before


def test_a_family_without_classes_learns_new_words():
    one = Text(**PLAIN).fit(TEXTS)
    more = one.learn([OWN_WORDS])
    assert {"airdrop", "blockchain"} <= set(more.stats.labels["word"].names)
    assert more.stats.same(Text(**PLAIN).fit([*TEXTS, OWN_WORDS]).stats)


# -- unlearning --------------------------------------------------------------------------------------------------------
def test_unlearning_a_document_and_learning_it_again_gives_the_model_back(transform):
    clf = fitted([*TEXTS, OWN_WORDS], [*LABELS, OWN_LABEL], transform=transform)
    stats, answer = clf.stats_, clf.predict_proba(QUERY)
    clf.unlearn([OWN_WORDS], [OWN_LABEL])
    assert not {"airdrop", "blockchain"} & words(clf)
    clf.learn([OWN_WORDS], [OWN_LABEL])
    assert clf.stats_.same(stats)
    np.testing.assert_array_equal(clf.predict_proba(QUERY), answer)


def test_a_default_fit_gets_a_document_back_too():
    texts, labels = corpus(np.random.default_rng(1), 80)
    clf = GenerativeClassifier().fit([*texts, OWN_WORDS], [*labels, "1"])
    stats, answer = clf.stats_, clf.predict_proba(QUERY)
    clf.unlearn([OWN_WORDS], ["1"])
    clf.learn([OWN_WORDS], ["1"])
    assert clf.stats_.same(stats)
    np.testing.assert_array_equal(clf.predict_proba(QUERY), answer)


def test_unlearning_equals_a_fit_without_the_document(reading):
    options = {"reading": reading, "transform": "binary" if reading == "bernoulli" else "counts"}
    clf = fitted([*TEXTS, OWN_WORDS], [*LABELS, OWN_LABEL], **options)
    clf.unlearn([OWN_WORDS], [OWN_LABEL])
    assert clf.stats_.same(fitted(TEXTS, LABELS, **options).stats_)


def test_a_rolling_window_equals_a_fit_of_its_documents():
    texts, labels = corpus(np.random.default_rng(2), 300)
    clf = fitted(texts[:100], labels[:100])
    for at in range(0, 200, 20):
        clf.learn(texts[100 + at : 120 + at], labels[100 + at : 120 + at])
        clf.unlearn(texts[at : at + 20], labels[at : at + 20])
    assert clf.stats_.same(fitted(texts[200:], labels[200:]).stats_)


def test_a_document_with_words_that_were_never_learnt_cannot_be_unlearnt():
    clf = fitted(TEXTS, LABELS)
    before = clf.stats_
    with pytest.raises(ValueError, match=r"never learnt|not learnt"):
        clf.unlearn(["free zebra"], ["spam"])
    assert clf.stats_ is before


def test_a_corrected_document_keeps_its_words():
    clf = fitted([*TEXTS, OWN_WORDS], [*LABELS, "ham"])
    clf.correct([OWN_WORDS], ["ham"], ["spam"])
    assert clf.stats_.same(fitted([*TEXTS, OWN_WORDS], [*LABELS, "spam"]).stats_)


# -- pseudo-counts of the sums -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("pseudo_count", ["evidence", "loo"])
@pytest.mark.parametrize("base", ["flat", "pooled"])
def test_a_pseudo_count_that_sums_decide_follows_the_sums(pseudo_count, base):
    texts, labels = corpus(np.random.default_rng(4), 90)
    options = {"pseudo_count": pseudo_count, "base": base}
    whole, steps = fitted(texts, labels, **options), fitted(texts[:30], labels[:30], **options)
    first = steps.log_likelihood(texts)
    steps.learn(texts[30:], labels[30:])
    np.testing.assert_allclose(steps.log_likelihood(texts), whole.log_likelihood(texts), rtol=1e-12)
    frozen = fitted(texts[:30], labels[:30], **options).reestimate(
        pseudo_count=whole.family_.resolve(whole.stats_.family).pseudo_count
    )
    assert not np.allclose(frozen.log_likelihood(texts), first)  # the two pseudo-counts differ
    steps.unlearn(texts[30:], labels[30:])
    np.testing.assert_allclose(steps.log_likelihood(texts), first, rtol=1e-12)
    apart = fitted(texts[30:], labels[30:], **options)
    np.testing.assert_allclose((steps + apart).log_likelihood(texts), whole.log_likelihood(texts), rtol=1e-12)


def test_rows_left_out_hold_the_pseudo_count_of_all_sums():
    texts, labels = corpus(np.random.default_rng(5), 60)
    clf = fitted(texts, labels, pseudo_count="evidence")
    held = clf.family_.resolve(clf.stats_.family)
    assert isinstance(held.pseudo_count, float)
    left = clf.leave_one_out(texts, labels, method="log_likelihood")
    for i in (0, 17, 59):
        others = [at for at in range(60) if at != i]
        one = GenerativeClassifier(held, calibrate=None).fit([texts[at] for at in others], labels[others])
        np.testing.assert_allclose(left[i], one.log_likelihood([texts[i]])[0], rtol=1e-9)


# -- sites that share choices ------------------------------------------------------------------------------------------
def test_a_blank_model_learns_texts_with_the_same_choices():
    texts, labels = corpus(np.random.default_rng(3), 80)
    first = GenerativeClassifier().fit(texts[:40], labels[:40])
    second = first.blank().learn(texts[40:], labels[40:])
    assert second.family_ == first.family_
    assert second.predict(texts[40:]).shape == (40,)


def test_models_of_two_sites_with_shared_choices_add_to_the_fit_of_both(transform):
    first = fitted(TEXTS[:3], LABELS[:3], transform=transform)
    second = first.blank().learn([*TEXTS[3:], OWN_WORDS], [*LABELS[3:], OWN_LABEL])
    both = first + second
    whole = fitted([*TEXTS, OWN_WORDS], [*LABELS, OWN_LABEL], transform=transform)
    assert both.stats_.same(whole.stats_)
    np.testing.assert_array_equal(both.predict_proba(QUERY), whole.predict_proba(QUERY))


@pytest.mark.parametrize("limits", [{"min_df": 2}, {"most": 4}])
def test_a_blank_model_keeps_the_words_that_limits_left(limits):
    first = fitted(TEXTS, LABELS, **limits)
    again = first.blank().learn(TEXTS, LABELS)
    assert again.stats_.same(first.stats_)
