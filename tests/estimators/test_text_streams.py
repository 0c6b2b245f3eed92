"""Texts and numbers of a stream: the same model wherever the rows come from, and wherever batches end."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import Gaussian, GenerativeClassifier, Text, set_threads
from deciban.read import source
from deciban.read.files import open_source
from deciban.read.tables import HEAD
from deciban.statistics import Axis, Members
from deciban.text.counting import TextRows
from deciban.text.stats import CountAccumulator

FAMILIES = {"text": Text("multinomial", "log", 1.0), "size": Gaussian("diagonal")}


@pytest.fixture(scope="module")
def frame():
    """More rows than choices are taken from, the later ones with more text and other words."""
    rng, n = np.random.default_rng(0), HEAD + 3_000
    y, words = rng.integers(0, 3, n), np.array([f"w{word}" for word in range(400)], dtype=object)
    lengths = np.where(np.arange(n) < HEAD, 3, rng.integers(0, 40, n))
    drawn = [words[rng.integers(0, 200, long) + 50 * label + (long > 3)] for long, label in zip(lengths, y)]
    texts = [" ".join(each) for each in drawn]
    return pd.DataFrame({"text": texts, "size": rng.normal(y, 1.0), "label": np.array(["a", "b", "c"])[y]})


def test_texts_that_come_in_parts_give_the_model_of_the_same_rows_in_memory(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "BATCH_TEXT", 20_000)
    paths = [tmp_path / "rows.parquet", tmp_path / "rows.jsonl"]
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), paths[0], row_group_size=7_001)
    frame.to_json(paths[1], orient="records", lines=True, double_precision=15)
    sizes = [len(batch) for batch in open_source(paths[0]).batches(texts=lambda: ["text"])]
    assert sizes[0] == HEAD
    assert len(sizes) > 10  # or nothing is shown
    at_once = GenerativeClassifier(FAMILIES).fit(frame[["text", "size"]], frame["label"])
    for path in paths:
        clf = GenerativeClassifier(FAMILIES).fit(path, "label")
        assert clf.stats_.family.blocks[("text",)].same(at_once.stats_.family.blocks[("text",)])


def test_frames_and_files_end_batches_at_the_same_rows(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "BATCH_TEXT", 20_000)
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet")
    memory, file = (GenerativeClassifier(kinds=FAMILIES).fit(X, "label") for X in (frame, tmp_path / "rows.parquet"))
    assert memory.stats_.same(file.stats_)  # sums of numbers too, to the bit
    assert memory.calibration_.agrees(file.calibration_)


@pytest.mark.parametrize("given", [list, np.array, pa.array, pd.Series])
def test_a_model_of_a_file_of_texts_answers_texts_alone(tmp_path, given):
    rows = pd.DataFrame(
        {"text": ["to be or not", "or so", "win a prize", "a prize now"] * 9, "label": list("hhss") * 9}
    )
    parquet.write_table(pa.Table.from_pandas(rows), tmp_path / "rows.parquet")
    clf = GenerativeClassifier({"text": Text()}).fit(tmp_path / "rows.parquet", "label")
    texts = ["a prize to win", "so be it"]
    assert clf.predict(given(texts)).tolist() == ["s", "h"]
    np.testing.assert_array_equal(clf.predict_proba(given(texts)), clf.predict_proba(pd.DataFrame({"text": texts})))


@pytest.mark.parametrize("text", [Text(transform="counts"), Text(transform="log", ngrams=(1, 2))])
def test_first_rows_that_several_threads_count_give_the_same_sums(text):
    rng = np.random.default_rng(0)
    words = np.array([f"w{at}" for at in range(3_000)], object)
    batches = [
        ([" ".join(rng.choice(words, 20)) for _ in range(n)], names) for n, names in ((4_000, "ab"), (500, "ca"))
    ]
    found = []
    for threads in (1, 2):
        set_threads(threads)
        try:
            rows = [(TextRows.of(texts), _members(names, len(texts))) for texts, names in batches]
            sums = CountAccumulator(text, *rows[0])
            alone = sums.total()
            sums.add(*rows[1])
            found.append((alone, sums.total()))
        finally:
            set_threads(None)
    (one, ones), (two, twos) = found
    assert one.same(two)
    assert ones.same(twos)
    assert ones.labels["class"].names == ("a", "b", "c")


def _members(names, n):
    return Members(Axis(tuple(sorted(names))), np.arange(n) % 2)
