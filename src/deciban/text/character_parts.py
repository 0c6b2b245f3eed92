"""Evidence of words, from that of the runs of characters within them.

A run that occurs m times in a document gives each occurrence an m-th of its evidence. A word has the evidence of all
runs within it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from deciban.statistics import Array
from deciban.text.tokens import Tokens


def parts_by_word(
    tokens: Tokens, texts: Sequence[str], names: Sequence[str], parts: Array
) -> tuple[list[str], Array, Array]:
    """Return words (W,), their parts (n, K, W) and counts (n, W), from parts (n, K, P) of runs of characters.

    >>> tokens, runs = Tokens("char_wb", (3, 3)), [" to", "be ", "to "]
    >>> words, parts, counts = parts_by_word(tokens, ["To be to"], runs, np.array([[[2.0, 1.0, 0.5]]]))
    >>> words, parts.tolist(), counts.tolist()
    (['be', 'to'], [[[1.0, 2.5]]], [[1, 2]])
    """
    place = {name: at for at, name in enumerate(names)}
    found, runs = tokens.words_with_runs(texts)
    words = sorted(runs)
    column = {word: at for at, word in enumerate(words)}
    made, counts = np.zeros((*parts.shape[:2], len(words))), np.zeros((len(texts), len(words)), dtype=object)
    for i, document in enumerate(found):
        often = Counter(run for word in document for run in runs[word])
        for word in document:
            counts[i, column[word]] += 1
            for run in runs[word]:
                if run in place:
                    made[i, :, column[word]] += parts[i, :, place[run]] / often[run]
    counts[counts == 0] = None
    return words, made, counts
