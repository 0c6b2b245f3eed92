"""Digests of sums depend on names and numbers alone; receipts of the former form are still verified."""

import json

import numpy as np
import pytest

from deciban import Gaussian, GenerativeClassifier, Text
from deciban.cli.process import run
from deciban.model.ledger import Key
from deciban.service import receipts
from deciban.service.receipts import FORMER, Receipt, SumsDigests, former_sums_digest, sums_digest
from deciban.service.storage import journal_path
from deciban.statistics import changed_columns
from deciban.statistics.changed_columns import ChangedColumns
from deciban.text import stats as text_stats
from deciban.text import vocabulary as vocabularies
from service.test_lessons import Class

RNG = np.random.default_rng(3)
WORDS = np.array([f"word{at}" for at in range(300)])
DOCUMENTS = [" ".join(RNG.choice(WORDS, 30)) for _ in range(40)]
LABELS = RNG.choice(["a", "b", "c"], 40).tolist()


@pytest.fixture
def noted(monkeypatch):
    """Note changed columns of small tables, and cut them into small chunks."""
    for module in (changed_columns, text_stats):
        monkeypatch.setattr(module, "LEAST_CELLS", 1)
    monkeypatch.setattr(text_stats, "MOST_CHANGED", 200)
    monkeypatch.setattr(vocabularies, "LEAST_WORDS", 4)
    monkeypatch.setattr(receipts, "CHUNK_WORDS", 5)
    monkeypatch.setattr(receipts, "CHUNKS_AT_A_TIME", 3)


def fitted():
    return GenerativeClassifier(Text(), calibrate=None, ledger=True).fit(DOCUMENTS, LABELS)


@pytest.mark.parametrize("seed", range(6))
def test_a_course_of_lessons_has_the_digests_of_models_that_are_read_anew(noted, seed):
    rng, clf, kept = np.random.default_rng(seed), fitted(), SumsDigests()
    first, taught = kept.of(clf.model_), []
    for _ in range(20):
        if taught and rng.random() < 0.4:
            clf.unlearn(*taught.pop(rng.integers(len(taught))))
        else:
            words = [*rng.choice(WORDS, 8), *(f"new{n}" for n in rng.integers(0, 60, 4))]
            taught.append(([" ".join(words)], [str(rng.choice(["a", "b", "c"]))]))
            clf.learn(*taught[-1])
        if rng.random() < 0.2:
            clf.predictor_.complete()  # the table is made, and is the older one of the next lesson
        if rng.random() < 0.7:  # others are seen together with those before
            assert kept.of(clf.model_) == sums_digest(clf.model_.stats)
    for rows, labels in taught:
        clf.unlearn(rows, labels)
    assert kept.of(clf.model_) == sums_digest(clf.model_.stats) == first


def test_a_digest_does_not_copy_the_table_and_reads_few_chunks(noted, monkeypatch):
    clf, kept, read = fitted(), SumsDigests(), []
    own = receipts._chunk_digest
    monkeypatch.setattr(receipts, "_chunk_digest", lambda *given: (read.append(given), own(*given))[1])
    kept.of(clf.model_)
    assert len(read) > 40
    read.clear()
    clf.learn(["word1 word7 unheard"], ["a"]).learn(["word2"], ["b"]).unlearn(["word1 word7 unheard"], ["a"])
    kept.of(clf.model_)
    assert 0 < len(read) <= 3
    table = clf.model_.stats.family.table
    assert isinstance(table, ChangedColumns)
    assert table.made is None


def test_another_count_word_class_or_column_gives_another_digest():
    def digest(documents=DOCUMENTS, labels=LABELS):
        return sums_digest(GenerativeClassifier(Text(transform="counts"), calibrate=None).fit(documents, labels).stats_)

    swapped = [*DOCUMENTS[:-2], DOCUMENTS[-1], DOCUMENTS[-2]]
    digests_found = {
        digest(),
        digest([f"{DOCUMENTS[0]} word1", *DOCUMENTS[1:]]),
        digest([text.replace("word11 ", "word11x ") for text in DOCUMENTS]),
        digest(labels=["d" if label == "c" else label for label in LABELS]),
        digest(labels=["b", *LABELS[1:]] if LABELS[0] == "a" else ["a", *LABELS[1:]]),
    }
    assert len(digests_found) == 5
    assert digest(swapped, [*LABELS[:-2], LABELS[-1], LABELS[-2]]) == digest()  # the order of rows is no part of sums


def test_sums_of_numbers_have_a_digest_of_all_arrays():
    X = np.arange(12.0).reshape(6, 2)
    one, two = (GenerativeClassifier(Gaussian()).fit(X, y).stats_ for y in ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]))
    assert sums_digest(one) == sums_digest(one * 1.0) != sums_digest(two)


def test_receipts_of_the_former_form_are_verified(texts_model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Class(texts_model) as school:
        learnt = school.give("learn", ["free lunch"], ["ham"])
        issued = Receipt.of(school.give("undo", undoes=learnt.id).receipt)
        journal, stats = school.teacher.journal, school.teacher._state.model.stats
        fields = {**vars(issued), "form": FORMER, "sums_after": former_sums_digest(stats)}
        former = Receipt(**fields).sealed(Key.of(journal.secret))
        journal._database.execute(
            "update lessons set receipt=? where id=?", (json.dumps(former.content()), issued.lesson)
        )
    assert journal_path(texts_model).exists()
    (tmp_path / "former.json").write_text(json.dumps(former.content()))
    assert run(["verify", "former.json", str(texts_model)]) == 0
    assert capsys.readouterr().out.count("yes") == 3
    wrong = Receipt(**{**vars(former), "sums_after": issued.sums_after}).sealed(Key.of(Key.of(b"x").secret))
    (tmp_path / "wrong.json").write_text(json.dumps(wrong.content()))
    assert run(["verify", "wrong.json", str(texts_model)]) == 1
    assert capsys.readouterr().out.count("NO") == 3
