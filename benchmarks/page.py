"""A page of results with a plot: `python benchmarks/page.py results.json… -o docs/benchmarks.md`.

Every job of the run is on the page, in the order of the ratios; jobs that are slower than their peer, or miss their
bound, are marked. The plot is written beside the page.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness import figure, seconds
from record import Result, read

SLOWER, FASTER, GREY = "#b5482f", "#2f6fa8", "#666666"
INTRODUCTION = """# Benchmarks

Measured by `make bench`; the raw numbers are in {source} ([how to run them](../benchmarks/README.md)). Both sides
run in one process on the same data, in turns; times are medians. The ratio is the peer's CPU time over ours: 2 is twice
as fast, less than 1 is slower. *By the clock* is the same for elapsed time, where it was measured. *Answers* is the
largest difference between the answers of both sides.

{where}

![Ratio to the peer of each job, on a logarithmic axis; jobs slower than the peer are marked]({plot})

{summary}

"""


def compared(results: list[Result]) -> list[Result]:
    """Return the results that have a peer and a ratio of times, best first."""
    with_peer = [each for each in results if each.theirs and each.ours > 0]
    return sorted(with_peer, key=lambda each: each.theirs / each.ours, reverse=True)  # type: ignore[operator]


def ratio(result: Result) -> float:
    """CPU time of the peer over ours."""
    return (result.theirs or 0.0) / result.ours


def plot(results: list[Result], path: Path) -> None:
    """Draw a bar for each job; bars to the left of 1 are jobs that are slower than the peer."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    rows = compared(results)[::-1]
    picture, axes = plt.subplots(figsize=(9, 0.26 * len(rows) + 1.2), layout="constrained")
    values = [ratio(each) for each in rows]
    axes.barh(range(len(rows)), [value - 1 for value in values], left=1, height=0.7,
              color=[FASTER if value >= 1 else SLOWER for value in values])  # fmt: skip
    axes.set_xscale("log")
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_yticks(range(len(rows)), [f"{each.job} | {each.peer}" for each in rows], fontsize=7)
    for at, value in enumerate(values):
        axes.annotate(
            figure(value), (max(value, 1), at), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.set_xlabel("times as fast as the peer (CPU)")
    axes.margins(x=0.12, y=0.01)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    picture.savefig(path)
    plt.close(picture)


def table(results: list[Result]) -> str:
    """Return all results as a Markdown table, best first; those without a peer last."""
    rows = compared(results)
    rows += [each for each in results if each not in rows]
    lines = [
        "| job | peer | peer, s | ours, s | ratio | by the clock | bound | answers |",
        "|---|---|---:|---:|---:|---:|---|---:|",
    ]
    for each in rows:
        clock = each.their_elapsed / each.our_elapsed if each.their_elapsed and each.our_elapsed else None
        cells = [
            each.job,
            each.peer,
            "" if each.theirs is None else seconds(each.theirs),
            seconds(each.ours),
            "" if not each.theirs else ("**slower** " if ratio(each) < 1 else "") + figure(ratio(each)),
            "" if clock is None else figure(clock),
            each.reach + (" **missed**" if each.met == "NO" else ""),
            "" if each.difference is None else f"{each.difference:.0e}",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def summary(results: list[Result]) -> str:
    """Return in words how many jobs are slower than their peer, and which bounds are missed."""
    rows = compared(results)
    slower = [each for each in rows if ratio(each) < 1]
    missed = [each for each in results if each.met == "NO"]
    lines = [f"{len(rows) - len(slower)} of {len(rows)} jobs are at least as fast as the peer."]
    if slower:
        lines.append(
            "Slower: " + "; ".join(f"{each.job} ({figure(ratio(each))} of {each.peer})" for each in slower) + "."
        )
    if missed:
        lines.append("Missed bounds: " + "; ".join(f"{each.job}, {each.reach}" for each in missed) + ".")
    return " ".join(lines)


def where(run: dict[str, Any]) -> str:
    """Return the machine and the versions as a sentence."""
    machine = run["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    share = "" if run["share"] == 1 else f" {run['share']:.0%} of the rows were used."
    return (
        f"Run of {run['date'][:10]} at commit `{run['commit']}`: {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory']}, load at the start {machine['load']:.1f}; Python {machine['python']}, {versions}.{share}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="files of one or several runs")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    runs = [read(path) for path in options.results]
    results = [each for _, found in runs for each in found]
    picture = options.output.with_suffix(".svg")
    plot(results, picture)
    text = INTRODUCTION.format(
        source=" and ".join(f"`benchmarks/results/{path.name}`" for path in options.results),
        where="\n\n".join(where(run) for run, _ in runs),
        plot=picture.name,
        summary=summary(results),
    )
    remarks = "\n".join(f"- {remark}" for run, _ in runs for remark in run["remarks"])
    options.output.write_text(text + table(results) + (f"\n\nRemarks of the jobs:\n\n{remarks}\n" if remarks else "\n"))


if __name__ == "__main__":
    main()
