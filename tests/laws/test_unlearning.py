"""Learning and unlearning, in any order and in any batches, give the answers of a fit of the rows that stay.

Rows may hold values from 1e-150 to 1e150, counts beyond 2⁵³, weights and gaps. A call that cannot keep the promise is
refused with an UnlearnError; statistics are values, so that a refused call changes nothing.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CASES, RULES, with_gaps
from deciban.errors import DecibanError, InputError, UnlearnError
from deciban.families.binned import Binned
from deciban.families.gamma import Gamma
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.poisson import Poisson
from deciban.families.transformed import Transformed
from deciban.statistics import Members
from deciban.statistics.members import collect_checked

# random rows have more absurd numbers than a batch should
pytestmark = pytest.mark.filterwarnings("ignore::deciban.errors.AbsurdNumbersWarning")

each_case = pytest.mark.parametrize("case", CASES, ids=repr)
runs = settings(max_examples=4, deadline=None)
# Not refused, whatever the values: rows of dense tables that are summed exactly when they are far from the others.
NEVER_REFUSED = [case for case in CASES if isinstance(case.family, Gaussian) and "sparse" not in case.name]


def absurd(family, raw, rng):
    """Rows with some values that no other row is near to, as far as the family takes them."""
    if not isinstance(raw, np.ndarray) or raw.dtype.kind != "f":
        return raw
    raw, hit = raw.copy(), rng.random(raw.shape) < 0.4
    size = 10.0 ** rng.choice([-150, -20, 3, 9, 16, 50, 150], raw.shape)
    if isinstance(family, Poisson | Multinomial):
        raw[hit] = np.floor(np.clip(size, 1.0, 2.0**60))[hit]
    elif isinstance(family, Gamma | Binned) or (isinstance(family, Transformed) and (raw > 0).all()):
        raw[hit] = size[hit]
    elif isinstance(family, Gaussian | Transformed):
        raw[hit] = (size * rng.choice([-1, 1], raw.shape))[hit]
    return raw


def lesson(case, seed, weighted, gaps):
    """The frozen family, ordinary rows, and rows that come and go; encoded, with their members."""
    rng = np.random.default_rng(seed)
    n, m = 40 + case.more, 6
    raw, more = case.rows(rng, n), case.rows(rng, m)
    if gaps:
        raw = with_gaps(raw, rng)
    weights = rng.uniform(0.3, 2.5, n + m) if weighted else np.ones(n + m)
    codes = np.arange(n + m) % 3
    columns = [f"x{j}" for j in range(np.shape(raw)[1])]
    X = case.family.encode(raw, columns)
    members = Members.hard(codes[:n], 3, weights[:n] if weighted else None)
    family = case.family.choose(case.family.collect(X, members), (X, members))
    Y = family.encode(absurd(family, more, rng), columns)
    visitors = Members.hard(codes[n:], 3, weights[n:] if weighted else None)
    return family, (X, members), (Y, visitors), columns, rng


def batches(rows, columns, family, rng):
    """The statistics of the rows, in random batches in random order."""
    X, members = rows
    order = rng.permutation(len(members))
    cuts = np.sort(rng.integers(0, len(members), 2))
    parts = [part for part in np.split(order, cuts) if len(part)]
    return [collect_checked(family, X[part], members.take(part), columns) for part in parts]


def answers(family, stats, X, rule):
    try:
        return family.estimate(stats, rule).log_density(X)
    except DecibanError as error:
        return type(error).__name__


def same_answers(case, family, one, two, X):
    for rule in case.rules if case.rules != RULES else ("mean", "predictive"):
        a, b = answers(family, one, X, rule), answers(family, two, X, rule)
        if isinstance(a, str) or isinstance(b, str):
            assert type(a) is type(b)
            continue
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=rule)


@each_case
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), gaps=st.booleans())
@runs
def test_rows_learnt_and_unlearnt_leave_no_trace_or_are_refused(case, seed, weighted, gaps):
    family, stay, visit, columns, rng = lesson(case, seed, weighted, gaps and case.gaps)
    alone = collect_checked(family, *stay, columns)
    try:
        come = batches(visit, columns, family, rng)
    except InputError:  # the sums would overflow
        return
    stats = alone
    for part in come:
        stats = stats + part
    try:
        for part in batches(visit, columns, family, rng):
            stats = stats.without(part)
    except UnlearnError:
        if case in NEVER_REFUSED:
            raise
        return
    same_answers(case, family, stats, alone, stay[0])


@each_case
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), gaps=st.booleans())
@runs
def test_rows_learnt_in_one_batch_with_others_can_be_unlearnt_or_are_refused(case, seed, weighted, gaps):
    family, stay, visit, columns, rng = lesson(case, seed, weighted, gaps and case.gaps)
    alone = collect_checked(family, *stay, columns)
    together = Members.joined([stay[1], visit[1]])
    if not isinstance(stay[0], np.ndarray) or stay[0].dtype != visit[0].dtype:
        return  # rows of sparse tables and of texts are not joined here
    try:
        stats = collect_checked(family, np.concatenate([stay[0], visit[0]]), together, columns)
        for part in batches(visit, columns, family, rng):
            stats = stats.without(part)
    except (InputError, UnlearnError):
        if case in NEVER_REFUSED:
            raise
        return
    same_answers(case, family, stats, alone, stay[0])


@each_case
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), gaps=st.booleans())
@runs
def test_rows_unlearnt_and_learnt_again_leave_no_trace(case, seed, weighted, gaps):
    family, stay, visit, columns, rng = lesson(case, seed, weighted, gaps and case.gaps)
    try:
        both = collect_checked(family, *stay, columns) + collect_checked(family, *visit, columns)
        stats = both
        for part in batches(visit, columns, family, rng):
            stats = stats.without(part)
        for part in batches(visit, columns, family, rng):
            stats = stats + part
    except (InputError, UnlearnError):
        if case in NEVER_REFUSED:
            raise
        return
    same_answers(case, family, stats, both, stay[0])
