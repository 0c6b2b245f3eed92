"""A CSV of any size with twenty columns of all types, one cell in twenty missing, and a label that they tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

ROWS = 2**16  # written at a time
GAPS = 0.05
WORDS = np.array([f"{a}{b}" for a in ("ba", "de", "fi", "go", "lu", "ma", "ne") for b in ("rk", "st", "l", "nd", "ve")])


def write_mixed(path: Path, size: float, seed: int = 0) -> int:
    """Write about `size` bytes; returns the number of rows."""
    rng, rows = np.random.default_rng(seed), 0
    with path.open("wb") as file:
        while file.tell() < size:
            csv.write_csv(_table(rng, rows), file, csv.WriteOptions(include_header=rows == 0, quoting_style="needed"))
            rows += ROWS
    return rows


def _table(rng: np.random.Generator, start: int) -> pa.Table:
    n, y = ROWS, rng.integers(0, 3, ROWS)
    columns: dict[str, pa.Array] = {"id": pa.array(np.arange(start, start + n))}
    for j in range(5):
        columns[f"number{j}"] = _gaps(rng, rng.normal(0.2 * j * y, 1.0 + j).round(3))
    columns["amount"] = _gaps(rng, np.exp(rng.normal(3 + 0.2 * y, 1.0)).round(2))
    for j in range(4):
        columns[f"count{j}"] = _gaps(rng, rng.poisson(1 + j + 0.3 * y))
    for j, size in enumerate((3, 8, 30, 200)):
        names = np.array([f"{WORDS[i % 35]}-{i}" for i in range(size)])
        columns[f"name{j}"] = _gaps(rng, names[np.minimum((rng.beta(1 + 0.2 * y, 2) * size).astype(int), size - 1)])
    for j in range(2):
        columns[f"flag{j}"] = _gaps(rng, np.where(rng.random(n) < 0.3 + 0.1 * y, "yes", "no"))
    hours = rng.integers(0, 9000, n) + (rng.random(n) < 0.1 * y) * 7
    columns["when"] = _gaps(rng, (np.datetime64("2026-01-01T00") + hours).astype("datetime64[s]").astype(str))
    words = WORDS[(rng.random((n, 6)) ** (1 + 0.2 * y[:, None]) * 35).astype(int)]
    columns["note"] = pa.array([" ".join(row) for row in words])
    columns["label"] = pa.array(np.array(["cat", "dog", "owl"])[y])
    return pa.table(columns)


def _gaps(rng: np.random.Generator, values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=rng.random(len(values)) < GAPS)
