"""A demonstration on files that every installation has: `python -m deciban.demo`.

Six steps: evidence, structures, unlearning and mixtures in a few lines of output each, then the command line on a
folder of texts and on a table; each command is printed before it runs.
"""

from __future__ import annotations

import csv
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np

from deciban import PCA, Fisher, Gaussian, GenerativeClassifier, Members, Mixture, Multinomial
from deciban.errors import NotLearntError
from deciban.evidence.explanation import decibans_text
from deciban.evidence.scores import convert
from deciban.families.abilities import HasPosterior, ability
from deciban.families.gaussian.sums import GaussianStats
from deciban.statistics import Array

SYMBOLS = ("{}", "[]", "()", ":", ";", ".", ",")
SNIPPETS = ("while (i < n) { x[i++] = 0; }", "f(a, b);", "return sorted(self.rows, key=len)")
EXCLUDED = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__phello__"}  # not typical code
STRUCTURES = ("tied diagonal", "tied", "diagonal", "full")
DICE = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
SHARES = np.array([0.58, 0.42])


# -- evidence: C or Python? --------------------------------------------------------------------------------------------
class Files(NamedTuple):
    """Counts of the symbols in each file, and its language."""

    X: Array  # (n, 7)
    y: Array  # (n,) "C" or "Python"


def symbol_counts(text: str) -> list[int]:
    """How often each symbol occurs; of a pair of brackets both count."""
    return [sum(text.count(character) for character in symbol) for symbol in SYMBOLS]


def source_files() -> dict[str, list[Path]]:
    """The `.c` files of numpy and numba, and the files of Python's standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    packages = Path(np.__file__).parents[1]
    return {
        "C": sorted(path for name in ("numpy", "numba") for path in (packages / name).rglob("*.c")),
        "Python": sorted(p for p in library.rglob("*.py") if not EXCLUDED & set(p.relative_to(library).parts)),
    }


def read_files() -> Files:
    """Count the symbols in all source files that have any."""
    rows = [
        (symbol_counts(path.read_text(errors="replace")), name)
        for name, paths in source_files().items()
        for path in paths
    ]
    kept = [(counts, name) for counts, name in rows if sum(counts)]
    return Files(np.array([counts for counts, _ in kept]), np.array([name for _, name in kept]))


def show_evidence(files: Files) -> GenerativeClassifier:
    """Print the evidence of each symbol, the leave-one-out error, and three snippets at two priors."""
    X, y = files
    clf = GenerativeClassifier(Multinomial()).fit(X, y)
    n = {name: int((y == name).sum()) for name in ("C", "Python")}
    print(
        f"[1/6] C or Python?  {n['C']} C files, {n['Python']} Python files of this installation; 7 punctuation counts."
    )
    print("      Each symbol is evidence for one language; the evidence of a text is the sum over its symbols.")
    _print_symbols(clf)
    predicted = clf.leave_one_out(X, y, method="predict")
    wrong = {name: int((predicted[y == name] != name).sum()) for name in n}
    print(
        f"      exact leave-one-out: {wrong['C']} of {n['C']} C and {wrong['Python']} of {n['Python']} Python files "
        f"wrong ({len(y)} models, computed without refitting)"
    )
    raw, calibrated = (c.evaluate(X, y, learnt=True, prior="uniform").cllr for c in (clf, copy(clf).recalibrate(X, y)))
    worse = ": worse than no evidence (1.00), because naive Bayes is overconfident" if raw > 1 else ""
    print(f"      Cllr raw {raw:.2f}{worse}; calibrated for length {calibrated:.3f}")
    rows = np.array([symbol_counts(snippet) for snippet in SNIPPETS])
    evidence = clf.llr(rows, "C", "Python")
    even, rare = (clf.predict_proba(rows, prior={"C": prior})[:, 0] for prior in (0.5, 0.01))
    print(f"      {'snippet':<36}{'evidence for C':>15}   P(C) at prior .5   at .01")
    for text, nats, at_even, at_rare in zip(SNIPPETS, evidence, even, rare):
        note = "  <- the prior decides" if (at_even > 0.5) != (at_rare > 0.5) else ""
        print(f"      {text:<36}{decibans_text(nats):>10} dban{at_even:>12.3f}{at_rare:>14.3f}{note}")
    return clf


def _print_symbols(clf: GenerativeClassifier) -> None:
    """Print each symbol's probabilities and its evidence with a 90 % interval."""
    posterior = ability(clf.family_, HasPosterior).posterior(clf.stats_.family)["p"]  # type: ignore[union-attr]
    mean, evidence = posterior.mean, convert(clf.discriminant("C", "Python").b, "decibans")
    draws = np.log(posterior.distribution.rvs((4000, *mean.shape), random_state=0))
    low, high = convert(np.quantile(draws[:, 0] - draws[:, 1], (0.05, 0.95), axis=0), "decibans")
    print("      symbol  P(.|C)  P(.|Py)   evidence per symbol, 90 % interval")
    for j in np.argsort(-evidence):
        shares = f"{mean[0, j]:>5.3f} {mean[1, j]:>8.3f}"
        interval = f"{evidence[j]:>+9.1f} dban [{low[j]:+5.1f}, {high[j]:+5.1f}]".replace("-", "−")
        print(f"      {SYMBOLS[j]:<7} {shares} {interval}  {'█' * round(abs(evidence[j]))}")


