"""Scales of words: calibrate="features"."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

import deciban
from deciban import Bernoulli, GenerativeClassifier, Text
from deciban.errors import DecibanError
from deciban.evaluate.scale_fit import OFFSET_SD
from deciban.evaluate.word_scales import WordScales
from deciban.families.word_scores import source_of
from deciban.kernels import parallel
from deciban.kernels.choice import forced
from deciban.model.calibration import Calibration
from deciban.model.candidates import Judge
from deciban.model.judge import known_lesson, left_out_blocks
from deciban.model.predictor import Predictor, block_lengths
from deciban.statistics import Members
from deciban.text import word_evidence
from deciban.text.counting import TextRows
from deciban.text.documents import DocumentPass
from deciban.text.vocabulary import Vocabulary
from deciban.text.word_evidence import FactorProblem, WordFactors

WORDS = [f"w{i:02d}" for i in range(40)]


def corpus(n=240, K=3, seed=0, length=12):
    """Words 0 … 8 tell the class; 10 … 19 come together, so that naive Bayes counts one piece of evidence ten times."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    texts = []
    for label in y:
        p = np.ones(40)
        p[label * 3 : label * 3 + 3] = 4.0
        drawn = rng.choice(40, length + rng.integers(0, 6), p=p / p.sum())
        copied = rng.random() < (0.7 if label == 0 else 0.4)
        rest = range(10, 20) if copied else rng.choice(np.arange(20, 40), 10)
        texts.append(" ".join(WORDS[i] for i in [*drawn, *rest]))
    return texts, [f"c{label}" for label in y]


FAMILIES = {
    "counts": Text(transform="counts", pseudo_count=0.5),
    "log": Text(transform="log", pseudo_count=0.1),
    "pairs": Text(transform="log+idf+unit", pseudo_count=0.3, ngrams=(1, 2)),
    "growing": Text(transform="counts", pseudo_count=0.5, vocabulary="growing"),
    "given": Text(transform="counts", pseudo_count=0.5, vocabulary=WORDS[:30]),
}


@pytest.fixture(params=FAMILIES)
def fitted(request):
    texts, labels = corpus()
    texts[3] += " onlyhere"
    clf = GenerativeClassifier(FAMILIES[request.param], calibrate="features").fit(texts, labels)
    return clf, texts, labels


def with_words(clf, texts, labels, form="words"):
    """The classifier with scales of words, whichever form was selected."""
    predictor = clf.predictor_
    lesson = known_lesson(predictor.model, clf._batch(texts, labels, None))
    blocks = left_out_blocks(predictor, lesson.rows, lesson.members)
    lengths = block_lengths(predictor.model.family, lesson.rows)
    model = predictor.model
    made = Calibration.fit("features", blocks, lesson.members.codes, lengths, model.classes, model.weight, form)
    other = copy.copy(clf)
    other.use(Predictor(replace(model, calibration=made), predictor.density))
    return other


def test_evidence_by_word_sums_to_the_leave_one_out_scores(fitted):
    clf, texts, labels = fitted
    predictor = clf.predictor_
    lesson = known_lesson(predictor.model, clf._batch(texts, labels, None))
    (scores,) = left_out_blocks(predictor, lesson.rows, lesson.members)
    source = source_of(scores)
    no_change = WordFactors((), np.zeros(0))
    np.testing.assert_allclose(source.rescaled(no_change), np.asarray(scores), rtol=1e-10)
    np.testing.assert_allclose(source.take([5, 2]).rescaled(no_change), np.asarray(scores)[[5, 2]], rtol=1e-10)
    (new,) = predictor.block_scores(lesson.rows)
    np.testing.assert_allclose(source_of(new).rescaled(no_change), np.asarray(new), rtol=1e-10)


