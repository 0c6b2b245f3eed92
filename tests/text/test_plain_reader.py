"""Plain Python and compiled kernels give the same bits for the same documents."""

import os
import time

import numpy as np
import pytest

from deciban import GenerativeClassifier
from deciban.kernels import forced
from deciban.kernels.choice import VERSION, at_hand, on_disk
from deciban.text import documents as reading
from deciban.text.counting import count_classes, count_documents
from deciban.text.density import Scorer
from deciban.text.documents import PLAIN_CHARACTERS, PLAIN_TOTAL, PLAIN_WORDS, DocumentPass, Documents, runs_within
from deciban.text.stats import log_steps
from deciban.text.tokens import Tokens

KINDS = [
    {},
    {"ngrams": (1, 2)},
    {"ngrams": (2, 3)},
    {"unit": "char_wb", "ngrams": (2, 4)},
    {"unit": "char", "ngrams": (1, 3)},
    {"pattern": None},
    {"strip_accents": "unicode", "lowercase": False},
]
WORDS = [f"w{number}x" for number in range(200)]
WORDS += ["é", "Übung", "ß", "x", "日本", "İstanbul", "ΣΑΣ", "👍", " ", "  ", "\t", "\x1c", "\0", "don't", "1", "_a"]


def drawn(n: int, longest: int) -> list[str]:
    """n texts of up to so many words; some are empty."""
    rng = np.random.default_rng(n)
    return [" ".join(rng.choice(WORDS, rng.integers(longest))) for _ in range(n)]


def read(tokens: Tokens, texts: list[str]) -> list[object]:
    """What is read of texts: counts, sums per class and scores."""
    found = count_documents(Documents.of(texts), tokens)
    half = found.vocabulary.take(np.arange(0, len(found.vocabulary), 2))
    inside = count_documents(Documents.of(texts), tokens, half, binary=True)
    sums = count_classes(texts, np.arange(len(texts)) % 3, 3, tokens, steps=log_steps)
    out: list[object] = [list(found.vocabulary), list(sums.vocabulary), sums.counts, sums.lengths]
    for counted in (found, inside):
        out += [counted.matrix.data, counted.matrix.indices, counted.matrix.indptr, counted.lengths]
    for K in (1, 2, 3, 20):
        weights = np.random.default_rng(K).normal(size=(half.columns, K))
        for options in ({}, {"binary": True}, {"steps": log_steps}, {"binary": True, "steps": log_steps}):
            out += Scorer(half, weights, weights.mean(axis=0), tokens, **options).scores_and_lengths(texts)
    return out


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("n", "longest"), [(300, 5), (100, 40), (30, 400)])
def test_plain_and_compiled_readers_give_the_same_bits(kind, n, longest):
    tokens, texts = Tokens(**kind), drawn(n, longest)
    with forced("numba"):
        compiled = read(tokens, texts)
    with forced("numpy"):
        plain = read(tokens, texts)
    for one, two in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, two, strict=isinstance(one, np.ndarray))


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 4), (3, 5), (2, 9), (1, 30)])
def test_runs_of_all_words_are_those_of_each(low, high):
    rng, tokens = np.random.default_rng(0), Tokens("char_wb", ngrams=(low, high))
    letters = list("abcdefé日😀\0x")
    words = list(dict.fromkeys("".join(rng.choice(letters, rng.integers(1, 12))) for _ in range(500)))
    runs, spelt, sizes = runs_within(words, low, high)
    each = [tokens._runs_within(word) for word in words]
    assert sizes.tolist() == [len(some) for some in each]
    assert [spelt[at] for at in runs] == [run for some in each for run in some]
    assert spelt == list(dict.fromkeys(run for some in each for run in some))


@pytest.fixture
def nothing_read(monkeypatch):
    """A process that has not read anything in plain Python."""
    monkeypatch.setattr(reading.plain_bytes, "read", 0)


@pytest.mark.parametrize(("unit", "most"), [("word", PLAIN_WORDS), ("char_wb", PLAIN_CHARACTERS)])
@pytest.mark.parametrize("ready", [False, True])
def test_documents_of_medium_size_are_compiled_for_only_if_machine_code_is_at_hand(
    ready, unit, most, nothing_read, monkeypatch
):
    monkeypatch.setattr(reading, "at_hand", lambda module, kernel: ready)
    medium, large, tokens = Documents.of(["x" * (most - 1)]), Documents.of(["x" * most]), Tokens(unit)
    assert DocumentPass(medium, tokens).fast is ready
    assert DocumentPass(large, tokens).fast
    assert DocumentPass(medium, tokens, rounded=True).fast  # their sums depend on the version
    assert not DocumentPass(Documents.of(["few words"]), tokens).fast


def test_a_process_that_has_read_much_in_plain_python_compiles(nothing_read, monkeypatch):
    monkeypatch.setattr(reading, "at_hand", lambda module, kernel: False)
    documents = Documents.of(["some words " * 20_000])
    count_documents(documents, Tokens())
    assert reading.plain_bytes.read == len(documents[0])
    assert not DocumentPass(documents, Tokens()).fast
    monkeypatch.setattr(reading.plain_bytes, "read", PLAIN_TOTAL)
    assert DocumentPass(documents, Tokens()).fast
    assert not DocumentPass(Documents.of(["few words"]), Tokens()).fast


@pytest.mark.parametrize("separate", ["", " ", "日本 "])
def test_a_fit_has_the_same_bits_with_and_without_machine_code(separate, nothing_read, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2_500)
    texts = [separate.join([*rng.choice(WORDS[:150], 9), WORDS[rng.integers(9) + 4 * label]]) for label in y]
    assert 100_000 < sum(map(len, texts)) < PLAIN_CHARACTERS
    found = []
    for ready in (False, True):
        monkeypatch.setattr(reading, "at_hand", lambda module, kernel, ready=ready: ready)
        monkeypatch.setattr("deciban.kernels.sparse.at_hand", lambda module, kernel, ready=ready: ready)
        clf = GenerativeClassifier().fit(texts, y)
        found.append((clf.log_likelihood(texts), clf.predict_proba(texts), clf.leave_one_out(texts, y)))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_machine_code_on_disk_is_found_if_it_is_newer_than_its_source(tmp_path):
    name = "deciban.text.kernels.readers"
    folder = tmp_path / "kernels_0"
    folder.mkdir()
    assert not on_disk(name, "read_words", str(tmp_path))
    on_disk.cache_clear()
    index = folder / f"readers.read_words-157.{VERSION}.nbi"
    index.touch()
    assert on_disk(name, "read_words", str(tmp_path))
    assert not on_disk(name, "read_characters", str(tmp_path))
    on_disk.cache_clear()
    os.utime(index, (0, time.time() - 1e9))
    assert not on_disk(name, "read_words", str(tmp_path))
    on_disk.cache_clear()


def test_a_kernel_that_has_run_is_at_hand():
    from deciban.text.kernels.streams_compiled import drop_id

    drop_id(np.array([1, 2], np.int32), np.array([2]), 2)
    assert at_hand("deciban.text.kernels.streams_compiled", "drop_id")
    assert not at_hand("deciban.text.kernels.streams_compiled", "no_such_kernel")