# -- structures: Gaussians in projections ------------------------------------------------------------------------------
def error_table(stats: GaussianStats, X: Array, y: Array, dimensions: Sequence[int]) -> tuple[list[str], Array]:
    """Names of the projections, and test errors in per cent (4 structures, projections); rule ml, uniform prior.

    The last column is PCA to the first number of dimensions, then Fisher's projection to one less than the classes.
    """
    names = [f"PCA {d}" for d in dimensions]
    projections = [PCA(d).fit_stats(stats) for d in dimensions]
    projected = [(p.apply(stats), p.transform(X)) for p in projections]
    first, rows = projected[0]
    directions = min(len(first.weight) - 1, dimensions[0])
    fisher = Fisher(directions).fit_stats(first)
    projected.append((fisher.apply(first), fisher.transform(rows)))
    names.append(f"PCA {dimensions[0]} → Fisher {directions}")
    errors = [
        [100 * np.mean(Gaussian(s).estimate(sums, "ml").log_density(Z).argmax(axis=1) != y) for sums, Z in projected]
        for s in STRUCTURES
    ]
    return names, np.array(errors)


def show_structures() -> None:
    """Print the test errors of four Gaussians in four projections of scikit-learn's digits, from one pass of sums."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    stats = Gaussian().collect(X[:1200], Members.hard(y[:1200], 10))
    names, errors = error_table(stats, X[1200:], y[1200:], (40, 20, 9))
    print("[2/6] Four Gaussians, four projections, one pass over 1,200 digits (error % on 597 others)")
    print("      " + " " * 13 + "".join(f"{name:>{max(len(name) + 3, 9)}}" for name in names))
    notes = {"tied": "  <- Fisher keeps all that the tied model uses", "full": "  <- best, with enough dimensions"}
    for structure, row in zip(STRUCTURES, errors):
        cells = "".join(f"{e:>{max(len(name) + 3, 9)}.1f}" for e, name in zip(row, names))
        print(f"      {structure:<13}{cells}{notes.get(structure, '')}")


# -- unlearning --------------------------------------------------------------------------------------------------------
def show_unlearning(clf: GenerativeClassifier, files: Files) -> None:
    """Unlearn a hundred files and learn them again; then try to unlearn a row that was never learnt."""
    X, y = files
    rows = np.random.default_rng(0).choice(len(y), 100, replace=False)
    before = clf.stats_
    print(f"[3/6] Unlearn 100 of {len(y)} files, and learn them again. A model is a sum, so nothing is left over.")
    without = clf.unlearn(X[rows], y[rows]).stats_
    removed = int(before.rows.sum() - without.rows.sum())
    same = "yes" if clf.learn(X[rows], y[rows]).stats_.same(before) else "no"
    print(f"      {removed} files removed and added; counts identical to the bit: {same}.  Unlearn a row never learnt:")
    try:
        clf.unlearn([[0, 0, 0, 0, 10**7, 0, 0]], ["C"])
    except NotLearntError as error:
        print(f"      NotLearntError: {error}")
    print(f"      the model is unchanged: {'yes' if clf.stats_.same(before) else 'no'}")


# -- mixtures ----------------------------------------------------------------------------------------------------------
def show_mixture(n: int = 300, rolls: int = 20) -> None:
    """Find two loaded dice, and how often each was used, in rolls without labels, by EM."""
    rng = np.random.default_rng(1)
    which = rng.choice(2, n, p=SHARES)
    X = np.stack([rng.multinomial(rolls, DICE[k]) for k in which])
    found = Mixture(Multinomial(), 2).fit(X, rule="ml", random_state=0)
    dice = np.exp(found.density("ml").components.log_density(np.eye(6))).T
    order = np.argsort(-dice[:, 0])  # as in DICE: first the die loaded on one
    right = (np.argsort(order)[found.predict(X)] == which).mean()
    print(f"[4/6] Two loaded dice: {n} rows of {rolls} rolls, without labels. EM finds both dice.")
    for name, shares, faces in (("found", found.weights[order], dice[order]), ("truth", SHARES, DICE)):
        described = (f"{share:.2f} × ({' '.join(f'{p:.2f}' for p in die)})" for share, die in zip(shares, faces))
        print(f"      {name}  {'   '.join(described)}")
    print(f"      {right:.1%} of the rows are assigned to the right die")


MISSING = 0.1  # share of the values removed from the table
TEST_ROWS = 5  # of the table, not learnt
TEST_FILES, SHORTEST = 3, 2000  # files of each language that are not learnt, and their least number of characters
COLUMNS = ("mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry")


def show_commands(folder: Path) -> None:
    """Run commands on a folder of texts and on a mixed table with gaps; the files stay in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"[5/6] The command line: C or Python, by the words of whole files.  (in {folder}/)")
    _write_texts(folder)
    run(folder, "fit", "languages", "-o", "languages.deciban")
    run(folder, "predict", "languages.deciban", "unseen", "--append")
    run(folder, "explain", "languages.deciban", "unseen", "--row", "1", "--over", "C", "--most", "8")
    print("\n[6/6] A mixed table: numbers, categories and yes/no, a tenth of the values missing, an identifier.")
    write_table(folder)
    # another name than the default, so that `deciban fit tumours.csv` works afterwards
    run(folder, "fit", "tumours.csv", "--label", "diagnosis", "-o", "demo.deciban")
    run(folder, "predict", "demo.deciban", "new.csv", "--prior", "malignant=.01")
    run(folder, "explain", "demo.deciban", "new.csv", "--row", "2", "--over", "malignant")
    run(folder, "unlearn", "demo.deciban", "ten.csv")
    run(folder, "learn", "demo.deciban", "ten.csv")
    run(folder, "report", "demo.deciban", "tumours.csv", "-o", "report.html")