def test_scores_of_some_rows_are_those_of_all_rows_and_the_others_are_missing(fitted):
    clf, texts, labels = fitted
    lesson = known_lesson(clf.predictor_.model, clf._batch(texts, labels, None))
    given, some = (clf.predictor_, lesson.rows, lesson.members), np.array([2, 5, 40])
    ((every,), (few,)) = left_out_blocks(*given), left_out_blocks(*given, scored=some)
    np.testing.assert_array_equal(np.asarray(few)[some], np.asarray(every)[some])
    assert np.isnan(np.delete(np.asarray(few), some, axis=0)).all()
    np.testing.assert_array_equal(source_of(few).evidence().rows.data, source_of(every).evidence().rows.data)


def test_fewer_than_50_texts_have_no_factors_of_words():
    texts, labels = corpus(48)
    assert not GenerativeClassifier().fit(texts, labels).calibration_.by_word


def test_a_row_left_out_scores_as_if_unlearnt_under_the_same_scales(fitted):
    clf, texts, labels = fitted
    clf = with_words(clf, texts, labels)
    assert isinstance(clf.calibration_.calibrator, WordScales)
    left = clf.leave_one_out(texts, labels, method="predict_log_proba")
    for row in (0, 3, 17):
        other = copy.deepcopy(clf).unlearn([texts[row]], [labels[row]])
        np.testing.assert_allclose(other.predict_log_proba([texts[row]])[0], left[row], rtol=1e-8)
        assert "out of date" in other.calibration_state_


def test_the_parts_of_an_explanation_sum_to_the_answer(fitted):
    clf, texts, labels = fitted
    clf = with_words(clf, texts, labels)
    told = clf.explain(texts[:4], "c1", "c0")
    whole = told.parts.sum(axis=1) + told.other["calibration"]
    np.testing.assert_allclose(whole, clf.llr(texts[:4], "c1", "c0"), rtol=1e-9)
    # all that the calibration adds is the offset
    offsets = clf.calibration_.offsets(["c0", "c1"])
    np.testing.assert_allclose(told.other["calibration"], offsets[1] - offsets[0], atol=1e-9)


def test_one_text_many_texts_and_copies_answer_alike(fitted, tmp_path):
    clf, texts, labels = fitted
    clf = with_words(clf, texts, labels)
    expected = clf.predict_log_proba(texts[:5])
    one = clf.scorer()
    np.testing.assert_allclose([one(text) for text in texts[:5]], expected, rtol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_log_proba(texts[:5]), expected)
    clf.save(tmp_path / "a.deciban")
    loaded = deciban.load(tmp_path / "a.deciban")
    np.testing.assert_array_equal(loaded.predict_log_proba(texts[:5]), expected)
    assert loaded.calibration_.agrees(clf.calibration_)
    np.testing.assert_array_equal(clf.released().predict_log_proba(texts[:5]), expected)


def test_groups_are_left_out_together(fitted):
    clf, texts, labels = fitted
    clf = with_words(clf, texts, labels)
    groups = np.arange(len(texts)) % 40
    left = clf.leave_one_out(texts, labels, groups=groups, method="predict_log_proba")
    at = np.flatnonzero(groups == 7)
    pick = [texts[i] for i in at], [labels[i] for i in at]
    other = copy.deepcopy(clf).unlearn(*pick)
    np.testing.assert_allclose(left[at], other.predict_log_proba(pick[0]), rtol=1e-8)


@pytest.mark.parametrize("K", [2, 3])
def test_the_fit_is_the_minimum_of_a_convex_objective(K):
    texts, labels = corpus(n=120, K=K)
    clf = GenerativeClassifier(FAMILIES["log"], calibrate="length").fit(texts, labels)
    predictor = clf.predictor_
    lesson = known_lesson(predictor.model, clf._batch(texts, labels, None))
    blocks = left_out_blocks(predictor, lesson.rows, lesson.members)
    codes = lesson.members.codes
    prior = np.bincount(codes) / len(codes)
    evidence = source_of(blocks[0]).exact_evidence()  # double precision
    scale = np.full((1, len(codes)), 0.4)
    problem = FactorProblem.of([evidence], scale, blocks, codes, np.log(prior), 3.0, OFFSET_SD)
    U, zero = len(problem.strength), np.zeros(K)

    def value(x):
        return problem.objective(x[:U], x[U:])[0]

    def slope(x):
        return np.concatenate(problem.objective(x[:U], x[U:])[1:])

    start = np.r_[np.random.default_rng(0).uniform(0, 2, U), np.linspace(-1, 1, K)]
    assert check_grad(value, slope, start) < 1e-3
    bounds = [(0, None)] * U + [(None, None)] * K
    best = minimize(
        value, np.r_[np.ones(U), zero], jac=slope, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13}
    )
    factors, offsets = problem.minimum(zero)
    assert (factors >= 0).all()
    assert value(np.r_[factors, offsets]) - best.fun < 3e-3 * best.fun
    np.testing.assert_allclose(factors, best.x[:U], atol=0.2)
    # single precision and two classes: the same scores up to what classes share
    fast = evidence.between_classes()
    for one, other in ((evidence.scores(factors), fast.scores(factors)),):
        np.testing.assert_allclose(one - one[:, :1], other - other[:, :1], atol=1e-4)


