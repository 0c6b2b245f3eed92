"""Runs scikit-learn's own tests against the drop-ins: `python tests/peers/run_sklearn_tests.py [NAME…]`.

The test files of the installed scikit-learn are collected as they are, in a process where scikit-learn is patched and
kernels run on inputs of any size. A test of EXCEPTIONS is not counted as failed; its reason stands beside it. "checks"
are those of `check_estimator`, for every public estimator of deciban; none is expected to fail.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator

from deciban.kernels import forced

FILES = {
    "naive_bayes": "sklearn.tests.test_naive_bayes",
    "discriminant_analysis": "sklearn.tests.test_discriminant_analysis",
    "gaussian_mixture": "sklearn.mixture.tests.test_gaussian_mixture",
    "mixture": "sklearn.mixture.tests.test_mixture",
    "lda": "sklearn.decomposition.tests.test_online_lda",
    "pca": "sklearn.decomposition.tests.test_pca",
    "text": "sklearn.feature_extraction.tests.test_text",
}

# Tests that do not hold for the drop-ins, by the end of their name, and why.
EXCEPTIONS: dict[str, str] = {
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": (
        "counts calls of a private function of scikit-learn's M-step; the drop-in has an M-step of its own"
    ),
}

HELP = ", ".join([*FILES, "checks"])
LEAST = 0.95  # share of the tests of a file that must pass


class Swap:
    """Plugin of pytest: patches scikit-learn before its tests are imported, and counts results."""

    def __init__(self, body: str | None) -> None:
        self.body = body
        self.results: dict[str, str] = {}

    def pytest_configure(self, config: Any) -> None:
        from deciban.sklearn import patch_sklearn

        patch_sklearn()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        if self.body is None:
            return (yield)
        with forced(self.body):
            return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.results[report.nodeid.rpartition("::")[2]] = report.outcome


def file_of(module: str) -> str | None:
    """Path of a test module of scikit-learn; None if it was installed without."""
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def run(name: str, body: str | None, more: list[str]) -> dict[str, str]:
    """Results of one file, by the names of tests."""
    path = file_of(FILES[name])
    if path is None:
        sys.exit(f"{FILES[name]} is not installed")
    swap = Swap(body)
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--no-header", f"--rootdir={Path(path).parent}"]
    pytest.main([path, "-c", "/dev/null", *quiet, *more], plugins=[swap])
    return swap.results


def public_estimators() -> list[Any]:
    """Every public estimator at its defaults, further options of ours, and arguments where they are needed."""
    import deciban
    import deciban.sklearn
    from deciban import Gaussian, GenerativeClassifier, SemiSupervised

    sequences = {"family": Gaussian(), "n_states": 2, "random_state": 0, "n_starts": 1}
    arguments: dict[str, dict[str, Any]] = {
        "HiddenMarkovModel": sequences,
        "HMMClassifier": sequences,
        "PLSA": {"n_components": 2},
        "TopicModel": {"n_components": 2},
    }
    found = [getattr(deciban.sklearn, name)() for name in deciban.sklearn.__all__ if name[0].isupper()]
    own = {name: getattr(deciban, name) for name in deciban.__all__}
    found += [
        cls(**arguments.get(name, {}))
        for name, cls in own.items()
        if isinstance(cls, type) and issubclass(cls, BaseEstimator)
    ]
    found += [GenerativeClassifier(Gaussian(structure)) for structure in ("full", "tied", "diagonal", "spherical")]
    return [*found, GenerativeClassifier(class_weight="balanced"), SemiSupervised(Gaussian("tied"))]


def checked() -> tuple[list[str], list[str]]:
    """Lines on scikit-learn's checks of every public estimator, and the names of those that fail."""
    lines, failed = [], []
    for estimator in public_estimators():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(estimator, on_fail=None, on_skip=None)
        counts = Counter(each["status"] for each in results)
        name = " ".join(repr(estimator).split())
        lines.append(f"check_estimator({name}): {counts['passed']} passed, {counts['failed']} failed")
        failed += [f"{name}: {each['check_name']}" for each in results if each["status"] in ("failed", "xfail")]
    return lines, failed


def excused(test: str) -> bool:
    """Whether a test is an exception; a name without parameters stands for all of them."""
    return test in EXCEPTIONS or test.partition("[")[0] in EXCEPTIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", default=[*FILES, "checks"], help=f"of {', '.join(FILES)}, checks; all if not given"
    )
    parser.add_argument("--as-chosen", action="store_true", help="leave small inputs to scikit-learn, as users get it")
    options, more = parser.parse_known_args()
    bad, lines = [], []
    for name in options.names:
        if name == "checks":
            continue
        results = run(name, None if options.as_chosen else "numba", more)
        ran = {test: outcome for test, outcome in results.items() if outcome != "skipped"}
        failed = [test for test, outcome in ran.items() if outcome == "failed"]
        share = 1 - len(failed) / max(1, len(ran))
        lines.append(
            f"{name}: {len(ran) - len(failed)} of {len(ran)} pass ({share:.1%}), {len(results) - len(ran)} skipped"
        )
        lines += [
            f"    {test}: {EXCEPTIONS.get(test) or EXCEPTIONS[test.partition('[')[0]]}"
            for test in failed
            if excused(test)
        ]
        bad += [f"{name}: {test}" for test in failed if not excused(test)]
        if share < LEAST or not ran:
            bad.append(f"{name}: fewer than {LEAST:.0%} pass")
    if "checks" in options.names:
        more_lines, more_bad = checked()
        lines, bad = lines + more_lines, bad + more_bad
    print(*lines, sep="\n")
    if bad:
        sys.exit("\n".join(["", "not among the exceptions:", *bad]))


if __name__ == "__main__":
    main()
