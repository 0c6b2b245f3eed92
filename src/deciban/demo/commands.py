"""The command line on files of this installation; each command is printed before it runs."""

from __future__ import annotations

import csv
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from deciban.demo.examples import source_files

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
