"""Runs a program with scikit-learn patched: `python -m deciban.sklearn script.py …`, or `-m module …`."""

from __future__ import annotations

import os
import runpy
import sys

from deciban.sklearn import patch_sklearn

USAGE = "usage: python -m deciban.sklearn [-m module | script.py] [argument ...]"


def main(arguments: list[str]) -> None:
    """Patch scikit-learn, then run the program as Python would."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{USAGE}\n\nRuns a program with deciban's classes in place of scikit-learn's.")
        return
    module = arguments[0] == "-m"
    if module:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(USAGE)
    patch_sklearn()
    sys.argv[:] = arguments
    if module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
