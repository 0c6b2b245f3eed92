"""The table of examples/mnist_table.py: sixteen cells from one pass, beside scikit-learn's twelve pipelines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness import Row, at_least, benchmark, first_call, versus

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from mnist_table import STRUCTURES, Table, bundled, mnist, our_table, sklearn_table


@benchmark("mnist")
def table(share: float) -> Iterator[Row | str]:
    """Four structures × four projections of MNIST in DECIBAN_DATA, or of scikit-learn's digits without it."""
    folder = os.environ.get("DECIBAN_DATA")
    data = bundled() if folder is None else mnist(Path(folder))
    n = int(len(data.y) * share)
    data = replace(data, X=data.X[:n], y=data.y[:n])
    yield f"compiling took {first_call(lambda: our_table(data)):.1f} s CPU, once, not counted above"
    yield versus(
        f"16 cells of {data.name}, fitted and tested",
        "12 pipelines",
        lambda: sklearn_table(data),
        lambda: our_table(data),
        at_least(6) if folder else None,
        largest_gap,
    )
    yield "the difference is that of error rates, in points, over the twelve cells both have"


def largest_gap(theirs: Table, ours: Table) -> float:
    return max(float(np.abs(np.subtract(theirs[name], ours[name])).max()) for name in STRUCTURES if name in theirs)