def test_copies_of_a_word_get_a_smaller_scale():
    texts, labels = corpus(n=1500, K=2)
    clf = with_words(GenerativeClassifier(FAMILIES["counts"]).fit(texts, labels), texts, labels)
    factors = clf.calibration_.word_factors(0)
    copies, tellers = factors.of_words(WORDS[10:20]), factors.of_words(WORDS[:3])
    assert copies.mean() < 0.8 * tellers.mean()
    assert tellers.mean() > 1.0  # the common scale is too small for words that come alone


def test_scales_of_words_help_where_words_repeat_each_other():
    texts, labels = corpus(n=1500)
    test, truth = corpus(n=1500, seed=1)
    clf = GenerativeClassifier(Text()).fit(texts, labels)
    assert clf.calibration_.method == "features"
    by_length = GenerativeClassifier(Text(), calibrate="length").fit(texts, labels)
    assert clf.evaluate(test, truth).log_loss < by_length.evaluate(test, truth).log_loss - 0.01


def test_noise_gets_no_scales_of_words():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 10)) for _ in range(200)]
    labels = rng.permutation(np.repeat(["a", "b"], 100))
    clf = GenerativeClassifier().fit(texts, labels)
    assert clf.calibration_.form in ("prior", "scale")


def test_readings_without_a_probability_for_each_word_are_calibrated_by_length():
    texts, labels = corpus()
    for family, rule in ((Text("bernoulli"), "mean"), (Text("polya"), "mean"), (Text(), "predictive")):
        clf = GenerativeClassifier(family, rule=rule).fit(texts, labels)
        assert clf.calibration_.method == "length"
        with pytest.raises(DecibanError, match="sum over words"):
            GenerativeClassifier(family, rule=rule, calibrate="features").fit(texts, labels)


def test_tables_refuse_scales_of_words():
    with pytest.raises(DecibanError, match="sum over words"):
        GenerativeClassifier(Bernoulli(), calibrate="features").fit(np.eye(6), [0, 1] * 3)


def test_factors_keep_what_differs_from_one():
    vocabulary = Vocabulary.of(["b", "a", "c"], "given")
    factors = WordFactors.kept(vocabulary, np.array([0, 1, 2, 3]), np.array([0.5, 1.0, 2.0, 0.25]))
    assert tuple(factors.words) == ("b", "c")
    assert factors.of(vocabulary).tolist() == [0.5, 1.0, 2.0, 0.25]
    assert factors.of(Vocabulary.of(["c", "d"], "learnt")).tolist() == [2.0, 1.0]
    assert factors == WordFactors(("b", "c"), np.array([0.5, 2.0]), 0.25)
    with pytest.raises(DecibanError, match="factors"):
        WordFactors(("b", "c"), np.array([0.5, -2.0]))


def test_new_rows_recalibrate_and_a_mix_of_columns_has_scales_of_words():
    texts, labels = corpus(n=400)
    clf = GenerativeClassifier(FAMILIES["counts"], calibrate=None).fit(texts[:200], labels[:200])
    clf.recalibrate(texts[200:], labels[200:], "features", learnt=False)
    assert clf.calibration_.method in ("features", "length")
    assert np.isfinite(clf.predict_log_proba(texts)).all()


