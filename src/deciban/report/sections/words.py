"""The section of words: evidence of each word, with search."""

from __future__ import annotations

from typing import Any

from deciban.evidence.explanation import short
from deciban.report.drawing import (
    rounded,
    text_of,
)
from deciban.report.material import MOST_CLASSES, Material


def words_section(material: Material, data: dict[str, Any], share: float) -> str:
    """A table of words that the script fills; the words go into `data`."""
    if not material.words:
        return ""
    K = min(len(material.clf.classes_), MOST_CLASSES)
    sets = []
    for one in material.words:
        most = int(share * len(one.words))
        sets.append({
            "total": one.total,
            "words": [[short(w, 40), rounded(n, 1), *(rounded(e, 1) for e in row[:K])]
                      for w, n, row in zip(one.words[:most], one.counts, one.decibans)],
        })  # fmt: skip
    data["words"] = sets
    classes = "".join(
        f'<option value="{k}"{" selected" if k == K - 1 and K == 2 else ""}>{text_of(name, 40)}</option>'
        for k, name in enumerate(material.clf.classes_[:K])
    )
    choice = ""
    if len(sets) > 1:
        options = "".join(
            f'<option value="{i}">{text_of(one.column, 40)}</option>' for i, one in enumerate(material.words)
        )
        choice = f'<div><label for="word-column">Column</label><br><select id="word-column">{options}</select></div>'
    return (
        "<p>Evidence of one occurrence of a word for a class over the mean of the other classes, before calibration. "
        "Sorted by evidence and frequency.</p><div class='controls'>"
        f"{choice}<div><label for='word-class'>Class</label><br><select id='word-class'>{classes}</select></div>"
        "<div id='search-box'><label for='word-search'>Search words</label><br><input id='word-search' type='search'></div></div>"
        "<p id='word-count' class='quiet' role='status'></p><div class='scroll' tabindex='0' role='group' aria-label='Words'>"
        "<table><thead><tr><th scope='col'>word</th><th scope='col' class='n'>amount learnt</th><th scope='col' class='n'>"
        "decibans</th><th scope='col'><span class='hidden'>bar</span></th></tr></thead><tbody id='word-rows'></tbody></table></div>"
    )
