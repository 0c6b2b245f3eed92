"""What became slower or faster between two runs: `python benchmarks/compare.py old.json new.json`.

Jobs are compared by the ratio to their peer, so that two machines, or one machine under different loads, can be
compared; a job without a peer by its own seconds. The exit code is 1 if a job lost more than `--tolerance`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from record import Result, read


@dataclass(frozen=True)
class Change:
    """One job in two runs."""

    old: Result
    new: Result

    @property
    def factor(self) -> float:
        """How many times as fast as before: above 1 is faster."""
        if self.old.theirs is None or self.new.theirs is None:
            return self.old.ours / self.new.ours
        return (self.new.theirs / self.new.ours) / (self.old.theirs / self.old.ours)

    def line(self) -> str:
        """As printed."""
        before = "" if self.old.ratio is None else f"{self.old.ratio:.3g}"
        after = "" if self.new.ratio is None else f"{self.new.ratio:.3g}"
        job = f"{self.new.benchmark}: {self.new.job}"
        return f"{self.factor:6.2f}  {job:70} {self.new.peer:28} {before:>8} → {after:<8}"


def changes(old: list[Result], new: list[Result]) -> tuple[list[Change], list[Result], list[Result]]:
    """Return the jobs of both runs, slowest first, those of the old one alone, and those of the new one alone."""
    before = {(each.benchmark, each.job, each.peer): each for each in old}
    after = {(each.benchmark, each.job, each.peer): each for each in new}
    both = sorted((Change(before[key], after[key]) for key in before.keys() & after.keys()), key=lambda one: one.factor)
    gone = [before[key] for key in sorted(before.keys() - after.keys())]
    come = [after[key] for key in sorted(after.keys() - before.keys())]
    return both, gone, come


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.1, help="a job lost if it is slower by more than this")
    options = parser.parse_args()
    (old_run, old), (new_run, new) = read(options.old), read(options.new)
    if old_run["share"] != new_run["share"]:
        sys.exit(f"the runs used different shares of the rows: {old_run['share']} and {new_run['share']}")
    both, gone, come = changes(old, new)
    print(f"old {old_run['commit']} of {old_run['date']}, new {new_run['commit']} of {new_run['date']}")
    print("times as fast as before; ratio to the peer before → now")
    print("\n".join(change.line() for change in both))
    for title, results in (("only in the old run", gone), ("only in the new run", come)):
        if results:
            print(f"{title}: " + "; ".join(f"{each.benchmark}: {each.job} ({each.peer})" for each in results))
    lost = [change for change in both if change.factor < 1 - options.tolerance]
    print(f"{len(lost)} of {len(both)} jobs lost more than {options.tolerance:.0%}")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
