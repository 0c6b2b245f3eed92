"""The table of figures in README.md: `python benchmarks/readme.py benchmarks/results/readme.json` prints it.

With `--write` it replaces the lines of README.md between the two comments. A line of which a result is missing is left
out, and named on stderr.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import figure
from record import Result, read

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?<=<!-- figures by benchmarks/readme.py -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
BAYES = "CountVectorizer + MultinomialNB"


class Line(NamedTuple):
    """A line of the table: what was done, beside whom, and the results whose ratios it shows."""

    words: str
    peer: str  # as the README names it
    results: Sequence[tuple[str, str, str]]  # benchmark, how the job begins, how the peer begins


LINES = [
    Line(
        "raw text to a model, 101 MB: from Arrow, from a list",
        BAYES,
        [("text", "fit from Arrow", BAYES), ("text", "fit from list", BAYES)],
    ),
    Line(
        "the same by default: family chosen, calibrated, a weight for every word (the peer does none of this)",
        "the same",
        [("text", "fit as it is", BAYES)],
    ),
    Line(
        "raw text to class scores: from Arrow, from a list",
        "the same",
        [("text", "class scores from Arrow", BAYES), ("text", "class scores from list", BAYES)],
    ),
    Line("one short document: `scorer()`", "the same", [("text-one", "one document of 200", BAYES)]),
    Line(
        "`CountVectorizer().fit_transform`: words, words and pairs",
        "scikit-learn's",
        [("text", "fit_transform, words,", "Count"), ("text", "fit_transform, words and pairs", "Count")],
    ),
    Line(
        "categories, 5 million × 20: fit, scores",
        "CategoricalNB",
        [("categorical", "categorical fit", "Cat"), ("categorical", "categorical scores", "Cat")],
    ),
    Line(
        "diagonal Gaussian, 1 million × 50: fit, scores",
        "GaussianNB",
        [("diagonal", "diagonal fit", "Gauss"), ("diagonal", "diagonal scores", "Gauss")],
    ),
    Line(
        "full Gaussian, 500,000 × 50: fit, scores",
        "QDA",
        [("full", "full fit", "QDA, svd"), ("full", "full scores", "QDA, svd")],
    ),
    Line(
        "tied Gaussian, 500,000 × 50: fit, scores",
        "LDA",
        [("tied", "tied fit", "LDA, svd"), ("tied", "tied scores", "LDA, svd")],
    ),
    Line(
        "exact leave-one-out of 2,000 rows: multinomial, diagonal, full",
        "as many refits",
        [("leave-one-out", f"leave-one-out, 2,000 rows, {kind}", "") for kind in ("multinomial", "diagonal", "full")],
    ),
    Line(
        "Gaussian mixture, 50,000 × 20, an iteration: full, diagonal",
        "GaussianMixture",
        [("mixtures", "full mixture", "Gaussian"), ("mixtures", "diagonal mixture", "Gaussian")],
    ),
    Line("hidden Markov model, EM", "hmmlearn", [("hmm", "10 EM iterations", "hmmlearn")]),
    Line("100 topics, to the same held-out perplexity", "tomotopy", [("topics", "LDA, K = 100, 1 thread", "tomotopy")]),
    Line("PLSA, an iteration", "NMF", [("topics", "PLSA", "")]),
]


def table(results: Sequence[Result]) -> tuple[str, list[str]]:
    """Return the table as Markdown, and the lines that were left out."""
    shown, missing = ["| | peer | times as fast |", "|---|---|---|"], []
    for line in LINES:
        found = [_found(results, *wanted) for wanted in line.results]
        if None in found:
            missing.append(line.words)
            continue
        shown.append(f"| {line.words} | {line.peer} | {', '.join(figure(each) for each in found if each)} |")
    return "\n".join(shown), missing


def _found(results: Sequence[Result], benchmark: str, job: str, peer: str) -> float | None:
    """Return the ratio of a result."""
    return next(
        (
            each.ratio
            for each in results
            if each.benchmark == benchmark and each.job.startswith(job) and each.peer.startswith(peer)
        ),
        None,
    )


def said(runs: Sequence[dict[str, Any]]) -> str:
    """Return when and where the results were measured."""
    machine = runs[0]["machine"]
    processors = " and ".join(dict.fromkeys(run["machine"]["processor"] for run in runs))
    commits = " and ".join(sorted({f"`{run['commit']}`" for run in runs}))
    return (
        f"CPU seconds of the peer over ours in one run, medians of turns ({processors}, "
        f"{machine['cores']} cores, scikit-learn {machine['packages'].get('scikit-learn', '')}; "
        f"{' and '.join(sorted({run['date'][:10] for run in runs}))}, commit {commits}):"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="replace the table in README.md")
    options = parser.parse_args()
    both = [read(path) for path in options.results]
    lines, missing = table([each for _, results in both for each in results])
    text = f"{said([run for run, _ in both])}\n\n{lines}\n"
    if options.write:
        readme = ROOT / "README.md"
        readme.write_text(BLOCK.sub(lambda _: text, readme.read_text()))
    else:
        print(text)
    for words in missing:
        print(f"left out, no result: {words}", file=sys.stderr)


if __name__ == "__main__":
    main()
