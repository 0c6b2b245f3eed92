"""The command line from end to end, on files of this installation; each command is printed before it runs."""

from __future__ import annotations

import csv
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deciban.demo.examples import sources

GONE = 0.1  # share of the values that are removed from the table
NEW = 5  # rows that the model does not see
UNSEEN, WHOLE = 3, 2000  # files of each language that it does not see, and the fewest characters of a whole text
COLUMNS = ("mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry")


def show_commands(folder: Path) -> None:
    """Whole texts, then a mixed table with gaps; everything stays in the folder, to be tried again."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"[5/6] The command line: C or Python, by the words of whole texts.  (in {folder}/)")
    _write_texts(folder)
    run(folder, "fit", "languages", "-o", "languages.deciban")
    run(folder, "predict", "languages.deciban", "unseen", "--append")
    run(folder, "explain", "languages.deciban", "unseen", "--row", "1", "--over", "C", "--most", "8")
    print("\n[6/6] A mixed table: numbers, names and yes/no, a tenth of the values missing, an identifier.")
    write_table(folder)
    run(folder, "fit", "tumours.csv", "--label", "diagnosis", "-o", "tumours.deciban")
    run(folder, "predict", "tumours.deciban", "new.csv", "--prior", "malignant=.01")
    run(folder, "explain", "tumours.deciban", "new.csv", "--row", "2", "--over", "malignant")
    run(folder, "unlearn", "tumours.deciban", "ten.csv")
    run(folder, "learn", "tumours.deciban", "ten.csv")


def run(folder: Path, *arguments: str) -> None:
    """Print a command, then run it as a process of its own."""
    print(f"\n$ deciban {shlex.join(arguments)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "deciban", *arguments], cwd=folder, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def _write_texts(folder: Path) -> None:
    """One sub-folder a language, one file a text; of each language some are kept from the model, in a folder apart."""
    for name in ("languages", "unseen"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "unseen").mkdir()
    for language, paths in sources().items():
        (folder / "languages" / language).mkdir(parents=True)
        texts = {path: path.read_text(errors="replace") for path in paths}
        whole = [path for path, text in texts.items() if len(text) > WHOLE]
        kept = set(whole[:: len(whole) // UNSEEN][:UNSEEN])
        for number, (path, text) in enumerate(texts.items()):
            place = folder / "unseen" if path in kept else folder / "languages" / language
            if text.strip():
                (place / f"{number:04}-{path.name}.txt").write_text(text)


def write_table(folder: Path) -> None:
    """scikit-learn's breast cancer data with two columns cut into names, and values removed."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    place = [list(data.feature_names).index(name) for name in COLUMNS]
    table: list[list[Any]] = [[f"{value:.4g}" for value in row] for row in data.data[:, place]]
    for row, (concavity, symmetry) in zip(table, data.data[:, place[3:]]):
        row[3] = "none" if concavity == 0 else "some" if concavity < 0.1 else "much"
        row[4] = "yes" if symmetry < 0.18 else "no"
    rng = np.random.default_rng(0)
    for i, j in np.argwhere(rng.random((len(table), len(COLUMNS))) < GONE):
        table[i][j] = ""
    header = ["patient", "radius", "texture", "smoothness", "concave", "symmetric", "diagnosis"]
    numbers = rng.permutation(np.arange(1000, 1000 + len(table)))
    rows = [[number, *row, data.target_names[t]] for number, row, t in zip(numbers, table, data.target)]
    _write_rows(folder / "tumours.csv", header, rows[:-NEW])
    _write_rows(folder / "ten.csv", header, rows[:10])
    _write_rows(folder / "test.csv", header, rows[-NEW:])
    _write_rows(folder / "new.csv", header[:-1], [row[:-1] for row in rows[-NEW:]])


def _write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
