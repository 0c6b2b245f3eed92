"""Runs examples of scikit-learn's gallery as they are and under the patch, and compares pictures and printed lines.

    python tests/peers/run_gallery.py [WORD…] [--examples FOLDER] [--timeout SECONDS] [--out FOLDER]

FOLDER is the folder `examples` of scikit-learn's source distribution, which pip downloads if it is not given. An
example that fails without the patch (data that must be downloaded, a package that is missing) is counted as not
comparable. The clock advances by a second whenever an example reads it, and not when a library does. Random numbers for
which an example gives no seed get seed 0; one whose pictures differ between two runs without the patch nevertheless
varies. If the environment variable DECIBAN_DATA names a folder with `20newsgroups/20news_bydate.jsonl.gz`, examples get
the newsgroups from there. Verdicts are kept in `verdicts.json` of the output folder: a second run with the same folder
goes on with the others. Pictures without the patch are kept there too and not drawn again, so that an example whose
verdict was removed costs one run.
"""

from __future__ import annotations

import argparse
import codecs
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import sklearn
from sklearn.utils import Bunch

import deciban.sklearn

RUNNER = """
import runpy, sys, pathlib, time, timeit, warnings
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
warnings.simplefilter("ignore")
folder = pathlib.Path(sys.argv[1]); script = sys.argv[2]
if sys.argv[3] == "patched":
    from deciban.sklearn import patch_sklearn
    patch_sklearn()
shown = []
def save(*_, **__):
    for number in plt.get_fignums():
        plt.figure(number).savefig(folder / f"{len(shown)}.png", dpi=50)
        shown.append(number)
    plt.close("all")
plt.show = save
ticks = 0.0  # some pictures and printed lines hold seconds, and some examples divide by them
def clock():
    global ticks
    ticks += sys._getframe(1).f_globals.get("__name__") == "__main__"  # a call of a library takes no time
    return ticks
time.time = time.perf_counter = timeit.default_timer = clock
np.random.seed(0)
generator = np.random.default_rng
np.random.default_rng = lambda seed=None: generator(0 if seed is None else seed)
sys.argv = [script]
sys.path[0] = str(pathlib.Path(script).parent)
runpy.run_path(script, run_name="__main__")
save()
"""


# pip asks the build backend for metadata before it downloads; nothing is built
BACKEND = f"""
from pathlib import Path

def prepare_metadata_for_build_wheel(directory, settings=None):
    folder = Path(directory, "scikit_learn-{sklearn.__version__}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: scikit-learn\\nVersion: {sklearn.__version__}\\n")
    return folder.name
"""


def downloaded(folder: Path) -> Path:
    """The examples of the installed version of scikit-learn, from its source distribution."""
    (stand_in := folder / "backend").mkdir(parents=True)
    (stand_in / "mesonpy.py").write_text(BACKEND)
    options = ["-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, f"scikit-learn=={sklearn.__version__}"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(stand_in)})
    (archive,) = folder.glob("scikit_learn-*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz") / "examples"


def concerned(folder: Path) -> list[Path]:
    """Examples that name one of the classes."""
    names = re.compile(rf"\b({'|'.join(name for name in deciban.sklearn.__all__ if name[0].isupper())})\b")
    return sorted(path for path in folder.rglob("*.py") if names.search(path.read_text()))


def keep_newsgroups(home: Path) -> None:
    """Write the 20 newsgroups where `fetch_20newsgroups` looks for them, if there is a file of them."""
    file = Path(os.environ.get("DECIBAN_DATA", "")) / "20newsgroups/20news_bydate.jsonl.gz"
    cache = home / "20news-bydate_py3.pkz"
    if cache.exists() or not file.is_file():
        return
    home.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    names = sorted({row["label"] for row in rows})
    parts = {}
    for split in ("train", "test"):
        part = [row for row in rows if row["split"] == split]
        target = np.array([names.index(row["label"]) for row in part])
        files = np.array([f"{row['label']}/{row['id']}" for row in part])
        parts[split] = Bunch(data=[row["text"] for row in part], filenames=files, target_names=names, target=target)
    cache.write_bytes(codecs.encode(pickle.dumps(parts), "zlib_codec"))


def run(script: Path, folder: Path, how: str, seconds: float) -> subprocess.CompletedProcess[str] | None:
    """One example in a process of its own; None if it takes too long."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", RUNNER, str(folder), str(script), how]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=folder)
    except subprocess.TimeoutExpired:
        return None


def difference(one: Path, other: Path) -> float:
    """Largest share of pixels that differ by more than 2 of 255 in a picture of either folder; 1 if one is missing."""
    from matplotlib.image import imread

    names = {path.name for folder in (one, other) for path in folder.glob("*.png")}
    worst = 0.0
    for name in names:
        if not ((one / name).exists() and (other / name).exists()):
            return 1.0
        a, b = imread(one / name), imread(other / name)
        worst = max(worst, 1.0 if a.shape != b.shape else float((np.abs(a - b).max(axis=2) > 2 / 255).mean()))
    return worst


def judged(script: Path, folder: Path, seconds: float) -> tuple[str, str]:
    """Verdict on an example, and what differs."""
    printed = folder / "plain.txt"
    if not printed.exists():
        plain = run(script, folder / "plain", "plain", seconds)
        if plain is None or plain.returncode:
            return "not comparable", "took too long" if plain is None else last_line(plain)
        printed.write_text(plain.stdout)
    expected = printed.read_text()
    patched = run(script, folder / "patched", "patched", 2 * seconds)
    if patched is None or patched.returncode:
        return "fails", "took too long" if patched is None else last_line(patched)
    share = difference(folder / "plain", folder / "patched")
    lines = ", other printed lines" if expected != patched.stdout else ""
    if not share and not lines:
        return "same", ""
    again = run(script, folder / "again", "plain", seconds)  # random numbers without a seed, or seconds
    if again is not None and lines and again.stdout != expected:
        lines = ", printed lines vary"
    varies = again is not None and share and difference(folder / "plain", folder / "again")
    verdict = "varies" if varies else "differs" if share else "same"
    (folder / "patched.txt").write_text(patched.stdout)
    return verdict, f"{share:.2%} of the pixels{lines}"


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or ["?"])[-1][:120]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=Path)
    parser.add_argument("words", nargs="*", help="only examples whose path holds one of these")
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = (options.out or Path(tempfile.mkdtemp(prefix="gallery-"))).resolve()
    examples = options.examples or downloaded(out / "source")
    os.environ["SCIKIT_LEARN_DATA"] = str(out / "data")
    keep_newsgroups(out / "data")
    record = out / "verdicts.json"
    found: dict[str, list[str]] = json.loads(record.read_text()) if record.exists() else {}
    for path in concerned(examples):
        name = str(path.relative_to(examples))
        if options.words and not any(word in name for word in options.words):
            continue
        if name not in found:
            found[name] = list(judged(path.resolve(), out / name.replace("/", "-"), options.timeout))
            record.write_text(json.dumps(found, indent=1))
        print(f"{found[name][0]:15} {name}  {found[name][1]}", flush=True)
    counts = Counter(verdict for verdict, _ in found.values())
    print(dict(counts))
    if counts["fails"] or counts["differs"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
