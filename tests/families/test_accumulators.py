"""Accumulators of streams: batch by batch they hold the sums of all rows."""

import numpy as np
import pyarrow as pa
import pytest

from deciban import Bernoulli, Gaussian, Product, Text, kernels
from deciban.families.protocol import accumulator
from deciban.statistics import Axis, Members
from deciban.text.counting import TextRows

FIRST = ["to be or not", None, "be quick", "not to be, <unk>"]
THEN = [["or else", "be be be", "new words come"], ["unheard of", None]]
OPTIONS = [
    {"transform": "counts"},
    {"transform": "binary"},
    {"transform": "log"},
    {"transform": "log+unit"},
    {"transform": "log+idf"},
    {"transform": "binary+idf", "vocabulary": "growing"},
    {"reading": "bernoulli"},
    {"transform": "counts", "ngrams": (1, 2)},
    {"transform": "log", "vocabulary": "growing"},
    {"transform": "binary", "vocabulary": ["be", "to", "absent"]},
    {"transform": "counts", "min_df": 2},
    {"transform": "log+idf+unit", "most": 3},
]


def batches(weighted):
    """Rows and members; classes arrive in another order than theirs."""
    rng = np.random.default_rng(0)
    axes = [Axis(("b", "d")), Axis(("a", "d")), Axis(("b", "c"))]
    for axis, texts in zip(axes, [FIRST, *THEN]):
        codes = np.arange(len(texts)) % 2
        weight = rng.integers(1, 9, len(texts)) / 4 if weighted else None
        yield TextRows.of(texts), Members.hard(codes, axis, weight)


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_stream_of_texts_has_the_sums_of_its_batches(options, weighted, body):
    with kernels.forced(body):
        (X, members), *rest = batches(weighted)
        text = Text(pseudo_count=1.0, **options).without_labels(X, members)
        running, expected = accumulator(text, X, members, ["text"]), text.collect(X, members)
        for more in rest:
            running.add(*more)
            expected = expected + text.collect(*more)
        assert running.total().same(expected)
        assert running.total().same(expected)  # asking does not change it


@pytest.mark.parametrize("arrow", [(True, True), (True, False)])
def test_batches_of_arrow_columns_and_lists_add_up(arrow):
    text = Text(transform="log+unit", pseudo_count=1.0)
    parts = [["to be or not", None], ["be quick", "or else"]]
    given = [pa.chunked_array([pa.array(part)]) if column else part for part, column in zip(parts, arrow)]
    members = [Members.one_group(2) for _ in parts]
    running = accumulator(text, text.encode(["first words"], []), Members.one_group(1), ["text"])
    for part, own in zip(given, members):
        running.add(text.encode(part, []), own)
    expected = text.collect(text.encode(["first words", *parts[0], *parts[1]], []), Members.one_group(5))
    assert running.total().same(expected)


def test_what_looks_at_sums_to_choose_looks_at_those_of_the_first_rows():
    (X, members), more, _ = batches(False)
    text = Text("multinomial", "counts", "evidence")
    running = accumulator(text, X, members, ["text"])
    running.choose(X, members, "mean")
    assert running.family == text.choose(text.collect(X, members), (X, members))
    running.add(*more)
    assert running.total().rows.sum() == 3 + 3


def test_a_product_runs_block_by_block():
    rng, both = np.random.default_rng(0), Product({0: Gaussian("diagonal"), (1, 2): Bernoulli()})
    table = np.column_stack([rng.normal(size=20), rng.integers(0, 2, (20, 2))])
    parts = [(both.encode(table[at : at + 10], range(3)), Members.hard(np.arange(10) % 2, 2)) for at in (0, 10)]
    running = accumulator(both, *parts[0], range(3))
    running.choose(*parts[0], "mean")
    running.add(*parts[1])
    frozen = both.choose(both.collect(*parts[0]), parts[0])
    assert running.family == frozen
    assert running.total().same(both.collect(*parts[0]) + frozen.collect(*parts[1]))
