"""Part-of-speech tags of English by counting: a supervised hidden Markov model of the English Web Treebank.

    python examples/tagger.py --data ewt_pos.jsonl.gz      or the folder that holds ud_english_ewt/; or set DECIBAN_DATA

A state is a pair of tags, universal and English (VERB|VBD): the finer state moves more predictably, and only its first
half is judged. Rare and unknown words are tagged by their endings and shapes (`deciban.text.word_shapes`). The command
`deciban tag` does the same for files of your own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from deciban import HiddenMarkovModel
from deciban.text.word_shapes import WordFeatures, word_family


class Sentence(NamedTuple):
    """Words, and two tags for each."""

    words: list[str]
    universal: list[str]
    english: list[str]

    @property
    def fine(self) -> list[str]:
        return [f"{u}|{e}" for u, e in zip(self.universal, self.english)]


def read(path: Path) -> dict[str, list[Sentence]]:
    """Sentences by split."""
    splits: dict[str, list[Sentence]] = {"train": [], "dev": [], "test": []}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            splits[line["split"]].append(Sentence(line["words"], line["upos"], line["xpos"]))
    return splits


def words(sentences: list[Sentence]) -> list[list[str]]:
    return [s.words for s in sentences]


def lengths(sentences: list[Sentence]) -> list[int]:
    return [len(s.words) for s in sentences]


def most_frequent(train: list[Sentence], test: list[Sentence]) -> list[str]:
    """What anybody would try first: each word's most frequent tag."""
    tags: dict[str, Counter[str]] = {}
    for s in train:
        for word, tag in zip(s.words, s.universal):
            tags.setdefault(word.lower(), Counter())[tag] += 1
    return [tags.get(word.lower(), Counter(NOUN=1)).most_common(1)[0][0] for s in test for word in s.words]


def learn(look: WordFeatures, train: list[Sentence], states: str) -> HiddenMarkovModel:
    """Counts of words, and of which tag follows which."""
    y = [state for s in train for state in getattr(s, states)]
    return HiddenMarkovModel(word_family(), transition_pseudo_count=0.1).fit(look.rows(words(train)), y, lengths(train))


def tag(model: HiddenMarkovModel, look: WordFeatures, sentences: list[Sentence]) -> list[str]:
    """Universal tags of the best path."""
    return [state.split("|")[0] for state in model.predict(look.rows(words(sentences)), lengths(sentences)).tolist()]


def line(name: str, said: list[str], test: list[Sentence], seen: set[str], states: str, seconds: float) -> str:
    right = np.array(said) == [u for s in test for u in s.universal]
    known = np.array([word.lower() in seen for s in test for word in s.words])
    cells = [f"{100 * part.mean():6.2f}" for part in (right, right[known], right[~known])]
    return f"{name:32} {states:>6} {'  '.join(cells)} {seconds:9.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("DECIBAN_DATA"), help="the treebank, or the folder it is in")
    given = parser.parse_args().data
    path = Path(given or "ewt_pos.jsonl.gz")
    path = path / "ud_english_ewt" / "ewt_pos.jsonl.gz" if path.is_dir() else path
    if not path.is_file():
        print(f"{path} is not there. Give the treebank with --data, or set DECIBAN_DATA.", file=sys.stderr)
        return 1
    splits = read(path)
    train, test = splits["train"], splits["test"]
    look, seen = WordFeatures.of(words(train)), {word.lower() for s in train for word in s.words}
    print(f"{sum(lengths(train)):,} words to learn from, {sum(lengths(test)):,} to tag; accuracy in %\n")
    print(f"{'':32} states    all   known unknown   seconds")
    began = time.process_time()
    print(
        line("each word's most frequent tag", most_frequent(train, test), test, seen, "", time.process_time() - began)
    )
    for name, states in (("universal tags", "universal"), ("universal and English tags", "fine")):
        began = time.process_time()
        model = learn(look, train, states)
        said = tag(model, look, test)
        print(line(name, said, test, seen, str(len(model.classes_)), time.process_time() - began))
    few, before = train[:100], model.stats_
    model.unlearn(look.rows(words(few)), [state for s in few for state in s.fine], lengths(few))
    model.learn(look.rows(words(few)), [state for s in few for state in s.fine], lengths(few))
    print(f"\n100 sentences unlearnt and learnt again: the same model to the bit, {model.stats_.same(before)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
