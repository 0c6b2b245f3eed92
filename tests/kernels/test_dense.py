import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import kernels, set_threads
from deciban.kernels import dense
from deciban.kernels.choice import SMALL_WORK
from kernels.agreement import agree, both, frozen, tables, thorough


@thorough
@given(tables())
def test_class_moments_agree_with_their_twin(table):
    agree(*both(kernels.class_moments, *table.args))


@thorough
@given(tables())
def test_moments_with_gaps_agree_with_their_twin(table):
    agree(*both(kernels.class_moments_with_gaps, *table.args))


@thorough
@given(tables())
def test_scatter_agrees_with_its_twin_and_is_symmetric(table):
    ours, truth = both(kernels.class_scatter, *table.args)
    agree(ours, truth, rtol=1e-9)
    np.testing.assert_array_equal(ours[1], ours[1].transpose(0, 2, 1))


@thorough
@given(tables(), st.integers(0, 2**32))
def test_diagonal_scores_agree_with_their_twin(table, seed):
    rng = np.random.default_rng(seed)
    shape = table.K, len(table.origin)
    parameters = rng.normal(size=shape), rng.random(shape), rng.normal(size=shape)
    agree(*both(kernels.diagonal_scores, table.X, *parameters))


@thorough
@given(tables(), st.integers(0, 2**32), st.sampled_from([1e-12, 0.5]))
def test_what_rows_leave_of_variances_agrees_with_its_twin(table, seed, least):
    rng = np.random.default_rng(seed)
    shape = table.K, len(table.origin)
    mean, half, log_norm = rng.normal(size=shape), rng.random(shape), rng.normal(size=shape)
    precision, share = 0.1 * rng.random(shape), rng.random(len(table.X))
    X = np.where(np.isinf(table.X), np.nan, table.X)
    given = table.codes, table.origin, mean, half, log_norm, precision, share, least
    assert all((found is None) == np.isnan(X).any() for found in both(kernels.diagonal_left_out, X, *given))
    X = np.nan_to_num(X)
    ours, twin = both(kernels.diagonal_left_out, X, *given)
    agree(ours, twin)
    agree(ours[0], kernels.diagonal_scores(X - table.origin, mean, half, log_norm))


@pytest.fixture
def in_blocks(monkeypatch):
    """Blocks of a few rows in the numpy version of leave-one-out that has the bits of the compiled one."""
    monkeypatch.setattr(dense, "CACHED_CELLS", 2**10)
    monkeypatch.setattr(dense.plain_work, "done", 0)
    yield lambda ready: monkeypatch.setattr(dense, "at_hand", lambda module, kernel: ready)
    set_threads(None)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize(
    ("n", "D", "K", "least"), [(30_000, 20, 3, 1e-16), (4_000, 70, 11, 0.5), (1_000, 700, 2, 1e-9)]
)
def test_leave_one_out_has_the_same_bits_without_machine_code(n, D, K, least, dtype, in_blocks):
    rng = np.random.default_rng(0)
    X, codes = np.asfortranarray((5 * rng.normal(size=(n, D))).astype(dtype)), rng.integers(0, K, n)
    mean, half, log_norm = rng.normal(size=(K, D)), rng.random((K, D)), rng.normal(size=(K, D))
    given = X, codes, rng.normal(size=D), mean, half, log_norm, 0.4 * half, rng.random(n), least
    assert SMALL_WORK < X.size * K < dense.PLAIN_WORK
    found = []
    for ready, threads in ((True, 1), (True, 2), (False, 1), (False, 2), (False, 3), (False, 8)):
        in_blocks(ready)
        set_threads(threads)
        found.append(kernels.diagonal_left_out(*given))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    agree(found[0], both(kernels.diagonal_left_out, *given)[1], rtol=1e-9)


def test_missing_values_are_found_without_machine_code(in_blocks):
    in_blocks(False)
    X, ones = np.ones((60_000, 20)), np.ones((1, 20))
    X[-1, -1] = np.nan
    given = np.zeros(len(X), np.intp), np.zeros(20), ones, ones, ones, ones, np.full(len(X), 0.1), 1e-16
    assert kernels.diagonal_left_out(X, *given) is None


@pytest.mark.parametrize("ready", [False, True])
def test_leave_one_out_is_compiled_for_only_if_machine_code_is_at_hand_or_the_table_is_large(
    ready, in_blocks, monkeypatch
):
    in_blocks(ready)
    monkeypatch.setattr(dense, "_left_out_in_blocks", lambda *args: False)  # as if a value were missing
    X, ones = np.zeros((60_000, 20)), np.ones((1, 20))
    given = X, np.zeros(len(X), np.intp), np.zeros(20), ones, ones, ones, ones, np.full(len(X), 0.1), 1e-16
    assert (kernels.diagonal_left_out(*given) is not None) is ready
    monkeypatch.setattr(dense, "PLAIN_WORK", X.size)
    assert kernels.diagonal_left_out(*given) is not None


