"""Fast passes of mixtures, with blocks of rows and threads, give the same answers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from cases import close
from deciban import Gaussian, Mixture, Multinomial, kernels
from deciban.kernels.latent import mixture_pass, sparse_mixture_pass
from deciban.latent import components
from deciban.latent.components import MixtureDensity, WeightedRows
from deciban.statistics import Axis, Members

STRUCTURES = ("full", "tied", "diagonal", "tied diagonal", "spherical", "tied spherical")


def bells(n=700, D=4, seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, n)
    return rng.normal(size=(3, D))[which] * 3 + rng.normal(size=(n, D)) @ (np.eye(D) + 0.3 * rng.normal(size=(D, D)))


def guess(family, X, M=3, seed=1):
    rng = np.random.default_rng(seed)
    members = Members.soft(rng.dirichlet(np.ones(M), X.shape[0]))
    stats = family.collect(X, members)
    frozen = family.choose(stats).resolve(stats)
    return frozen, MixtureDensity(np.log(rng.dirichlet(np.ones(M))), frozen.estimate(stats, "map"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_fused_gaussian_pass_is_the_plain_one(structure, weighted, monkeypatch):
    X = bells()
    weight = np.random.default_rng(2).uniform(0, 2, len(X)) if weighted else None
    family, density = guess(Gaussian(structure), X)
    rows, names = WeightedRows(family, X, weight), Axis.of(3)
    with kernels.forced("numba"):
        assert components.fused_expectation(rows, density, names) is not None
        fast, fast_total = rows.expect(density, names)
    monkeypatch.setattr(components, "fused_expectation", lambda *_: None)
    plain, plain_total = rows.expect(density, names)
    assert fast_total == pytest.approx(plain_total, rel=1e-12)
    close(fast, plain, rtol=1e-9)


@pytest.mark.parametrize("H", [1, 2, 3, 5, 7, 12, 20, 37])
def test_the_fused_pass_over_words_is_the_plain_one(H, monkeypatch):
    rng = np.random.default_rng(3)
    X = sp.csr_array(rng.integers(1, 6, (200, 50)) * (rng.random((200, 50)) < 0.2).astype(float))
    weight = rng.integers(0, 3, 200).astype(float)
    family, density = guess(Multinomial(2.0), X, H)
    rows, names = WeightedRows(family, X, weight), Axis.of(H)
    with kernels.forced("numba"):
        assert components.fused_expectation(rows, density, names) is not None
        fast, fast_total = rows.expect(density, names)
    monkeypatch.setattr(components, "fused_expectation", lambda *_: None)
    plain, plain_total = rows.expect(density, names)
    assert fast_total == pytest.approx(plain_total, rel=1e-12)
    close(fast, plain, rtol=1e-9)


def test_kernels_agree_with_their_twins():
    rng = np.random.default_rng(4)
    for n, D, K, products in ((1, 1, 1, True), (129, 3, 4, True), (1300, 5, 2, False)):
        X, o = rng.normal(size=(n, D)).astype(np.float32), rng.normal(size=D)
        F = D + (D * (D + 1) // 2 if products else D)
        for wide in (F, D):
            args = (X, rng.uniform(0, 1, n), o, rng.normal(size=(K, wide)), rng.normal(size=K), products)
            with kernels.forced("numpy"):
                slow = mixture_pass(*args)
            with kernels.forced("numba"):
                fast = mixture_pass(*args)
            for a, b in zip(slow, fast):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_a_word_that_a_component_cannot_say():
    X = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), (2, 2))
    table = np.log([[0.5, 1.0], [0.5, 0.0]], where=[[True, True], [True, False]], out=np.full((2, 2), -np.inf))
    for body in ("numpy", "numba"):
        with kernels.forced(body):
            counts, sums, _, total = sparse_mixture_pass(
                X.data, X.indices, X.indptr, None, table, np.log([0.5, 0.5]), np.zeros((2, 1))
            )
        np.testing.assert_allclose(counts, [1 / 3 + 1, 2 / 3])  # a stored zero says nothing, a two rules it out
        assert np.isfinite(sums).all()
        assert total == pytest.approx(np.log(0.75) + np.log(0.125))


def test_components_far_from_the_origin_take_the_plain_pass():
    X = np.r_[np.random.default_rng(0).normal(0, 1, (500, 2)), np.random.default_rng(1).normal(2e4, 1, (500, 2))]
    family, _ = guess(Gaussian("diagonal"), X)
    codes = np.repeat([0, 1], 500)
    density = MixtureDensity(np.log([0.5, 0.5]), family.estimate(family.collect(X, Members.hard(codes, 2)), "ml"))
    with kernels.forced("numba"):
        assert components.fused_expectation(WeightedRows(family, X), density, Axis.of(2)) is None


def test_many_blocks_are_one_block(monkeypatch):
    rng = np.random.default_rng(5)
    X, R = rng.poisson(3, (400, 6)), rng.dirichlet(np.ones(2), 400)
    whole = Mixture(Multinomial(2.0), 2).fit(X, start=R, max_iter=5, tol=0)
    monkeypatch.setattr(components, "LEAST_ROWS", 7)
    monkeypatch.setattr(components, "MOST_ROWS", 7)
    blocks = Mixture(Multinomial(2.0), 2).fit(X, start=R, max_iter=5, tol=0)
    close(whole.sums, blocks.sums, rtol=1e-10)
    np.testing.assert_allclose(whole.log_density(X), blocks.log_density(X), rtol=1e-10)
    np.testing.assert_allclose(whole.predict_proba(X), blocks.predict_proba(X), rtol=1e-7)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_one_and_two_threads_give_the_same_bits(structure):
    X = bells(20_000, 6)
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            answers.append(Mixture(Gaussian(structure), 4).fit(X, random_state=3, max_iter=10, tol=0, n_starts=2))
    assert answers[0].sums.same(answers[1].sums)
    assert answers[0].trace.objective == answers[1].trace.objective


MEMORY = """
import numpy as np
from deciban import Gaussian, Mixture

def peak():  # of this process; what getrusage says begins with its parent's
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

X = np.random.default_rng(0).normal(size=({n}, 10))
start = Mixture(Gaussian(), 8).fit(X[:200_000], max_iter=1, tol=0, n_starts=1).density()
before = peak()
Mixture(Gaussian(), 8).fit(X, start=start, max_iter=2, tol=0)
print((peak() - before) / 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory cannot be asked for")
def test_memory_does_not_grow_with_the_rows():
    done = subprocess.run([sys.executable, "-c", MEMORY.format(n=600_000)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 50  # megabytes, beside a table of 48
