"""Runs examples of scikit-learn's gallery as they are and under the patch, and compares pictures and printed lines.

    python tests/peers/run_gallery.py [WORD…] [--examples FOLDER] [--timeout SECONDS] [--out FOLDER]

FOLDER is the folder `examples` of scikit-learn's source distribution, which pip downloads if it is not given. An
example that fails without the patch (data that must be downloaded, a package that is missing) is counted as not
comparable; one whose pictures differ between two runs without the patch varies.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import sklearn

import deciban.sklearn

RUNNER = """
import runpy, sys, pathlib, time, warnings
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
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
time.time = time.perf_counter = lambda: 0.0  # some pictures and printed lines hold seconds
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=Path)
    parser.add_argument("words", nargs="*", help="only examples whose path holds one of these")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="gallery-"))
    options.examples = options.examples or downloaded(out / "source")
    counts = {"same": 0, "differs": 0, "fails": 0, "varies": 0, "not comparable": 0}
    for path in concerned(options.examples):
        name = str(path.relative_to(options.examples))
        if options.words and not any(word in name for word in options.words):
            continue
        folders = [out / name.replace("/", "-") / how for how in ("plain", "patched")]
        plain = run(path.resolve(), folders[0], "plain", options.timeout)
        if plain is None or plain.returncode:
            verdict = "not comparable"
            why = "took too long" if plain is None else (plain.stderr.strip().splitlines() or ["?"])[-1][:90]
        else:
            patched = run(path.resolve(), folders[1], "patched", 2 * options.timeout)
            if patched is None or patched.returncode:
                verdict, why = "fails", "took too long" if patched is None else patched.stderr.strip().splitlines()[-1]
            else:
                share = difference(*folders)
                verdict = "same" if share == 0 else "differs"
                if share:  # random numbers without a seed, or seconds in the picture
                    run(path.resolve(), again := folders[0].with_name("again"), "plain", options.timeout)
                    verdict = "varies" if difference(folders[0], again) else "differs"
                lines = "" if plain.stdout == patched.stdout else ", other printed lines"
                why = f"{share:.2%} of the pixels{lines}" if share or lines else ""
        counts[verdict] += 1
        print(f"{verdict:15} {name}  {why}", flush=True)
    print(counts)
    if counts["fails"] or counts["differs"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
