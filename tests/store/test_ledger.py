"""The ledger: only rows that were learnt can be taken back, as often as they were learnt, with the weight they have."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from deciban import Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson, load, release
from deciban.errors import InputError, MergeError, ModelFileError, NotAvailableError, NotLearntError
from deciban.model import ledger as ledgers
from deciban.model.ledger import HASH, Key, Ledger, LedgerSums, ledger_of, row_hashes
from deciban.read.batches import Batch
from deciban.read.schema import Schema
from deciban.read.tables import Table
from deciban.report.findings import evaluate_learnt
from store.models import COUNTS, FRAME, N, y


def hashes(X, columns=None, labels=None, weight=None, key=None):
    table = Table.of(X)
    columns = range(table.shape[1]) if columns is None else columns
    codes = np.zeros(len(table), dtype=np.intp) if labels is None else labels
    return row_hashes(table, columns, ["a", "b"], codes, weight, Key.of(key)).tolist()


def names(*numbers):
    return np.array([str(number).rjust(16, "0") for number in numbers], dtype=HASH)


# -- rows ------------------------------------------------------------------------------------------------------------
def test_a_row_is_the_same_however_it_is_written():
    dense = np.array([[1.0, 0.0, 3.0], [-0.0, 2.0, 0.0]])
    same = [
        dense,
        dense.astype(np.int8),
        dense.astype(np.float32),
        dense.astype(object),
        sp.csr_array(dense),
        sp.csc_array(dense),
        pd.DataFrame(dense),
        pd.DataFrame(dense.astype(int)),
        np.asfortranarray(dense),
    ]
    assert len({tuple(hashes(X)) for X in same}) == 1
    assert hashes([[True, False]]) == hashes([[1, 0]])
    assert (
        hashes([[None, "x"]])
        == hashes(np.array([[np.nan, "x"]], dtype=object))
        == hashes(pd.DataFrame({0: [None], 1: ["x"]}))
    )


def test_rows_that_differ_have_hashes_that_differ():
    rows = [[1, 2], [2, 1], [1, 2.5], ["1", 2], [1, "2"], [None, 2], [0, 2], ["", 2], [2**53, 2], [2**53 + 1, 2]]
    rows += [["ab", "c"], ["a", "bc"], ["\u00e9", 1], ["e\u0301", 1]]
    found = [hashes(np.array([row], dtype=object))[0] for row in rows]
    assert len(set(found)) == len(rows)
    assert hashes([[1]], labels=np.array([0])) != hashes([[1]], labels=np.array([1]))
    assert hashes([[1]], weight=np.array([2.0])) != hashes([[1]])
    assert hashes([[1]], columns=["x"]) != hashes([[1]], columns=["y"])
    assert hashes([[1]], key="k") != hashes([[1]])


def test_integers_that_no_double_equals_are_told_apart():
    X = np.array([[2**53 + 1, 5], [2**53, 5]])
    assert hashes(X) == hashes(X.astype(object))
    assert len(set(hashes(X))) == 2


def test_a_hash_is_as_documented():
    from hashlib import blake2b
    from struct import pack

    secret = b"our secret"

    def digest(data):
        return blake2b(data, key=secret, digest_size=16).digest()

    columns = digest(b"".join(bytes([1]) + digest(name.encode()) for name in ("height", "colour")))
    label = bytes([1]) + digest(b"a")
    colour = digest(b"red")
    cells = pack("<IBd", 0, 0, 1.5) + pack("<IB", 1, 1) + colour[:8] + pack("<IB", 1, 2) + colour[8:]
    expected = digest(columns + label + pack("<d", 1.0) + cells)
    assert hashes(pd.DataFrame({"height": [1.5], "colour": ["red"]}), ["height", "colour"], key=secret) == [expected]


def test_a_typed_row_has_the_hash_of_its_cells():
    colours = ["red", "", None, "blue", "red"] * 20
    frame = pd.DataFrame({"size": [1.5, 0.0, np.nan, -0.0, 2.0] * 20, "colour": colours, "big": 2**53 + np.arange(100)})
    kinds = {"colour": "category", "size": "number", "big": "number"}
    typed = Schema.infer(Table.of(frame), None, kinds).apply(Table.of(frame))
    codes, seen = np.zeros(100, dtype=np.intp), typed.pick().astype(object)
    found = row_hashes(typed, typed.columns, ["a"], codes, None, Key())
    plain = row_hashes(Table.of(seen), typed.columns, ["a"], codes, None, Key())
    assert found.tobytes() == plain.tobytes()
    some = typed.take(slice(3, 9))
    assert row_hashes(some, typed.columns, ["a"], codes[3:9], None, Key()).tobytes() == found[3:9].tobytes()


def test_what_is_no_row_is_refused():
    with pytest.raises(InputError, match="complex"):
        hashes(np.array([[1j, 2]], dtype=object))
    with pytest.raises(InputError, match="empty"):
        Key("")


# -- the multiset ----------------------------------------------------------------------------------------------------
steps = st.lists(st.tuples(st.sampled_from("+-·"), st.lists(st.integers(0, 5), max_size=6)), max_size=12)


@given(steps)
@settings(max_examples=60, deadline=None)
def test_a_ledger_is_a_multiset_of_what_decayed(steps):
    ledger, twin = Ledger.of(), []  # (row, since)
    for act, rows in steps:
        if act == "+":
            ledger, twin = ledger.learn(names(*rows)), twin + [(row, 1.0) for row in rows]
        elif act == "·":
            ledger, twin = ledger.decay(0.5), [(row, since / 2) for row, since in twin]
        else:
            left, since = list(twin), []
            try:
                for row in rows:
                    latest = max((each for each in left if each[0] == row), key=lambda each: each[1])
                    left.remove(latest)
                    since.append(latest[1])
            except ValueError:
                with pytest.raises(NotLearntError):
                    ledger.unlearn(names(*rows))
                with pytest.raises(NotLearntError):
                    ledger.decay_of(names(*rows))
            else:
                asked = ledger.decay_of(names(*rows))
                ledger, found = ledger.unlearn(names(*rows))
                assert sorted(zip(rows, found)) == sorted(zip(rows, since))
                np.testing.assert_array_equal(asked, found)
                twin = left
        assert len(ledger) == len(twin)
        fresh = Ledger.of()
        for row, since in reversed(twin):
            fresh = fresh.learn(names(row), np.array([since]))
        for name in ("rows", "level", "count", "since"):  # one set of rows, one ledger, to the bit
            np.testing.assert_array_equal(getattr(ledger, name), getattr(fresh, name))


@pytest.mark.parametrize("waiting", [0, 3, 2**20])
def test_batches_that_wait_make_the_ledger_of_all_rows(monkeypatch, waiting):
    monkeypatch.setattr(ledgers, "FEWEST_WAITING", waiting)
    rng = np.random.default_rng(0)
    X, y, weight = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60), rng.choice([1.0, 0.5], 60)
    whole = ledger_of(Batch(Table.of(X), y, weight), "key")
    sums = LedgerSums(Ledger.of("key"), (0, 1), "key")
    for rows in (slice(0, 1), slice(1, 40), slice(40, 44), slice(44, 60)):
        sums.add(Batch(Table.of(X[rows]), y[rows], weight[rows]))
    for name in ("rows", "level", "count", "since"):
        np.testing.assert_array_equal(getattr(sums.ledger(), name), getattr(whole, name))
    with pytest.raises(NotAvailableError, match="key"):
        LedgerSums(whole, (0, 1), "another key")


def test_refusals_name_the_row():
    ledger = Ledger.of().learn(names(1, 2, 2))
    with pytest.raises(NotLearntError, match="row 1 was never learnt"):
        ledger.unlearn(names(1, 7))
    with pytest.raises(NotLearntError, match="row 3 was learnt 2 times and is to be unlearnt once more"):
        ledger.unlearn(names(2, 1, 2, 2))
    with pytest.raises(NotLearntError, match="row 40 was never"):
        ledger.unlearn(names(1, 7), np.array([20, 40]))


def test_levels_that_decay_to_the_same_number_become_one():
    ledger = Ledger.of().learn(names(1), np.array([5e-324])).learn(names(1), np.array([1e-323]))
    faded = ledger.decay(1e-9)
    assert (len(faded), faded.since.tolist()) == (2, [0.0])


# -- classifiers -----------------------------------------------------------------------------------------------------
def test_a_stranger_that_the_sums_would_let_go_is_refused_by_row():
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(COUNTS, y)
    before = clf.stats_, clf.ledger_
    stranger = COUNTS[:3].copy()
    stranger[2] += 1
    with pytest.raises(NotLearntError, match="row 2 was never learnt"):
        clf.unlearn(stranger, y[:3])
    with pytest.raises(NotLearntError, match="row 2"):
        clf.correct(stranger, y[:3], y[:3])
    with pytest.raises(NotLearntError, match="row 2"):
        clf.leave_one_out(stranger, y[:3])
    weight = np.array([0.0, 1.0, 1.0, 1.0])
    with pytest.raises(NotLearntError, match="row 3"):  # rows of weight 0 are absent, and yet counted
        clf.unlearn(np.r_[stranger[:1], stranger], [*y[:1], *y[:3]], sample_weight=weight)
    assert (clf.stats_, clf.ledger_) == before
    GenerativeClassifier(Multinomial()).fit(COUNTS, y).unlearn(stranger, y[:3])  # without a ledger nobody can tell


@pytest.mark.parametrize("only_judged", [False, True])
def test_learnt_rows_are_judged_in_batches_and_others_refused(only_judged):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    clf = GenerativeClassifier(Gaussian(), ledger=True).fit(X, y)
    parts = [slice(0, 20), slice(20, 40), slice(40, 60)]
    batches = (Batch(Table.of(X[rows]), y[rows]) for rows in parts)
    judged, whole = evaluate_learnt(clf, batches, {}, only_judged), clf.evaluate(X, y, learnt=True)
    np.testing.assert_array_equal(judged.log_likelihood, whole.log_likelihood)
    batches = (Batch(Table.of(X[rows] + (rows.start == 40)), y[rows]) for rows in parts)
    with pytest.raises(NotLearntError, match="never learnt"):
        evaluate_learnt(clf, batches, {}, only_judged)


def test_once_too_often_is_refused():
    clf = GenerativeClassifier(Poisson(1.0), ledger=True).fit(np.r_[COUNTS, COUNTS[:1]], [*y, y[0]])
    clf.unlearn(COUNTS[:1], y[:1]).unlearn(COUNTS[:1], y[:1])
    with pytest.raises(NotLearntError, match="row 0"):
        clf.unlearn(COUNTS[:1], y[:1])
    with pytest.raises(NotLearntError, match="weight"):
        clf.unlearn(COUNTS[1:2], y[1:2], sample_weight=[0.5])


@pytest.mark.parametrize("families", [Multinomial(), Gaussian("diagonal"), Categorical()])
def test_unlearning_after_decay_is_exact(families):
    clf = GenerativeClassifier(families, ledger=True).fit(COUNTS[:30], y[:30])
    clf.decay(0.5).learn(COUNTS[30:60], y[30:60]).decay(0.25).learn(COUNTS[60:], y[60:])
    clf.unlearn(COUNTS[20:70], y[20:70])
    held = clf.family_.resolve(clf.stats_.family)  # a row is left out with the prior of all rows
    alone = GenerativeClassifier(held, ledger=True).fit(COUNTS[:20], y[:20]).decay(0.125)
    alone.learn(COUNTS[70:], y[70:])
    np.testing.assert_allclose(clf.predict_proba(COUNTS), alone.predict_proba(COUNTS), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.stats_.rows, alone.stats_.rows, rtol=1e-12)
    left_out = clf.leave_one_out(COUNTS[:20], y[:20])
    held = clf.family_.resolve(clf.stats_.family)  # leave-one-out holds the prior of the whole sums
    alone = GenerativeClassifier(held, ledger=True).fit(COUNTS[:20], y[:20]).decay(0.125).learn(COUNTS[70:], y[70:])
    rest = alone.unlearn(COUNTS[:1], y[:1])
    np.testing.assert_allclose(left_out[0], rest.predict_proba(COUNTS[:1])[0], rtol=1e-9, atol=1e-12)


def test_correcting_after_decay_moves_the_weight_that_is_left():
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(COUNTS, y).decay(0.5)
    clf.correct(COUNTS[:5], y[:5], ["spam"] * 5)
    right = GenerativeClassifier(Multinomial(), ledger=True).fit(COUNTS, ["spam"] * 5 + list(y[5:])).decay(0.5)
    assert clf.stats_.same(right.stats_)
    assert clf.unlearn(COUNTS[:5], ["spam"] * 5).stats_.same(right.unlearn(COUNTS[:5], ["spam"] * 5).stats_)
    with pytest.raises(NotLearntError, match="decayed"):
        GenerativeClassifier(Multinomial()).fit(COUNTS, y).decay(0.5).correct(COUNTS[:1], y[:1], ["spam"])


def test_ledgers_merge_with_their_models():
    a = GenerativeClassifier(Multinomial(), ledger="k").fit(COUNTS[:40], y[:40])
    b = GenerativeClassifier(Multinomial(), ledger="k").fit(COUNTS[40:], y[40:]).decay(0.5)
    both = a + b
    assert len(both.ledger_) == N
    both.unlearn(COUNTS[30:50], y[30:50])
    np.testing.assert_allclose(both.stats_.rows.sum(), 30 + 40 / 2)
    for other in (True, False, "other"):
        with pytest.raises(MergeError, match="ledger"):
            a.merge(GenerativeClassifier(Multinomial(), ledger=other).fit(COUNTS, y))


def test_a_ledger_is_stored_and_its_key_is_not(tmp_path):
    path = tmp_path / "model.deciban"
    clf = GenerativeClassifier({"height": Gaussian(), "colour": Categorical()}, ledger="our secret").fit(FRAME, y)
    clf.save(path)
    assert b"our secret" not in path.read_bytes()
    keyless = load(path)
    np.testing.assert_array_equal(keyless.predict_proba(FRAME), clf.predict_proba(FRAME))
    with pytest.raises(NotAvailableError, match="key"):
        keyless.learn(FRAME, y)
    with pytest.raises(ModelFileError, match="not the one"):
        load(path, key="another")
    again = load(path, key="our secret").unlearn(FRAME[:5], y[:5])
    assert len(again.ledger_) == N - 5
    with pytest.raises(NotLearntError, match="row 0"):
        again.unlearn(FRAME[:1], y[:1])
    again.learn(FRAME[:5], y[:5]).save(tmp_path / "again.deciban")
    assert clf.unlearn(FRAME[:5], y[:5]).learn(FRAME[:5], y[:5]).ledger_.rows.tolist() == again.ledger_.rows.tolist()
    release(clf).save(path)
    with pytest.raises(ModelFileError, match="no ledger"):
        load(path, key="our secret")


def test_a_public_ledger_needs_no_key(tmp_path):
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(COUNTS, y)
    clf.save(tmp_path / "before.deciban")
    clf.learn(COUNTS, y[::-1]).unlearn(COUNTS, y[::-1]).save(tmp_path / "after.deciban")
    assert (tmp_path / "before.deciban").read_bytes() == (tmp_path / "after.deciban").read_bytes()
    assert len(load(tmp_path / "after.deciban").unlearn(COUNTS[:9], y[:9]).ledger_) == N - 9


def test_one_weight_for_all_rows_and_columns_in_another_order():
    clf = GenerativeClassifier({"height": Gaussian(), "colour": Categorical()}, ledger=True)
    clf.fit(FRAME, y, sample_weight=2.0).decay(0.5).unlearn(FRAME[:5], y[:5], sample_weight=2.0)
    np.testing.assert_allclose(clf.stats_.rows.sum(), N - 5)
    clf.unlearn(FRAME[FRAME.columns[::-1]][5:9], y[5:9], sample_weight=2.0)
    np.testing.assert_allclose(clf.stats_.rows.sum(), N - 9)


def test_a_selection_of_columns_keeps_no_ledger():
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(COUNTS, y)
    assert clf.reestimate(columns=[0, 1]).ledger_ is None
    assert len(clf.reestimate(rule="predictive").ledger_) == N
