"""Look-alike dice: which of two loaded dice was rolled, when nobody says."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deciban import PCA, Fisher, Gaussian, GenerativeClassifier, Members, Mixture, Multinomial
from deciban.errors import NotLearntError
from deciban.evidence.explanation import decibans_text
from deciban.evidence.scores import convert
from deciban.families.gaussian.sums import GaussianStats
from deciban.statistics import Array

TRUTH = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
SHARES = np.array([0.58, 0.42])


def show_mixture(n: int = 300, rolls: int = 20) -> None:
    """Recover both dice, and how often each was used, by EM."""
    rng = np.random.default_rng(1)
    which = rng.choice(2, n, p=SHARES)
    X = np.stack([rng.multinomial(rolls, TRUTH[k]) for k in which])
    found = Mixture(Multinomial(), 2).fit(X, rule="ml", random_state=0)
    dice = np.exp(found.density("ml").components.log_density(np.eye(6))).T
    order = np.argsort(-dice[:, 0])  # the die loaded on one comes first, as in the truth
    told = (np.argsort(order)[found.predict(X)] == which).mean()
    print(f"[4/6] Look-alike dice: {n} rows of {rolls} rolls, and nobody says which die. EM finds both.")
    for name, shares, faces in (("found", found.weights[order], dice[order]), ("truth", SHARES, TRUTH)):
        print(
            f"      {name}  "
            + "   ".join(f"{s:.2f} × ({' '.join(f'{p:.2f}' for p in f)})" for s, f in zip(shares, faces))
        )
    print(f"      {told:.1%} of the rows told apart")


# -- gaussians ----------
# Four Gaussians in four projections of one data set, all from one pass of statistics.

STRUCTURES = ("tied diagonal", "tied", "diagonal", "full")


def collect(X: Any, y: Array) -> GaussianStats:
    """The one pass: sums of products, per class."""
    return Gaussian().collect(X, Members.hard(y, int(y.max()) + 1))


def error_table(stats: GaussianStats, X: Any, y: Array, dimensions: Sequence[int]) -> tuple[list[str], Array]:
    """Names of the projections and (4 structures, projections) test errors in per cent; rule ml, uniform prior.

    The last column is PCA to the first number of dimensions, then Fisher to all directions there are.
    """
    names = [f"PCA {d}" for d in dimensions]
    projections = [PCA(d).fit_stats(stats) for d in dimensions]
    projected = [(p.apply(stats), p.transform(X)) for p in projections]
    first, rows = projected[0]
    directions = len(first.weight) - 1
    fisher = Fisher(directions).fit_stats(first)
    projected.append((fisher.apply(first), fisher.transform(rows)))
    names.append(f"PCA {dimensions[0]} → Fisher {directions}")
    errors = [
        [100 * np.mean(Gaussian(s).estimate(sums, "ml").log_density(Z).argmax(axis=1) != y) for sums, Z in projected]
        for s in STRUCTURES
    ]
    return names, np.array(errors)


def show_table() -> None:
    """The sixteen cells on scikit-learn's digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    stats = collect(X[:1200], y[:1200])
    names, errors = error_table(stats, X[1200:], y[1200:], (40, 20, 9))
    print("[2/6] Four Gaussians, four projections, one pass over 1,200 digits (error % on 597 others)")
    print("      " + " " * 13 + "".join(f"{name:>{max(len(name) + 3, 9)}}" for name in names))
    notes = {"tied": "  <- Fisher keeps all the tied model uses", "full": "  <- best, until dimensions run out"}
    for structure, row in zip(STRUCTURES, errors):
        cells = "".join(f"{e:>{max(len(name) + 3, 9)}.1f}" for e, name in zip(row, names))
        print(f"      {structure:<13}{cells}{notes.get(structure, '')}")


# -- languages ----------
# C or Python? Seven punctuation counts of the source files that the installation ships.

SYMBOLS = ("{}", "[]", "()", ":", ";", ".", ",")
SNIPPETS = ("while (i < n) { x[i++] = 0; }", "f(a, b);", "return sorted(self.rows, key=len)")
NOT_TYPICAL = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__phello__"}


class Files(NamedTuple):
    """Counts of each file, and its language."""

    X: Array  # (n, 7)
    y: Array  # (n,) "C" or "Python"


def count(text: str) -> list[int]:
    """How often each symbol occurs; brackets count both ways."""
    return [sum(text.count(character) for character in symbol) for symbol in SYMBOLS]


