"""Words that collide under one hash function do not collide in a table, because each table has a secret key."""

import numpy as np
import pytest

from deciban.text.kernels.hash_tables import SLOT, NgramTable, WordTable
from limited import run_limited

LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)
# The hash function without a key that deciban once had: the slot was a function of first ^ second · MULTIPLIER, where
# first and second are the two halves of a word of sixteen bytes.
MULTIPLIER = np.uint64(0xE7037ED1A0B428DB)


def words_of_one_sum(number):
    """(number, 16) letters of different words with the same first ^ second · MULTIPLIER.

    Byte i of the product depends on the bytes 0 … i of `second` alone, so words are extended byte by byte, and those
    are kept for which byte i of `first` is a letter.
    """
    allowed = np.isin(np.arange(256), LETTERS)
    second, wanted = np.zeros(1, np.uint64), np.uint64(0x6162636465666768)
    for i in range(8):
        shift = np.uint64(8 * i)
        second = (second[:, None] | (LETTERS.astype(np.uint64) << shift)).ravel()
        first = wanted ^ (second * MULTIPLIER)
        second = second[allowed[(first >> shift) & np.uint64(255)]]
    first = wanted ^ (second * MULTIPLIER)
    return np.column_stack([first, second])[:number].view(np.uint8)


def random_words(number, length, seed=0):
    """(number, length) letters."""
    return np.random.default_rng(seed).choice(LETTERS, (number, length))


def looked_up(words, key):
    """A table of words with a key, and their ids."""
    table = WordTable(len(words), key=key)
    text = np.append(words.ravel(), np.zeros(16, np.uint8))
    return table, table.look_up(text, np.arange(len(words) + 1) * words.shape[1], grow=True)


def longest_run(used):
    """The most slots in a row that are in use."""
    free = np.flatnonzero(~used)
    return int(np.diff(np.concatenate([[-1], free, [len(used)]])).max()) - 1


def slots_of(words, key):
    """The slot of each word."""
    table, ids = looked_up(words, key)
    held = table.slots[2::SLOT]
    slot = np.empty(len(words), np.int64)
    slot[(held[held != 0] & np.uint64(2**32 - 1)).astype(np.int64) - 1] = np.flatnonzero(held)
    return slot[ids]


def words_of_one_place(length, key):
    """Words whose slots lie close together under a key, found by trial; for any hash function."""
    words = random_words(500_000, length)
    return words[close(slots_of(words, key))]


def close(slots):
    """Whether a slot of a large table lies in one of a few places of a smaller one: slots are numbered by low bits."""
    return slots % 4096 < 32


@pytest.mark.parametrize("length", [12, 24])
def test_words_that_collide_under_one_key_do_not_under_another(length):
    known = np.array([3, 2**61 + 7], np.int64) * 0x9E3779B97F4A7C
    words = words_of_one_place(length, known)
    assert len(words) > 2000
    attacked, ids = looked_up(words, known)
    safe, same_ids = looked_up(words, None)
    assert longest_run(attacked.slots[2::SLOT] != 0) > 10 * longest_run(safe.slots[2::SLOT] != 0)
    np.testing.assert_array_equal(ids, same_ids)


def test_pairs_that_collide_under_one_key_do_not_under_another():
    known = np.array([5, 2**61 + 9], np.int64) * 0x9E3779B97F4A7C
    rng = np.random.default_rng(1)
    left, right = rng.integers(0, 100_000, (2, 500_000))
    table = NgramTable(2, key=known)
    ids = table.add_pairs(left, right)
    slot = np.empty(len(table), np.int64)
    used = table.slots[::2] != 0
    slot[table.slots[1::2][used].astype(np.int64)] = np.flatnonzero(used)
    kept = close(slot[ids])
    left, right = left[kept], right[kept]
    attacked, safe = NgramTable(2, key=known), NgramTable(2)
    same = attacked.add_pairs(left, right), safe.add_pairs(left, right)
    assert longest_run(attacked.slots[::2] != 0) > 10 * longest_run(safe.slots[::2] != 0)
    np.testing.assert_array_equal(*same)


def test_every_table_has_a_key_of_its_own():
    keys = {tuple(table.state[-2:]) for table in [WordTable(), WordTable(), NgramTable(2), NgramTable(2)]}
    assert len(keys) == 4


def test_chosen_words_collide_in_a_table_without_a_key():
    words = words_of_one_sum(80_000)
    assert len(np.unique(words, axis=0)) == 80_000
    first, second = words.view(np.uint64).T
    assert len(np.unique(first ^ (second * MULTIPLIER))) == 1


ATTACK = """
import sys
import numpy as np
from deciban import GenerativeClassifier, Text

def documents(file):
    words = [bytes(word).decode() for word in np.load(file)]
    return [" ".join(words[at : at + 80]) for at in range(0, len(words), 80)]

def fitted(texts):
    clf = GenerativeClassifier(Text(ngrams=(1, 2))).fit(texts, ["a", "b"] * (len(texts) // 2))
    return clf.predict_proba(texts)

random, chosen = map(documents, sys.argv[1:])
fitted(random)
limit(seconds=2, megabytes=1000)
print(np.isfinite(fitted(chosen)).all())
"""


@pytest.mark.slow
def test_chosen_words_take_no_longer_than_random_words(tmp_path):
    # .1 s; without a key the fit took 2.8 s and the scores took 6.6 s
    files = tmp_path / "random.npy", tmp_path / "chosen.npy"
    for file, words in zip(files, [random_words(80_000, 16), words_of_one_sum(80_000)]):
        np.save(file, words)
    assert run_limited(ATTACK, *files) == "True\n"
