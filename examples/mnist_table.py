"""Sixteen classifiers from one pass over the data, beside the twelve that scikit-learn can express.

Four covariance structures in four projected spaces are readings of the same sums: n, Σx and Σxxᵀ of each class. PCA and
Fisher's directions come from them, and projecting the rows maps the sums, so nothing is read twice. scikit-learn has no
tied diagonal, and reads the data anew for each pipeline.

    python examples/mnist_table.py                   scikit-learn's digits: 1,200 to learn from, 597 to test
    python examples/mnist_table.py --data DIR        MNIST, whose four idx .gz files are in DIR or DIR/mnist

What to see: pooled variances are the crudest; after Fisher "tied" and "tied diagonal" are the same model; a matrix for
each class is best, and better in 50 dimensions than in 100, where it has too many parameters for its rows.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from deciban import PCA, Fisher, Gaussian, Members

STRUCTURES = ("tied diagonal", "tied", "diagonal", "full")
K = 10
Table = dict[str, list[float]]  # structure → error % in each space


@dataclass(frozen=True)
class Digits:
    """Pictures of digits to learn from and to be tested on, and the widths that PCA is to leave."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    widths: tuple[int, ...]

    @property
    def spaces(self) -> list[str]:
        """As they are headed; Fisher's nine directions are taken within the widest."""
        return [f"PCA {width}" for width in self.widths] + ["→ Fisher 9"]


def our_table(data: Digits) -> Table:
    """All sixteen cells; the first line is the only one that sees the training rows."""
    sums = Gaussian("full").collect(data.X, Members.hard(data.y, K))
    pca = PCA(data.widths[0]).fit_stats(sums)
    widest, rows = pca.apply(sums), pca.transform(data.X_test)
    fisher = Fisher().fit_stats(widest)
    spaces = [(widest.select("feature", np.arange(width)), rows[:, :width]) for width in data.widths]
    spaces.append((fisher.apply(widest), fisher.transform(rows)))
    return {
        structure: [
            error(Gaussian(structure).estimate(seen, "ml").log_density(test).argmax(axis=1), data.y_test)
            for seen, test in spaces
        ]
        for structure in STRUCTURES
    }


def sklearn_table(data: Digits) -> Table:
    """The twelve cells that scikit-learn's estimators express, each a pipeline of its own."""
    uniform = np.full(K, 1 / K)
    peers = {
        "tied": lambda: LinearDiscriminantAnalysis(priors=uniform),
        "diagonal": lambda: GaussianNB(priors=uniform, var_smoothing=0),
        "full": lambda: QuadraticDiscriminantAnalysis(priors=uniform),
    }
    table: Table = {}
    for structure, peer in peers.items():
        pipelines = [make_pipeline(decomposition.PCA(width), peer()) for width in data.widths]
        pipelines.append(make_pipeline(decomposition.PCA(data.widths[0]), LinearDiscriminantAnalysis(), peer()))
        table[structure] = [error(each.fit(data.X, data.y).predict(data.X_test), data.y_test) for each in pipelines]
    return table


def error(decided: Any, truth: Any) -> float:
    """Percent wrong."""
    return 100 * float(np.mean(decided != truth))


# -- data -------------------------------------------------------------------------------------------------------------
def bundled() -> Digits:
    """scikit-learn's 1,797 digits of 8 × 8."""
    X, y = load_digits(return_X_y=True)
    return Digits("digits", X[:1200], y[:1200], X[1200:], y[1200:], (40, 20, 9))


def mnist(folder: Path) -> Digits:
    """The 70,000 digits of 28 × 28, from their own files."""
    at = folder / "mnist" if (folder / "mnist").is_dir() else folder
    (X, y), (X_test, y_test) = (
        (_pixels(at, part), _idx(at / f"{part}-labels-idx1-ubyte.gz", 8)) for part in ("train", "t10k")
    )
    return Digits("MNIST", X, y, X_test, y_test, (100, 50, 9))


def _pixels(folder: Path, part: str) -> Any:
    return _idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(float)


def _idx(path: Path, header: int) -> Any:
    if not path.is_file():
        raise SystemExit(f"{path} is not there. Give the folder of MNIST's idx .gz files, or nothing for digits.")
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


# -- what is printed --------------------------------------------------------------------------------------------------
def show(data: Digits, ours: Table, theirs: Table) -> str:
    """Both tables side by side, in percent."""
    digits = 2 if len(data.y_test) >= 10_000 else 1
    width = max(map(len, data.spaces)) + 1
    lines = [
        f"{data.name}: {len(data.y):,} to learn from, {len(data.y_test):,} to test; errors in %",
        " " * 16 + "deciban".ljust(4 * width) + "scikit-learn",
        " " * 13 + "".join(name.rjust(width) for name in data.spaces * 2),
    ]
    for structure in STRUCTURES:
        cells = [f"{value:.{digits}f}" for value in ours[structure]]
        cells += [f"{value:.{digits}f}" for value in theirs[structure]] if structure in theirs else ["–"] * 4
        lines.append(structure.ljust(13) + "".join(cell.rjust(width) for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DECIBAN_DATA"), help="where MNIST's files are")
    folder = parser.parse_args().data
    data = bundled() if folder is None else mnist(Path(folder))
    tables, times = [], []
    with threadpool_limits(limits=1):
        for make in (our_table, sklearn_table):
            start = time.process_time()
            tables.append(make(data))
            times.append(time.process_time() - start)
    print(show(data, *tables))
    print(f"\n16 models, CPU: {times[0]:.2f} s, with compiling if this is the first run")
    print(f"scikit-learn's 12: {times[1]:.2f} s, {times[1] / times[0]:.1f} times as long")


if __name__ == "__main__":
    main()
