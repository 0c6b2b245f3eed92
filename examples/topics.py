"""Topics of a folder of texts: how many, which, and one page to look at.

    python examples/topics.py FOLDER                     every .txt file below it is a document
    python examples/topics.py --data DIR                 DIR holds 20newsgroups/, a .jsonl.gz of {"text": …}
    python examples/topics.py FOLDER --topics 10 20 40   held-out documents choose among these

Headers and quoted lines are left out of newsgroups' posts. The page is written to topics.html, or where --out says.

What to see: at 20 topics most newsgroups have one of their own; perplexity falls on as topics are added, for there are
more than twenty subjects in twenty groups, and topics of small talk that all groups share. NPMI says whether the first
words of topics belong together, by the documents that hold them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from pathlib import Path

from deciban import TopicModel

LEAST = 5  # documents that must hold a word
SHOWN = 20  # topics in the table


def read_folder(folder: Path) -> list[str]:
    files = sorted(folder.rglob("*.txt"))
    if not files:
        sys.exit(f"{folder}: there is no .txt file in or below it.")
    return [file.read_text(encoding="utf-8", errors="replace") for file in files]


def read_newsgroups(data: Path) -> list[str]:
    files = sorted((data / "20newsgroups").glob("*.jsonl.gz"))
    if not files:
        sys.exit(f"{data}: there is no 20newsgroups/*.jsonl.gz in it.")
    with gzip.open(files[0], "rt", encoding="utf-8") as lines:
        return [body(json.loads(line)["text"]) for line in lines]


def body(post: str) -> str:
    """A post without its header, and without what it quotes."""
    _, _, text = post.partition("\n\n")
    return "\n".join(line for line in text.splitlines() if not line.startswith((">", "|", "In article")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, help="texts, one a file")
    parser.add_argument("--data", default=os.environ.get("DECIBAN_DATA"), help="the folder of 20newsgroups/")
    parser.add_argument("--topics", type=int, nargs="+", default=[20], help="a number, or several to choose from")
    parser.add_argument("--out", type=Path, default=Path("topics.html"), help="the page")
    parser.add_argument("--share", type=float, default=1.0, help="of the documents; less than 1 for a quick look")
    options = parser.parse_args()
    if options.folder is None and options.data is None:
        sys.exit("say where the texts are: a folder, or --data DIR for 20 Newsgroups.")
    texts = read_folder(options.folder) if options.folder else read_newsgroups(Path(options.data))
    texts = texts[:: max(round(1 / options.share), 1)]
    start = time.process_time()
    sizes = options.topics[0] if len(options.topics) == 1 else options.topics
    model = TopicModel(sizes, min_df=min(LEAST, len(texts)), max_df=0.3, random_state=0, progress=True).fit(texts)
    print(f"{model.documents_:,} documents, {model.tokens_:,.0f} tokens, {len(model.vocabulary_):,} words")
    for K, perplexity in model.criteria_.items():
        print(f"{K:5} topics: perplexity {perplexity:8,.0f}{' of held-out documents' if model.held_out_ else ''}")
    print(model.table(8, most=SHOWN))
    print(f"coherence (NPMI) {model.coherence(texts).mean():.3f}, diversity {model.diversity():.2f}")
    model.to_html(options.out, texts)
    print(f"{options.out} written; {time.process_time() - start:.0f} s CPU")


if __name__ == "__main__":
    main()