def test_a_process_that_left_out_many_rows_in_numpy_compiles(in_blocks, monkeypatch):
    in_blocks(False)
    X, ones, tables = np.zeros((60_000, 20)), np.ones((1, 20)), []
    given = X, np.zeros(len(X), np.intp), np.zeros(20), ones, ones, ones, ones, np.full(len(X), 0.1), 1e-16
    plain = dense._left_out_in_blocks
    monkeypatch.setattr(dense, "_left_out_in_blocks", lambda *args: tables.append(args) or plain(*args))
    monkeypatch.setattr(dense, "PLAIN_WORK", 2.5 * X.size)
    in_numpy = []
    for _ in range(4):
        tables.clear()
        kernels.diagonal_left_out(*given)
        in_numpy.append(bool(tables))
    assert in_numpy == [True, True, False, False]


def test_factors_of_many_features_that_nearly_vanish_do_not_underflow():
    n, D, least = 70, 400, 1e-16
    X, codes, unit = np.full((n, D), 3.0), np.zeros(n, np.intp), np.ones((1, D))
    given = codes, np.zeros(D), np.zeros((1, D)), unit, unit, unit, np.ones(n), least
    for _, distance, log_factor, smallest in both(kernels.diagonal_left_out, X, *given):
        np.testing.assert_allclose(distance, D * 9 / least)
        np.testing.assert_allclose(log_factor, D * np.log(least))
        np.testing.assert_array_equal(smallest, least)


@thorough
@given(tables(gaps=False), st.integers(0, 2**32), st.sampled_from(["upper", "general", "tied"]))
def test_whitened_distances_agree_with_their_twin(table, seed, form):
    rng = np.random.default_rng(seed)
    D = len(table.origin)
    whitener = rng.normal(size=(1 if form == "tied" else table.K, D, D))
    whitener = np.triu(whitener) if form == "upper" else whitener
    agree(*both(kernels.whitened_distances, table.X, rng.normal(size=(table.K, D)), whitener, table.origin), rtol=1e-8)


def test_wide_triangular_whiteners_lose_nothing_to_their_strips():
    rng = np.random.default_rng(0)
    X, mean, W = rng.normal(size=(500, 50)), rng.normal(size=(3, 50)), np.triu(rng.normal(size=(3, 50, 50)))
    agree(*both(kernels.whitened_distances, X, mean, W, np.zeros(50)), rtol=1e-12)


@pytest.mark.parametrize("apart", [1.0, 1e3, 1e5])
def test_classes_that_share_a_whitener_lose_no_more_than_they_lie_apart(apart):
    rng = np.random.default_rng(0)
    mean = apart * rng.normal(size=(4, 8))
    X, W = np.concatenate([mean, mean[rng.integers(0, 4, 400)] + rng.normal(size=(400, 8))]), rng.normal(size=(1, 8, 8))
    ours, twin = both(kernels.whitened_distances, X, mean, W, np.zeros(8))
    agree(ours, twin, rtol=1e-12, atol=1e-12 * (1 + apart**2))
    assert (ours >= 0).all()


def test_distances_far_from_zero_keep_their_digits_about_an_origin():
    rng = np.random.default_rng(0)
    origin = np.full(8, 1e9)
    X, mean, W = origin + rng.normal(size=(500, 8)), origin + rng.normal(size=(2, 8)), rng.normal(size=(2, 8, 8))
    agree(*both(kernels.whitened_distances, X, mean, W, origin), rtol=1e-9)


def test_moments_by_hand():
    X, codes = np.array([[1.0], [2.0], [5.0]]), np.array([0, 1, 1])
    for body in ("numba", "numpy"):
        with kernels.forced(body):
            first, second = kernels.class_moments(X, codes, None, np.array([1.0]), 3)
            np.testing.assert_array_equal(first, [[0], [5], [0]])
            np.testing.assert_array_equal(second, [[0], [17], [0]])


@pytest.mark.parametrize("function", [kernels.class_moments, kernels.class_moments_with_gaps, kernels.class_scatter])
@pytest.mark.parametrize("codes", [[0, -1], [0, 2]])
@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_codes_of_no_class_are_refused(function, codes, body):
    with kernels.forced(body), pytest.raises(IndexError, match=r"\[0, 2\)"):
        function(np.zeros((2, 3)), np.array(codes), None, np.zeros(3), 2)


def test_bytes_and_other_integers_are_tables_too():
    rng = np.random.default_rng(0)
    codes, origin = rng.integers(0, 3, 200), np.zeros(4)
    for dtype in (np.uint8, np.int16):
        X = rng.integers(0, 100, (200, 4)).astype(dtype)
        agree(*both(kernels.class_scatter, X, codes, None, origin, 3))