# -- pseudo-counts in proportion to the words of all classes -----------------------------------------------------------
@pytest.mark.parametrize("vocabulary", ["learnt", "growing"])
def test_pooled_pseudo_counts_are_those_of_a_multinomial_with_that_base(vocabulary):
    texts, labels = corpus(n=60)
    text = Text(transform="counts", pseudo_count=0.5, base="pooled", vocabulary=vocabulary)
    clf = GenerativeClassifier(text, calibrate=None).fit(texts, labels)
    stats = clf.model_.stats.family
    counts = stats.counts if vocabulary == "learnt" else np.roll(stats.counts, -1, axis=1)
    totals = counts.sum(axis=0)
    totals[totals == 0] = totals[totals > 0].min()
    alpha = 0.5 * totals / totals.mean()
    log_p = np.log((counts + alpha) / (counts.sum(axis=1, keepdims=True) + alpha.sum()))
    np.testing.assert_allclose(clf.predictor_.density.inner.log_p, log_p.T, rtol=1e-12)


def test_pooled_pseudo_counts_are_held_while_a_document_is_left_out():
    texts, labels = corpus(n=60)
    texts[4] += " onlyhere"
    text = Text(transform="counts", pseudo_count=0.5, base="pooled")
    clf = GenerativeClassifier(text, calibrate=None).fit(texts, labels)
    left = clf.leave_one_out(texts, labels, method="log_likelihood")
    stats = clf.model_.stats.family
    words = list(stats.labels["word"].names)
    alpha = dict(zip(words, 0.5 * stats.counts.sum(axis=0) / stats.counts.sum(axis=0).mean()))
    for row in (0, 4):
        counts = stats.counts.copy()
        own = sorted(set(labels)).index(labels[row])
        for word in texts[row].split():
            counts[own, words.index(word)] -= 1
        stays = counts.sum(axis=0) > 0
        a = np.array([alpha[word] for word in words])[stays]
        log_p = np.log((counts[:, stays] + a) / (counts[:, stays].sum(axis=1, keepdims=True) + a.sum()))
        place = {word: at for at, word in enumerate(np.array(words)[stays])}
        expected = sum(log_p[:, place[word]] for word in texts[row].split() if word in place)
        np.testing.assert_allclose(left[row], expected, rtol=1e-10)


def test_pooled_pseudo_counts_follow_unlearning_and_influence():
    texts, labels = corpus(n=60)
    clf = GenerativeClassifier(Text(transform="counts", pseudo_count=0.5, base="pooled"), calibrate=None)
    clf.fit(texts, labels)
    without = copy.deepcopy(clf).unlearn(texts[:1], labels[:1])
    again = GenerativeClassifier(clf.families, calibrate=None).fit(texts[1:], labels[1:])
    np.testing.assert_array_equal(without.predict_log_proba(texts), again.predict_log_proba(texts))
    change = clf.influence(texts[7:8], texts, labels, "c1", "c0")
    exact = again.llr(texts[7:8], "c1", "c0") - clf.llr(texts[7:8], "c1", "c0")
    np.testing.assert_allclose(np.asarray(change)[0], exact[0], rtol=1e-8)


def test_a_class_with_one_row_does_not_judge_candidates():
    texts, labels = corpus(n=300)
    names, codes = np.unique([*labels, "rare"], return_inverse=True)
    rows, members = TextRows.of([*texts, "w00 w03"]), Members.hard(codes, len(names))
    line = Text(transform="counts", base="flat").candidates(rows, members)[0]
    judged = Judge(rows, members, "mean").best(line)
    assert len(judged.losses) == 300
    assert np.isfinite(judged.losses).all()
    assert judged.candidate.pseudo_count < 1.0  # 1 is the first candidate, which infinite losses would take


