"""Checks the wheel and the source distribution in dist/: contents, metadata, and a first use in an empty environment.

`make dist` builds both and runs this script. It makes a virtual environment in a temporary folder, installs the
packages of README.md's `pip install` line with the wheel in place of the name, follows the README and the tutorials
literally, and runs `deciban demo`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INSTALL = re.compile(r"^ *pip install (deciban .*|deciban)$", re.MULTILINE)
IN_SDIST = ("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "src/deciban/py.typed", "tests/cases.py")

PAGES = ("README.md", "docs/tutorial.md", "docs/tutorial-mail.md")  # followed literally with the installed wheel
IN_WHEEL = ("tutorial*.md", "howto/*.md", "explanation/*.md", "reference/*.md", "maths/*.md")  # read by `deciban docs`


def main() -> None:
    """Check, and exit with what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contents-only", action="store_true", help="install nothing")
    options = parser.parse_args()
    wheel, sdist = one("*.whl"), one("*.tar.gz")
    faults = [*check_wheel(wheel), *check_sdist(sdist)]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, contents complete")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, contents complete")
    if not options.contents_only:
        first_use(wheel)


def one(pattern: str) -> Path:
    """Return the only file of dist/ that matches."""
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"dist/ holds {len(found)} files {pattern}; remove it and run `make dist`")
    return found[0]


def tracked() -> list[str]:
    """Return the files of the package in the repository."""
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def check_wheel(path: Path) -> list[str]:
    """Return what is missing in the wheel, or should not be there."""
    faults = []
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = next(name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(wheel.read(f"{info}/METADATA"))
        entries = wheel.read(f"{info}/entry_points.txt").decode()
    faults += [f"{path.name} lacks {name}" for name in tracked() if name.removeprefix("src/") not in names]
    shared = f"{info.removesuffix('.dist-info')}.data/data/share/doc/deciban/"
    pages = {page.relative_to(DOCS).as_posix() for pattern in IN_WHEEL for page in DOCS.glob(pattern)}
    faults += [f"{path.name} lacks the page {page}" for page in sorted(pages) if shared + page not in names]
    extra = [name for name in names if not name.startswith(("deciban/", f"{info}/", shared))]
    faults += [f"{path.name} holds {name}, which is not of the package" for name in extra]
    if not any(name.startswith(f"{info}/licenses/") for name in names):
        faults.append(f"{path.name} has no licence file")
    if "deciban = deciban.cli:main" not in entries:
        faults.append(f"{path.name} has no command deciban")
    for field in ("Name", "Version", "Summary", "Requires-Python", "License-Expression", "Description-Content-Type"):
        if not metadata[field]:
            faults.append(f"{path.name}: METADATA has no {field}")
    return faults


def check_sdist(path: Path) -> list[str]:
    """Return what is missing in the source distribution."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    return [f"{path.name} lacks {name}" for name in (*IN_SDIST, *tracked()) if name not in names]


def first_use(wheel: Path) -> None:
    """Install the wheel into an empty environment; follow README and tutorials, and run the demonstration."""
    found = INSTALL.search((ROOT / "README.md").read_text())
    if found is None:
        sys.exit("README.md has no line `pip install deciban`")
    packages = [str(wheel) if name == "deciban" else name for name in found[1].split("#")[0].split()]
    with tempfile.TemporaryDirectory(prefix="deciban-dist-") as place:
        folder = Path(place)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DECIBAN"))}

        def run(*command: str) -> None:
            done = subprocess.run([str(python), *command], cwd=folder, env=environment, check=False)
            if done.returncode:
                sys.exit(f"failed: python {' '.join(command[:3])} …")

        run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        run(str(ROOT / "tools" / "pages.py"), *(str(ROOT / page) for page in PAGES))
        run("-m", "deciban", "docs")
        run("-m", "deciban", "demo")


if __name__ == "__main__":
    main()
