"""How fast deciban is, beside its peers: `python benchmarks/run.py NAME…`, or `all`; without a name, the list."""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import tempfile

# An empty cache, so that what the first call costs is what a new installation pays. Before numba is imported.
CACHE = tempfile.mkdtemp(prefix="deciban-benchmarks-")
os.environ["NUMBA_CACHE_DIR"] = CACHE
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)

import scipy.linalg  # noqa: E402, F401  brings a BLAS of its own, which must be there to be limited
from threadpoolctl import threadpool_limits  # noqa: E402

import cli  # noqa: E402, F401
import counts  # noqa: E402, F401
import dense  # noqa: E402, F401
import dropins  # noqa: E402, F401
import few_rows  # noqa: E402, F401
import figures  # noqa: E402, F401
import growth  # noqa: E402, F401
import hmm  # noqa: E402, F401
import leave_one_out  # noqa: E402, F401
import mixtures  # noqa: E402, F401
import mnist  # noqa: E402, F401
import prediction_sets  # noqa: E402, F401
import startup  # noqa: E402, F401
import tables  # noqa: E402, F401
import text  # noqa: E402, F401
import text_memory  # noqa: E402, F401
import text_one  # noqa: E402, F401
import text_quality  # noqa: E402, F401
import topic_evidence  # noqa: E402, F401
import topic_tuning  # noqa: E402, F401
import topics  # noqa: E402, F401
import trust  # noqa: E402, F401
from harness import BENCHMARKS, HEADINGS, Row, line, rule  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"all, or some of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows; less than 1 for a quick look")
    options = parser.parse_args()
    if not options.names:
        print("\n".join(f"{name:15} {(run.__doc__ or '').splitlines()[0]}" for name, run in BENCHMARKS.items()))
        return
    names = list(BENCHMARKS) if options.names == ["all"] else options.names
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    show(names, options.share)


def show(names: list[str], share: float) -> None:
    """Rows as they come; remarks below the table."""
    remarks, headed = [], False
    with threadpool_limits(limits=1):
        for name in names:
            for said in BENCHMARKS[name](share):
                if isinstance(said, Row):
                    print(*([] if headed else [line(HEADINGS), rule()]), line(said.cells()), sep="\n", flush=True)
                    headed = True
                elif said.startswith("|"):  # a line of a table of its own
                    print(*([""] if headed else []), said, sep="\n", flush=True)
                    headed = False
                else:
                    remarks.append(f"{name}: {said}")
    print("", *remarks, sep="\n")


if __name__ == "__main__":
    main()