@pytest.mark.parametrize("K", [2, 3])
def test_factors_are_the_same_to_the_bit_for_any_number_of_threads(monkeypatch, K):
    monkeypatch.setattr(parallel, "CHUNK_WORK", 20_000)
    texts, labels = corpus(K=K)
    found = []
    for threads in (1, 2, 3, 8):
        deciban.set_threads(threads)
        try:
            clf = GenerativeClassifier(FAMILIES["counts"], calibrate="length").fit(texts, labels)
            words = with_words(clf, texts, labels)
            found.append((words.predictor_.model.calibration.calibrator.to_dict(), words.predict_log_proba(texts)))
        finally:
            deciban.set_threads(None)
    for made, log_p in found[1:]:
        assert made == found[0][0]
        np.testing.assert_array_equal(log_p, found[0][1])


@pytest.mark.parametrize("form", ["words", "scale"])
def test_an_answer_reads_each_document_once(monkeypatch, form):
    texts, labels = corpus()
    clf = with_words(
        GenerativeClassifier(FAMILIES["counts"], calibrate="length").fit(texts, labels), texts, labels, form
    )
    assert clf.predictor_.model.calibration.by_word == (form == "words")
    rows = clf.predictor_.model.encode(clf._batch(texts, labels, None).table)
    expected = clf.predictor_.calibrated(clf.predictor_.block_scores(rows), rows)
    read, number = DocumentPass.read, []

    def counted(self, reader, chunk):
        number.append(len(chunk.offsets) - 1)
        return read(self, reader, chunk)

    monkeypatch.setattr(DocumentPass, "read", counted)
    log_likelihood = clf.log_likelihood(texts, constant=False)
    assert sum(number) == len(texts)
    np.testing.assert_array_equal(log_likelihood, expected)


@pytest.mark.parametrize("body", ["numpy", "numba"])
@pytest.mark.parametrize("terms", ["counts", "log", "log+idf"])
def test_evidence_of_words_that_stay_sums_to_the_left_out_scores(terms, body):
    texts, labels = corpus(n=120)
    texts[3] += " onlyhere onlyhere"  # leaves the vocabulary with its document
    weight = np.random.default_rng(0).integers(1, 4, len(texts)).astype(float)
    with forced(body):
        clf = GenerativeClassifier(Text(transform=terms, pseudo_count=0.3, base="pooled"), calibrate=None)
        clf.fit(texts, labels, sample_weight=weight)
        lesson = known_lesson(clf.predictor_.model, clf._batch(texts, labels, weight))
        (block,) = left_out_blocks(clf.predictor_, lesson.rows, lesson.members)
        evidence = source_of(block).exact_evidence()
    np.testing.assert_allclose(evidence.scores(np.ones(len(evidence.at))), np.asarray(block), rtol=1e-10)


def text_problem(columns: list[str], labels: list[str], penalty: float) -> FactorProblem:
    """The fit of the factors of words in texts of one or two columns, with scales that differ between documents."""
    table = {name: [text[at:] for text in columns] for at, name in enumerate(["a", "b"])}
    clf = GenerativeClassifier(dict.fromkeys(table, FAMILIES["counts"]), calibrate=None).fit(table, labels)
    lesson = known_lesson(clf.predictor_.model, clf._batch(table, labels, None))
    blocks = left_out_blocks(clf.predictor_, lesson.rows, lesson.members)
    codes = lesson.members.codes
    scales = np.random.default_rng(0).uniform(0.2, 0.6, (2, len(codes)))
    prior = np.log(np.bincount(codes) / len(codes))
    return FactorProblem.of(
        [source_of(block).evidence() for block in blocks], scales, blocks, codes, prior, penalty, 2.0
    )


