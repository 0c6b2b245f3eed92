"""Hidden Markov models beside hmmlearn's (implementation="scaling") and, where it is installed, pomegranate's.

Both sides make the same number of EM iterations from the same start. Memory is what a fit needs beyond its table.
"""

from __future__ import annotations

import importlib.util
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hmmlearn.hmm import CategoricalHMM, GaussianHMM

from deciban import Categorical, Gaussian, HiddenMarkovModel
from harness import Row, at_least, at_most, benchmark, first_call, largest_difference, timed, versus

S, V = 8, 50
STEPS = 1000
ITERATIONS = 10


@benchmark("hmm")
def hmm(share: float) -> Iterator[Row | str]:
    """Baum–Welch and Viterbi on many sequences, and on one that is very long."""
    few = _rolls(25)  # enough for every kernel to be wanted
    spent = first_call(lambda: _ours(*few, 2).predict(*few))
    yield f"compiling what was not yet compiled took {spent:.1f} s CPU, once, not counted above"
    many, lengths = _rolls(int(1000 * share))
    size = f"{len(lengths):,} × {STEPS:,} steps, {S} states, {V} symbols"
    yield versus(
        f"{ITERATIONS} EM iterations, {size}",
        "hmmlearn CategoricalHMM",
        lambda: _theirs(many, lengths, ITERATIONS),
        lambda: _ours(many, lengths, ITERATIONS),
        at_least(4),
        lambda theirs, ours: largest_difference(theirs.transmat_, ours.transmat_),
    )
    theirs, ours = _theirs(many, lengths, 1), _ours(many, lengths, 1)
    yield versus(
        f"best paths, {size}",
        "hmmlearn CategoricalHMM",
        lambda: theirs.predict(many, lengths),
        lambda: ours.predict(many, lengths),
    )
    yield from _pomegranate(many, len(lengths))
    yield from _gaussian(share)
    yield from _long(int(10_000_000 * share))


def _long(n: int) -> Iterator[Row | str]:
    """One sequence: what is kept must not grow with it."""
    x = np.random.default_rng(3).integers(0, V, (n, 1))
    extra = _extra(lambda: _ours(x, [n], 1))
    yield f"one sequence of {n:,} steps: {extra:.1f} MB beside the table; reach {at_most(50, 'MB')}"
    yield versus(
        f"1 EM iteration, one sequence of {n:,} steps",
        "hmmlearn CategoricalHMM",
        lambda: _theirs(x, [n], 1),
        lambda: _ours(x, [n], 1),
        at_least(5),
        lambda theirs, ours: largest_difference(theirs.transmat_, ours.transmat_),
    )
    few = n // 4
    times = [(timed(lambda: _ours(x[:few], [few], 1))[0], timed(lambda: _ours(x, [n], 1))[0]) for _ in range(5)]
    yield Row(
        f"the same beside a quarter of its steps ({few:,})",
        "ours",
        [a for a, _ in times],
        [b for _, b in times],
        [b / a for a, b in times],
    )


def _gaussian(share: float) -> Iterator[Row | str]:
    """Rows that have to be scored one by one."""
    lengths = [STEPS] * int(300 * share)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(sum(lengths), 2)) + rng.integers(0, 4, (sum(lengths), 1))
    start, A = _chain()
    means = rng.normal(1.5, 1, (S, 2))
    known = {k: Gaussian.of(mean, np.ones(2)) for k, mean in enumerate(means)}
    begin = HiddenMarkovModel.from_densities(known, start, A).density

    def theirs() -> Any:
        options = {"n_iter": 3, "tol": -1e9, "implementation": "scaling", "init_params": "", "covars_prior": 0.0}
        model = GaussianHMM(S, "diag", min_covar=0.0, **options)
        model.startprob_, model.transmat_, model.means_, model.covars_ = start, A, means, np.ones((S, 2))
        return model.fit(X, lengths)

    def ours() -> Any:
        model = HiddenMarkovModel(Gaussian("diagonal"), S, rule="ml", max_iter=3, tol=0)
        return model.fit(X, lengths=lengths, start=begin)

    ours()
    yield versus(
        f"3 EM iterations, {len(lengths)} × {STEPS:,} steps, {S} Gaussian states",
        "hmmlearn GaussianHMM('diag')",
        theirs,
        ours,
        None,
        lambda a, b: largest_difference(a.transmat_, b.transmat_),
    )


def _pomegranate(X: Any, count: int) -> Iterator[Row | str]:
    if importlib.util.find_spec("pomegranate") is None:
        yield "pomegranate is not installed (it needs torch), so it was not measured"
        return
    import torch
    from pomegranate.distributions import Categorical as PeerCategorical
    from pomegranate.hmm import DenseHMM

    torch.set_num_threads(1)
    start, A = _chain()
    rows = torch.tensor(X.reshape(count, STEPS, 1))

    def theirs() -> Any:
        states = [PeerCategorical(b[None].astype(np.float32)) for b in _dice()]
        ends = np.full(S, 1e-6, np.float32)
        parts = {"edges": (A * (1 - 1e-6)).astype(np.float32), "starts": start.astype(np.float32), "ends": ends}
        return DenseHMM(states, max_iter=2, tol=1e-9, **parts).fit(rows)

    lengths = [STEPS] * count
    yield versus(
        f"2 EM iterations, {count:,} × {STEPS:,} steps",
        "pomegranate DenseHMM",
        theirs,
        lambda: _ours(X, lengths, 2),
        at_least(4),
        peer_repeats=1,
    )


def _chain() -> tuple[Any, Any]:
    return np.full(S, 1 / S), np.random.default_rng(5).dirichlet(np.full(S, 5.0), S)


def _dice() -> Any:
    return np.random.default_rng(6).dirichlet(np.full(V, 5.0), S)


def _rolls(count: int) -> tuple[Any, list[int]]:
    """Sequences that a chain with sharper dice produced."""
    rng = np.random.default_rng(0)
    moves, dice = rng.dirichlet(np.full(S, 0.5), S) * 0.5 + 0.5 * np.eye(S), rng.dirichlet(np.full(V, 0.3), S)
    steps, faces = np.cumsum(moves, axis=1), np.cumsum(dice, axis=1)
    state, X = np.zeros(count, dtype=np.intp), np.empty((count, STEPS), dtype=np.int64)
    for t in range(STEPS):
        state = np.minimum((rng.random((count, 1)) > steps[state]).sum(axis=1), S - 1)
        X[:, t] = np.minimum((rng.random((count, 1)) > faces[state]).sum(axis=1), V - 1)
    return X.reshape(-1, 1), [STEPS] * count


def _ours(X: Any, lengths: list[int], steps: int) -> HiddenMarkovModel:
    known = {k: Categorical.of(p) for k, p in enumerate(_dice())}
    begin = HiddenMarkovModel.from_densities(known, *_chain()).density
    return HiddenMarkovModel(Categorical(), S, rule="ml", max_iter=steps, tol=0).fit(X, lengths=lengths, start=begin)


def _theirs(X: Any, lengths: list[int], steps: int) -> CategoricalHMM:
    model = CategoricalHMM(S, n_iter=steps, tol=-1e9, implementation="scaling", init_params="", n_features=V)
    (model.startprob_, model.transmat_), model.emissionprob_ = _chain(), _dice()
    return model.fit(X, lengths)


def _extra(act: Callable[[], Any]) -> float:
    """Megabytes that were held at once beyond what was there before."""
    tracemalloc.start()
    act()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20