def test_a_read_only_table_does_not_compile_the_kernel_again(tmp_path):
    from deciban.kernels.dense_compiled import add_moments

    X, codes, origin = np.random.default_rng(0).normal(size=(100, 3)), np.zeros(100, int), np.zeros(3)
    np.save(tmp_path / "X.npy", X)
    with kernels.forced("numba"):
        truth = kernels.class_moments(X, codes, None, origin, 1)
        before = len(add_moments.run.signatures)
        for readonly in (frozen(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
            agree(kernels.class_moments(readonly, frozen(codes), None, frozen(origin), 1), truth)
        assert len(add_moments.run.signatures) == before


def test_blocks_of_a_converted_table_add_up():
    rng = np.random.default_rng(0)
    X, codes = np.asfortranarray(rng.normal(size=(10_000, 3))), rng.integers(0, 2, 10_000)
    for function in (kernels.class_moments, kernels.class_scatter):
        agree(*both(function, X, codes, rng.random(10_000), np.zeros(3), 2))
    agree(*both(kernels.diagonal_scores, X, *rng.random((3, 2, 3))))


@thorough
@given(tables(), st.sampled_from([0.5, 2.0, 50.0]))
def test_sums_within_reach_agree_with_their_twins_and_with_the_rows_left_out(table, reach):
    X = np.where(np.isinf(table.X), 1e9, table.X)
    limit = np.full(len(table.origin), reach)
    moments, twin = both(kernels.class_moments_within, X, table.codes, table.weight, table.origin, limit, table.K)
    agree(moments, twin, rtol=1e-9)
    X = np.nan_to_num(X)
    scatter, twin = both(kernels.class_scatter_within, X, table.codes, table.weight, table.origin, limit, table.K)
    agree(scatter, twin, rtol=1e-9)
    near = np.ones(len(X), bool)
    near[scatter[2]] = False
    weight = None if table.weight is None else table.weight[near]
    agree(scatter[:2], kernels.class_scatter(X[near], table.codes[near], weight, table.origin, table.K), rtol=1e-9)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows in the numpy versions."""
    monkeypatch.setattr(dense, "SMALL_WORK", 0)
    monkeypatch.setattr(dense, "BLOCK_CELLS", 64)
    yield
    set_threads(None)


def spoilt(rng, n, D):
    """A table with rows far away, and with gaps in some blocks only."""
    X = rng.normal(size=(n, D))
    X[rng.random(n) < 0.02, 0] = 1e9
    X[n // 3 : n // 2][rng.random((n // 2 - n // 3, D)) < 0.2] = np.nan
    return X


@pytest.mark.parametrize("K", [1, 4, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_numpy_sums_in_blocks_agree_with_compiled_ones(small_blocks, K, weighted):
    rng = np.random.default_rng(K)
    X, codes, weight = spoilt(rng, 500, 7), rng.integers(0, K, 500), rng.random(500) if weighted else None
    arguments = codes, weight, rng.normal(size=7), np.full(7, 100.0), K
    compiled, blocks = both(kernels.class_moments_within, X, *arguments)
    assert len(blocks[3])
    agree(compiled, blocks, rtol=1e-12)
    compiled, blocks = both(kernels.class_scatter_within, np.nan_to_num(X), *arguments)
    assert len(blocks[2])
    agree(compiled, blocks, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shared", [False, True])
def test_numpy_scores_in_blocks_agree_with_compiled_ones(small_blocks, dtype, shared):
    rng = np.random.default_rng(0)
    X, mean = spoilt(rng, 500, 7).astype(dtype), rng.normal(size=(4, 7))
    agree(*both(kernels.diagonal_scores, X, mean, *rng.random((2, 4, 7))), rtol=1e-12)
    whitener = rng.normal(size=(1 if shared else 4, 7, 7))
    X = np.nan_to_num(X)
    X[np.abs(X) > 100] = 0.0
    agree(*both(kernels.whitened_distances, X, mean, whitener, np.zeros(7)), rtol=1e-9)


def test_numpy_blocks_give_the_same_bits_for_any_number_of_threads(small_blocks):
    rng = np.random.default_rng(0)
    X, codes = spoilt(rng, 500, 7), rng.integers(0, 4, 500)
    mean, spread, whitener = rng.normal(size=(4, 7)), rng.random((2, 4, 7)), rng.normal(size=(4, 7, 7))

    def results(threads):
        set_threads(threads)
        sums = codes, None, np.zeros(7), np.full(7, 100.0), 4
        with kernels.forced("numpy"):
            return [
                *kernels.class_moments_within(X, *sums),
                *kernels.class_scatter_within(np.nan_to_num(X), *sums),
                kernels.diagonal_scores(X, mean, *spread),
                kernels.whitened_distances(np.nan_to_num(X), mean, whitener, np.zeros(7)),
            ]

    alone = results(1)
    for threads in (2, 3, 8):
        for ours, theirs in zip(alone, results(threads), strict=True):
            np.testing.assert_array_equal(ours, theirs)