@pytest.mark.parametrize(("K", "penalty"), [(3, 3.0), (5, 0.5), (11, 1.0)])
def test_both_methods_end_at_the_same_minimum(K, penalty, monkeypatch):
    monkeypatch.setattr(word_evidence, "TOLERANCE", 1e-12)
    monkeypatch.setattr(word_evidence, "MAX_STEPS", 500)
    monkeypatch.setattr(word_evidence, "GAP", 1e-7)
    monkeypatch.setattr(word_evidence, "MAX_PASSES", 500)
    texts, labels = corpus(300, K)
    labels[7] = "alone"  # a class of one document is left out
    problem = text_problem(texts, labels, penalty)
    made = []
    for body in ("numpy", "numba"):
        with forced(body):
            made.append(problem.minimum(np.zeros(K + 1)))
    (factors, offsets), (others, others_offsets) = made
    assert (factors == 0).any()  # limits are reached
    assert not np.array_equal(factors, others)  # by another method
    np.testing.assert_allclose(factors, others, atol=1e-2)
    np.testing.assert_allclose(offsets, others_offsets, atol=1e-2)
    assert problem.objective(*made[1])[0] == pytest.approx(problem.objective(*made[0])[0], rel=1e-5)


def test_a_pass_over_the_documents_bounds_the_distance_from_the_minimum(monkeypatch):
    texts, labels = corpus(300, 4)
    problem = text_problem(texts, labels, 1.0)
    monkeypatch.setattr(word_evidence, "TOLERANCE", 1e-12)
    monkeypatch.setattr(word_evidence, "MAX_STEPS", 500)
    with forced("numpy"):
        least = problem.objective(*problem.minimum(np.zeros(4)))[0]
    above = []
    with forced("numba"):
        for gap in (0.1, 1e-2, 1e-3):
            monkeypatch.setattr(word_evidence, "GAP", gap)
            above.append(problem.objective(*problem.minimum(np.zeros(4)))[0] / least - 1)
    assert above[0] < 0.1
    assert above[2] < 1e-3
    assert above[0] > above[2] > -1e-6


def test_many_documents_leave_settled_ones_out_and_end_near_the_minimum(monkeypatch):
    from deciban.text.kernels import word_evidence_compiled

    texts, labels = corpus(600, 4)
    problem, visited = text_problem(texts, labels, 1.0), []
    run = word_evidence_compiled.ascend

    def ascend(order, *given):
        visited.append(len(order))
        run(order, *given)

    monkeypatch.setattr(word_evidence_compiled, "ascend", ascend)
    monkeypatch.setattr(word_evidence, "MANY", 600)
    with forced("numba"):
        factors, offsets = problem.minimum(np.zeros(4))
        monkeypatch.setattr(word_evidence, "MANY", 601)
        monkeypatch.setattr(word_evidence, "GAP", 1e-5)
        passes = len(visited)
        least = problem.objective(*problem.minimum(np.zeros(4)))[0]
    by_pass = np.reshape(visited[:passes], (-1, word_evidence.GROUPS)).sum(axis=1)
    assert min(by_pass) < 600 == max(by_pass)
    assert set(visited[passes:]) == {600}
    assert 0 < problem.objective(factors, offsets)[0] / least - 1 < 0.1


def test_groups_that_make_the_same_moves_end_near_the_minimum(monkeypatch):
    texts, labels = corpus(300, 4)
    problem = text_problem(texts * 2, labels * 2, 1.0)
    with forced("numba"):
        monkeypatch.setattr(word_evidence, "GAP", 1e-5)
        least = problem.objective(*problem.minimum(np.zeros(4)))[0]
        monkeypatch.setattr(word_evidence, "MANY", 600)
        monkeypatch.setattr(word_evidence, "GAP_OF_MANY", 1e-2)
        in_order = SimpleNamespace(permutation=lambda documents: documents)  # the second group has copies of the first
        monkeypatch.setattr(np.random, "default_rng", lambda seed: in_order)
        factors, offsets = problem.minimum(np.zeros(4))
    assert 0 < problem.objective(factors, offsets)[0] / least - 1 < 0.02


def test_rows_to_calibrate_are_selected_only_if_there_are_many_more():
    from deciban.model.fit import ROWS_OF_WORDS, rows_to_calibrate

    assert len(rows_to_calibrate("features", ROWS_OF_WORDS * 5 // 4)) == ROWS_OF_WORDS * 5 // 4
    assert len(rows_to_calibrate("features", ROWS_OF_WORDS * 5 // 4 + 1)) == ROWS_OF_WORDS
    assert len(rows_to_calibrate("length", ROWS_OF_WORDS)) == 20_000
