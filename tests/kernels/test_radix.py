"""Keys ranked digit by digit, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from deciban.text.kernels.streams_compiled import ranked


@pytest.mark.parametrize("bits", [1, 2, 12, 13, 36, 55, 56, 63, 64])
@pytest.mark.parametrize("n", [0, 1, 2, 300, 70_000])
def test_ranks_are_those_among_the_distinct_keys(bits, n):
    rng = np.random.default_rng(bits)
    some = rng.integers(0, 2**bits - 1, n // 2, dtype=np.uint64, endpoint=True)
    keys = np.concatenate([some, some[::-1], np.zeros(n % 2, np.uint64)])
    distinct, ranks = np.unique(keys, return_inverse=True)
    ours, others = ranked(keys.copy(), bits)
    np.testing.assert_array_equal(ours, ranks)
    np.testing.assert_array_equal(others, distinct)
