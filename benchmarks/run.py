"""How fast deciban is, beside its peers: `python benchmarks/run.py NAME…`, or `all`; without a name, the list."""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

# An empty cache, so that what the first call costs is what a new installation pays. Before numba is imported.
CACHE = tempfile.mkdtemp(prefix="deciban-benchmarks-")
os.environ["NUMBA_CACHE_DIR"] = CACHE
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)

import scipy.linalg  # noqa: E402, F401  brings a BLAS of its own, which must be there to be limited
from threadpoolctl import threadpool_limits  # noqa: E402

import cli  # noqa: E402, F401
import clock  # noqa: E402, F401
import counts  # noqa: E402, F401
import dense  # noqa: E402, F401
import dropins  # noqa: E402, F401
import engines  # noqa: E402, F401
import few_rows  # noqa: E402, F401
import figures  # noqa: E402, F401
import growth  # noqa: E402, F401
import hmm  # noqa: E402, F401
import leave_one_out  # noqa: E402, F401
import mixtures  # noqa: E402, F401
import mllib  # noqa: E402, F401
import mnist  # noqa: E402, F401
import one_row  # noqa: E402, F401
import prediction_sets  # noqa: E402, F401
import record  # noqa: E402
import rivals  # noqa: E402, F401
import startup  # noqa: E402, F401
import tables  # noqa: E402, F401
import text  # noqa: E402, F401
import text_memory  # noqa: E402, F401
import text_one  # noqa: E402, F401
import text_quality  # noqa: E402, F401
import text_rivals  # noqa: E402, F401
import topic_evidence  # noqa: E402, F401
import topic_tuning  # noqa: E402, F401
import topics  # noqa: E402, F401
import trust  # noqa: E402, F401
from harness import BENCHMARKS, HEADINGS, Row, line, rule  # noqa: E402

# jobs that need no other data than they make themselves, and end within minutes
QUICK = ["categorical", "multinomial", "diagonal", "full", "tied", "leave-one-out", "mixtures", "hmm", "startup"]
CLOCK = [
    name for name in BENCHMARKS if name.startswith("clock-")
]  # elapsed times; run them on a machine without other work
README = ["text", "text-one", *QUICK[:-1]]  # the figures of README.md, see readme.py
MLLIB = [name for name in BENCHMARKS if name.startswith("mllib-")]
GROUPS = {"all": list(BENCHMARKS), "quick": QUICK, "clock": CLOCK, "readme": README, "engines-mllib": MLLIB}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"{', '.join(GROUPS)}, or some of: {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--json",
        type=Path,
        help="also write results, machine, versions and commit to this file; "
        "results of other benchmarks in it, of the same commit and share, are kept",
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the rows; less than 1 for a quick look")
    options = parser.parse_args()
    if not options.names:
        print("\n".join(f"{name:15} {(run.__doc__ or '').splitlines()[0]}" for name, run in BENCHMARKS.items()))
        return
    names = [each for name in options.names for each in GROUPS.get(name, [name])]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    where = record.machine()
    results, remarks = show(names, options.share)
    if options.json is not None:
        record.write(options.json, results, remarks, options.share, where)


def show(names: list[str], share: float) -> tuple[list[record.Result], list[str]]:
    """Print rows as they come, remarks below the table; return the rows as results, and the remarks."""
    remarks: list[str] = []
    results: list[record.Result] = []
    headed = False
    with threadpool_limits(limits=1):
        for name in names:
            for said in BENCHMARKS[name](share):
                if isinstance(said, Row):
                    results.append(record.Result.of(name, said))
                    print(*([] if headed else [line(HEADINGS), rule()]), line(said.cells()), sep="\n", flush=True)
                    headed = True
                elif said.startswith("|"):  # a line of a table of its own
                    print(*([""] if headed else []), said, sep="\n", flush=True)
                    headed = False
                else:
                    remarks.append(f"{name}: {said}")
                    print(f"  {remarks[-1]}", file=sys.stderr, flush=True)  # at once: a job may take an hour
    print("", *remarks, sep="\n")
    return results, remarks


if __name__ == "__main__":
    main()