def run(folder: Path, *arguments: str) -> None:
    """Print a command and run it in a process of its own; exit if it fails."""
    print(f"\n$ deciban {shlex.join(arguments)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "deciban", *arguments], cwd=folder, check=False, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise SystemExit(done.returncode)


def _write_texts(folder: Path) -> None:
    """Write one sub-folder per language with one file per text, and a folder of texts that are not learnt."""
    for name in ("languages", "unseen"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "unseen").mkdir()
    for language, paths in source_files().items():
        (folder / "languages" / language).mkdir(parents=True)
        texts = {path: path.read_text(errors="replace") for path in paths}
        long = [path for path, text in texts.items() if len(text) > SHORTEST]
        unseen = set(long[:: len(long) // TEST_FILES][:TEST_FILES])
        for number, (path, text) in enumerate(texts.items()):
            place = folder / "unseen" if path in unseen else folder / "languages" / language
            if text.strip():
                (place / f"{number:04}-{path.name}.txt").write_text(text)


def write_table(folder: Path) -> None:
    """Write scikit-learn's breast cancer data with two columns cut into categories and values removed.

    tumours.csv has all rows but the last five, ten.csv its first ten; test.csv has the last five rows, and new.csv the
    same without labels.
    """
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    positions = [list(data.feature_names).index(name) for name in COLUMNS]
    table = [[f"{value:.4g}" for value in row] for row in data.data[:, positions]]
    for row, (concavity, symmetry) in zip(table, data.data[:, positions[3:]]):
        row[3] = "none" if concavity == 0 else "some" if concavity < 0.1 else "much"
        row[4] = "yes" if symmetry < 0.18 else "no"
    rng = np.random.default_rng(0)
    for i, j in np.argwhere(rng.random((len(table), len(COLUMNS))) < MISSING):
        table[i][j] = ""
    header = ["patient", "radius", "texture", "smoothness", "concave", "symmetric", "diagnosis"]
    numbers = rng.permutation(np.arange(1000, 1000 + len(table)))
    rows = [[str(number), *row, data.target_names[t]] for number, row, t in zip(numbers, table, data.target)]
    _write_rows(folder / "tumours.csv", header, rows[:-TEST_ROWS])
    _write_rows(folder / "ten.csv", header, rows[:10])
    _write_rows(folder / "test.csv", header, rows[-TEST_ROWS:])
    _write_rows(folder / "new.csv", header[:-1], [row[:-1] for row in rows[-TEST_ROWS:]])


def _write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


# -- the whole demonstration -------------------------------------------------------------------------------------------
def main(folder: str = "demo") -> None:
    """Run all steps; the commands write their files to `folder`."""
    files = read_files()
    clf = show_evidence(files)
    print()
    show_structures()
    print()
    show_unlearning(clf, files)
    print()
    show_mixture()
    print(flush=True)
    show_commands(Path(folder))
    print(
        f"""
look: {(Path(folder) / "report.html").resolve().as_uri()}    the model as a page: figures, sliders, evidence

next: deciban fit yours.csv --label COLUMN       your own table
      deciban fit FOLDER                         your own texts, one sub-folder per class
      cd {folder} && deciban fit tumours.csv --label diagnosis    the commands of README.md
      cd {folder} && deciban inspect demo.deciban                 every parameter, with its interval
      deciban --help, README.md, docs/howto/command-line.md, docs/worked-examples.md"""
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