def sources() -> dict[str, list[Path]]:
    """The `.c` files of numpy and numba, and Python's standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    packages = Path(np.__file__).parents[1]
    return {
        "C": sorted(path for name in ("numpy", "numba") for path in (packages / name).rglob("*.c")),
        "Python": sorted(p for p in library.rglob("*.py") if not NOT_TYPICAL & set(p.relative_to(library).parts)),
    }


def read_files() -> Files:
    """What these files count."""
    rows = [(count(p.read_text(errors="replace")), name) for name, paths in sources().items() for p in paths]
    kept = [(counts, name) for counts, name in rows if sum(counts)]  # an empty file is neither
    return Files(np.array([counts for counts, _ in kept]), np.array([name for _, name in kept]))


def show_evidence(files: Files) -> Any:
    """Fit, and print what each symbol says, how often the model errs, and three snippets at two priors."""
    X, y = files
    clf = GenerativeClassifier(Multinomial()).fit(X, y)
    n = {name: int((y == name).sum()) for name in ("C", "Python")}
    print(
        f"[1/6] C or Python?  {n['C']} C files, {n['Python']} Python files of this installation; 7 punctuation counts."
    )
    print("      Each symbol is a piece of evidence; a text's evidence is their sum.")
    _print_symbols(clf)
    guess = clf.leave_one_out(X, y, method="predict")
    wrong = {name: int((guess[y == name] != name).sum()) for name in n}
    print(
        f"      exact leave-one-out: {wrong['C']} of {n['C']} C and {wrong['Python']} of {n['Python']} Python files "
        f"wrong ({len(y)} models, none of them refitted)"
    )
    raw, mended = (c.evaluate(X, y, learnt=True, prior="uniform").cllr for c in (clf, copy(clf).recalibrate(X, y)))
    worse = ": worse than saying nothing (1.00), since naive Bayes is overconfident" if raw > 1 else ""
    print(f"      Cllr raw {raw:.2f}{worse}; calibrated for length {mended:.3f}")
    rows = np.array([count(snippet) for snippet in SNIPPETS])
    evidence = convert(clf.llr(rows, "C", "Python"), "nats")
    even, rare = (clf.predict_proba(rows, prior={"C": prior})[:, 0] for prior in (0.5, 0.01))
    print(f"      {'snippet':<36}{'evidence for C':>15}   P(C) at prior .5   at .01")
    for text, nats, half, cent in zip(SNIPPETS, evidence, even, rare):
        note = "  <- the prior decides" if (half > 0.5) != (cent > 0.5) else ""
        print(f"      {text:<36}{decibans_text(nats):>10} dban{half:>12.3f}{cent:>14.3f}{note}")
    return clf


def _print_symbols(clf: Any) -> None:
    post = clf.family_.posterior(clf.stats_.family)["p"]
    mean, b = post.mean, convert(clf.discriminant("C", "Python").b, "decibans")
    draws = np.log(post.distribution.rvs((4000, *mean.shape), random_state=0))
    low, high = convert(np.quantile(draws[:, 0] - draws[:, 1], (0.05, 0.95), axis=0), "decibans")
    print("      symbol  P(.|C)  P(.|Py)   evidence per symbol, 90 % interval")
    for j in np.argsort(-b):
        bar = "█" * round(abs(b[j]))
        interval = f"[{low[j]:+5.1f}, {high[j]:+5.1f}]".replace("-", "−")
        print(
            f"      {SYMBOLS[j]:<7} {mean[0, j]:>5.3f} {mean[1, j]:>8.3f} {b[j]:>+9.1f} dban {interval}  {bar}".replace(
                "-", "−"
            )
        )


def show_taking_back(clf: Any, files: Files) -> None:
    """Unlearn a hundred files and learn them again; then try to unlearn what was never learnt."""
    X, y = files
    rows = np.random.default_rng(0).choice(len(y), 100, replace=False)
    before = clf.stats_
    print(
        f"[3/6] Take it back: unlearn 100 of {len(y)} files, learn them again. A model is a sum: nothing is left over."
    )
    without = clf.unlearn(X[rows], y[rows]).stats_
    fewer = int(before.rows.sum() - without.rows.sum())
    same = "yes" if clf.learn(X[rows], y[rows]).stats_.same(before) else "no"
    print(f"      {fewer} files fewer, then back; counts identical to the bit: {same}.  Unlearn a stranger:")
    stranger = [[0, 0, 0, 0, 10**7, 0, 0]]
    try:
        clf.unlearn(stranger, ["C"])
    except NotLearntError as error:
        print(f"      NotLearntError: {str(error).split('; ')[0]}; these rows were never learnt.")
    print(f"      the model is as it was: {'yes' if clf.stats_.same(before) else 'no'}")
