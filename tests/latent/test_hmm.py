"""Messages against every path written out; EM against hmmlearn; what must hold whatever the family."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CASES, SCORED_NOT_LEARNT
from deciban import Categorical, Gaussian, HiddenMarkovModel, kernels
from deciban.errors import DecibanError
from deciban.latent.hmm import HMM, BaumWelch, HMMDensity, Inference
from deciban.latent.sequences import SequenceRows, Sequences
from deciban.statistics import Axis, Members
from latent.hmm_truth import categorical_chain, enumerate_paths, path_probability, random_chain

# rows with absurd numbers are scored by their other columns but not learnt, so EM has no objective for them
FAMILIES = [
    case for case in CASES if not {"toy", "joint"} & set(case.name.split("-")) and case.name not in SCORED_NOT_LEARNT
]


def rolls(start, A, B, lengths, seed=0):
    rng = np.random.default_rng(seed)
    density = categorical_chain(Categorical(), start, A, B)
    states = density.sample_states(Sequences.of(lengths, sum(lengths)), rng)
    return np.array([rng.choice(B.shape[1], p=B[z]) for z in states])[:, None], states


@pytest.mark.parametrize("body", ["numpy", "numba"])
@given(seed=st.integers(0, 2**32 - 1), S=st.integers(1, 3), gap=st.booleans(), dense=st.booleans())
@settings(max_examples=25, deadline=None)
def test_everything_agrees_with_writing_out_every_path(body, seed, S, gap, dense):
    rng = np.random.default_rng(seed)
    start, A, B = random_chain(rng, S, 4)
    lengths, x = [1, 4, 6], rng.integers(-1 if gap else 0, 4, 11)
    family, likelihood = Categorical(), np.where(x[:, None] < 0, 1.0, B.T[x])
    weight = np.ones(11) if dense else None  # weights make rows be scored one by one
    rows = SequenceRows(family, family.encode(x[:, None], ()), Sequences.of(lengths, 11), weight)
    truth = [enumerate_paths(start, A, part) for part in np.split(likelihood, [1, 5])]
    with kernels.forced(body):
        inference = Inference(categorical_chain(family, start, A, B), rows)
        np.testing.assert_allclose(inference.log_likelihoods(), [t[0] for t in truth], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(inference.posteriors(), np.concatenate([t[1] for t in truth]), atol=1e-12)
        for path, t, part in zip(np.split(inference.paths(), [1, 5]), truth, np.split(likelihood, [1, 5])):
            best = path_probability(start, A, part, np.array(t[3]))
            np.testing.assert_allclose(path_probability(start, A, part, path), best, rtol=1e-10)
        stats, evidence = inference.expected(Axis.of(S))
    assert evidence == pytest.approx(sum(t[0] for t in truth))
    np.testing.assert_allclose(stats.transition, sum(t[2] for t in truth), atol=1e-12)
    np.testing.assert_allclose(stats.start, sum(t[1][0] for t in truth), atol=1e-12)
    np.testing.assert_allclose(stats.emissions.counts.sum(), (x >= 0).sum())


def test_known_states_are_the_only_ones_allowed():
    rng = np.random.default_rng(1)
    start, A, B = random_chain(rng, 3, 4)
    x, known = rng.integers(0, 4, 6), np.array([-1, 2, -1, -1, 0, -1])
    likelihood = B.T[x] * ((known < 0)[:, None] | (np.arange(3) == known[:, None]))
    truth = enumerate_paths(start, A, likelihood)
    family = Categorical()
    rows = SequenceRows(family, family.encode(x[:, None], ()), Sequences.of(None, 6), None, known)
    inference = Inference(categorical_chain(family, start, A, B), rows)
    np.testing.assert_allclose(inference.log_likelihoods(), truth[0])
    np.testing.assert_allclose(inference.posteriors(), truth[1], atol=1e-12)


# -- hmmlearn ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lengths", [[300] * 10, [9000, 100]], ids=["many", "long"])
def test_em_is_hmmlearns_from_the_same_start(lengths):
    rng = np.random.default_rng(3)
    X, _ = rolls(*random_chain(rng, 3, 6), lengths)
    start, A, B = random_chain(rng, 3, 6)
    peer = pytest.importorskip("hmmlearn.hmm")
    theirs = peer.CategoricalHMM(3, n_iter=8, tol=-1e9, implementation="scaling", init_params="", n_features=6)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = start, A, B
    theirs.fit(X, lengths)
    ours = HiddenMarkovModel(Categorical(), 3, rule="ml", max_iter=8, tol=0)
    ours.fit(X, lengths=lengths, start=categorical_chain(Categorical(), start, A, B))
    np.testing.assert_allclose(ours.trace_.objective, theirs.monitor_.history, rtol=1e-10)
    np.testing.assert_allclose(ours.startprob_, theirs.startprob_, atol=1e-8)
    np.testing.assert_allclose(ours.transmat_, theirs.transmat_, atol=1e-8)
    np.testing.assert_allclose(ours.density.emissions.p, theirs.emissionprob_, atol=1e-8)
    assert ours.score(X, lengths) == pytest.approx(theirs.score(X, lengths), rel=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X, lengths), theirs.predict_proba(X, lengths), atol=1e-8)
    paths = ours.predict(X, lengths), theirs.predict(X, lengths)  # dice tie: the same symbols in another order
    assert path_score(theirs, X, lengths, paths[0]) == pytest.approx(
        path_score(theirs, X, lengths, paths[1]), rel=1e-12
    )
    assert (paths[0] == paths[1]).mean() > 0.99


def path_score(model, X, lengths, path):
    """The log probability of rows and path together."""
    begins = np.cumsum(lengths) - lengths
    inner = np.setdiff1d(np.arange(1, len(X)), begins)
    moves = np.log(model.startprob_[path[begins]]).sum() + np.log(model.transmat_[path[inner - 1], path[inner]]).sum()
    return moves + np.log(model.emissionprob_[path, X[:, 0]]).sum()


@pytest.mark.parametrize(("structure", "theirs"), [("full", "full"), ("diagonal", "diag")])
def test_gaussian_states_are_hmmlearns_from_the_same_start(structure, theirs):
    rng = np.random.default_rng(4)
    states, lengths = np.repeat([0, 1, 0, 1], 100), [150, 250]
    X = rng.normal(size=(400, 2)) * (1 + states[:, None]) + 2 * states[:, None]
    R = np.stack([0.9 - 0.8 * states, 0.1 + 0.8 * states], axis=1)
    model = pytest.importorskip("hmmlearn.hmm").GaussianHMM(
        2, theirs, n_iter=10, tol=-1e9, init_params="", min_covar=0.0, covars_prior=0.0
    )
    first = HiddenMarkovModel(Gaussian(structure), 2, rule="ml", max_iter=1, tol=0).fit(X, lengths=lengths, start=R)
    R = first.predict_proba(X, lengths)
    means, covariances = zip(*((np.average(X, axis=0, weights=r), np.cov(X.T, aweights=r, bias=True)) for r in R.T))
    model.startprob_, model.transmat_, model.means_ = first.startprob_, first.transmat_, np.array(means)
    model.covars_ = np.array(covariances if theirs == "full" else [np.diag(c) for c in covariances])
    model.fit(X, lengths)
    ours = HiddenMarkovModel(Gaussian(structure), 2, rule="ml", max_iter=10, tol=0)
    family, chain = first.family_, (first.density.log_start, first.density.log_transitions)
    begin = HMMDensity(*chain, family.estimate(family.collect(X, Members.soft(R)), "ml"))
    ours.fit(X, lengths=lengths, start=begin)
    np.testing.assert_allclose(ours.trace_.objective, model.monitor_.history, rtol=1e-9)
    np.testing.assert_allclose(ours.transmat_, model.transmat_, atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X, lengths), model.predict(X, lengths))


# -- what must hold ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rule", ["ml", "map"])
@pytest.mark.parametrize("case", FAMILIES, ids=repr)
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), gaps=st.booleans(), labelled=st.booleans())
@settings(max_examples=4, deadline=None)
def test_the_objective_never_falls(case, rule, seed, weighted, gaps, labelled):
    rng = np.random.default_rng(seed)
    family, X, members = case.data(seed, 60, weighted=weighted, gaps=gaps and case.gaps)
    sequences = Sequences.of([1, 20, 39], 60, rng.uniform(0.5, 2, 3) if weighted else None)
    known = np.where(rng.random(60) < 0.3, rng.integers(0, 2, 60), -1) if labelled else None
    rows = SequenceRows(family, X, sequences, members.row_weights() if weighted else None, known)
    model = HMM(family, 1.5, rng.uniform(1, 3, (2, 2)))
    try:
        _, trace = BaumWelch(model, rows, Axis.of(2), rule, family, 12).run(rng.dirichlet(np.ones(2), 60), 1, 0.0, rng)
    except DecibanError:
        return  # a state collapsed, or has no mode, and the error says so
    gains = np.diff(trace.objective)
    assert (gains > -1e-9 * np.abs(trace.objective[0]) - 1e-9).all()


def test_weights_count_as_copies():
    rng = np.random.default_rng(5)
    X, _ = rolls(*random_chain(rng, 2, 4), [20] * 6)
    start = categorical_chain(Categorical(), *random_chain(rng, 2, 4))
    w = np.array([0, 1, 2, 3, 1, 0])
    options = {"rule": "map", "max_iter": 6, "tol": 0}
    weighted = HiddenMarkovModel(Categorical(), 2, **options)
    weighted.fit(X, lengths=[20] * 6, sequence_weight=w, start=start)
    at = np.concatenate([np.arange(20 * b, 20 * b + 20) for b in np.repeat(np.arange(6), w)])
    copies = HiddenMarkovModel(Categorical(), 2, **options).fit(X[at], lengths=[20] * w.sum(), start=start)
    np.testing.assert_allclose(weighted.transmat_, copies.transmat_, rtol=1e-9)
    np.testing.assert_allclose(weighted.trace_.objective, copies.trace_.objective, rtol=1e-9)


def test_a_row_of_weight_zero_is_a_gap():
    rng = np.random.default_rng(6)
    X, _ = rolls(*random_chain(rng, 2, 4), [50])
    start, weight = categorical_chain(Categorical(), *random_chain(rng, 2, 4)), np.ones(50)
    weight[10:14] = 0
    missing = np.where(weight[:, None] > 0, X, -1)
    a = HiddenMarkovModel(Categorical(), 2, max_iter=5, tol=0).fit(X, sample_weight=weight, start=start)
    b = HiddenMarkovModel(Categorical(), 2, max_iter=5, tol=0).fit(missing, start=start)
    np.testing.assert_allclose(a.transmat_, b.transmat_, rtol=1e-10)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_whole_missing_steps_are_bridged(structure):
    rng = np.random.default_rng(7)
    X = np.repeat([0.0, 6.0, 0.0], 60)[:, None] + rng.normal(size=(180, 2))
    X[20:25] = np.nan
    model = HiddenMarkovModel(Gaussian(structure), 2, random_state=0).fit(X)
    assert len(set(model.predict(X)[:60])) == 1
    assert np.isfinite(model.predict_proba(X)).all()
    truth = enumerate_paths(
        model.startprob_,
        model.transmat_,
        np.exp(np.nan_to_num(np.r_[[model.density.emissions.log_density(X[19:20])[0]], np.zeros((3, 2))])),
    )
    np.testing.assert_allclose(model.score(X[19:23]), truth[0])


def test_threads_change_no_bit():
    rng = np.random.default_rng(8)
    X, lengths = rng.normal(size=(200_000, 2)), [1000] * 150 + [50_000]
    for family, data in ((Gaussian("diagonal"), X), (Categorical(), rng.integers(0, 9, (200_000, 1)))):
        one, two = (
            HiddenMarkovModel(family, 3, random_state=0, n_starts=1, max_iter=2, tol=0, n_jobs=jobs).fit(
                data, lengths=lengths
            )
            for jobs in (1, 2)
        )
        assert one.stats_.same(two.stats_)
        assert one.trace_.objective == two.trace_.objective
        np.testing.assert_array_equal(one.predict_proba(data, lengths), two.predict_proba(data, lengths))
        np.testing.assert_array_equal(one.predict(data, lengths), two.predict(data, lengths))
        np.testing.assert_array_equal(one.score_samples(data, lengths), two.score_samples(data, lengths))


def test_a_long_sequence_cut_into_pieces_is_one_sequence():
    rng = np.random.default_rng(9)
    X, _ = rolls(*random_chain(rng, 3, 5), [9500])
    family = Categorical()
    density = categorical_chain(family, *random_chain(rng, 3, 5))
    found = []
    for body, weight in (("numpy", None), ("numba", None), ("numba", np.ones(9500))):
        rows = SequenceRows(family, family.encode(X, ()), Sequences.of(None, 9500), weight)
        with kernels.forced(body):
            inference = Inference(density, rows)
            stats, evidence = inference.expected(Axis.of(3))
            found.append([evidence, stats.transition, stats.start, stats.emissions.counts, inference.paths()])
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-8)


def test_evidence_too_strong_for_plain_numbers_is_weighed_in_logarithms():
    # left to right: the first rows nearly rule out the state that all later ones need
    X = np.r_[np.full(5, 0.0), np.full(5, 60.0), np.full(5, 0.0)][:, None]
    states = {"low": Gaussian.of(0, 1), "high": Gaussian.of(60, 1)}
    stuck = HiddenMarkovModel.from_densities(states, [0.5, 0.5], np.eye(2))
    for body in ("numba", "numpy"):
        with kernels.forced(body):
            low = -0.5 * (5 * 3600) - 15 * 0.5 * np.log(2 * np.pi) + np.log(0.5)
            assert stuck.score(X) == pytest.approx(low, rel=1e-12)
            np.testing.assert_allclose(stuck.predict_proba(X)[:, 0], 1.0)
            assert set(stuck.predict(X)) == {"low"}
