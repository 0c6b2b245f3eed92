"""Leave-one-out of a fitted model, beside n refits: the peer runs once, for it is slow, and we many times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from deciban import Gaussian, GenerativeClassifier, Multinomial
from harness import Row, at_least, benchmark, first_call, versus
from side_by_side import posterior_gap
from workloads import bells, documents

ROWS = 2000
OUR_REPEATS = 25
PEERS = {MultinomialNB: "MultinomialNB", GaussianNB: "GaussianNB", QuadraticDiscriminantAnalysis: "QDA"}


@benchmark("leave-one-out")
def leave_one_out(share: float) -> Iterator[Row | str]:
    """Every row scored as if never learnt, beside cross_val_predict with LeaveOneOut."""
    n = int(ROWS * share)
    X, y = documents(n, V=20_000, K=20)
    yield from _compare("multinomial, V = 20k, K = 20", X, y, MultinomialNB(), Multinomial(), "mean")
    X, y = bells(n, 50, 10, full=False)
    yield from _compare("diagonal, D = 50, K = 10", X, y, GaussianNB(var_smoothing=0), Gaussian("diagonal"), "ml")
    X, y = bells(n, 20, 4, full=True)
    yield from _compare("full, D = 20, K = 4", X, y, QuadraticDiscriminantAnalysis(), Gaussian("full"), "ml")


def _compare(job: str, X: Any, y: Any, peer: Any, family: Any, rule: str) -> Iterator[Row | str]:
    model = GenerativeClassifier(family, rule=rule).fit(X, y)

    def ours() -> Any:
        return model.leave_one_out(X, y, method="predict_log_proba")

    yield f"{job}: first call {first_call(ours):.2f} s CPU more, once, not counted above; one run of the peer"
    yield versus(
        f"leave-one-out, {X.shape[0]:,} rows, {job}",
        f"{PEERS[type(peer)]} refitted",
        lambda: cross_val_predict(peer, X, y, cv=LeaveOneOut(), method="predict_log_proba"),
        ours,
        at_least(2500),
        posterior_gap,
        repeats=OUR_REPEATS,
        peer_repeats=1,
    )
