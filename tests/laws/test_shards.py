"""However the rows are dealt out, the whole is the same; and the rows of a shard can be left out by sums."""

from functools import reduce
from operator import add

import numpy as np
import pytest

from cases import CASES, close
from deciban.statistics import all_but_one

each_case = pytest.mark.parametrize("case", CASES, ids=repr)


@each_case
@pytest.mark.parametrize("shards", [1, 2, 7])
def test_any_number_of_shards_is_the_whole(case, shards):
    family, X, members = case.data(11, 49)
    deal = np.arange(49) % shards
    parts = [family.collect(X[deal == s], members.take(deal == s)) for s in range(shards)]
    close(reduce(add, parts), family.collect(X, members), exact=case.exact)


@each_case
def test_all_but_one_shard_is_the_other_shards(case):
    family, X, members = case.data(12, 40, weighted=True)
    deal = np.arange(40) % 4
    parts = [family.collect(X[deal == s], members.take(deal == s)) for s in range(4)]
    for shard, rest in enumerate(all_but_one(parts)):
        close(rest, family.collect(X[deal != shard], members.take(deal != shard)))


@each_case
def test_duplicate_rows_and_single_rows_are_rows_like_others(case):
    family, X, members = case.data(13, 5)
    rows = np.zeros(9, dtype=int)
    once = family.collect(X[:1], members.take(slice(0, 1)))
    close(9 * once, family.collect(X[rows], members.take(rows)), exact=case.exact)
