"""The options of text: what a word is, which words there are, and how much each counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any, Literal

from deciban.families.protocol import Family
from deciban.families.text import checks
from deciban.families.text.sums import Kind
from deciban.families.text.terms import Idf, Terms
from deciban.features.limits import Limits
from deciban.features.tokens import TWO_OR_MORE, Tokens
from deciban.features.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False, repr=False)
class TextOptions(Family):
    """How documents are read, as asked for and as frozen at the first fit."""

    reading: Literal["multinomial", "bernoulli", "polya"] = "multinomial"
    transform: str = "auto"  # counts, binary or log, perhaps with +idf or +unit
    pseudo_count: Any = "auto"  # of every word: a number, "evidence" or "loo"
    _: KW_ONLY
    ngrams: Any = (1, 1)  # the fewest and the most words in a run; "auto": pairs of words too, if they help
    unit: str = "word"  # or "char", "char_wb"
    lowercase: bool = True
    strip_accents: str | None = None  # "unicode" or "ascii"
    stop_words: str | Iterable[str] | None = None  # a language, or a list
    stem: str | None = None  # a language
    pattern: str = TWO_OR_MORE  # what a word is
    analyser: Callable[[str], Iterable[str]] | None = None  # instead of everything about words above
    vocabulary: Any = "learnt"  # or "growing", or a list of words; words outside are dropped if learnt, else <unk>
    min_df: Any = 1  # the fewest documents that a word is in: a number, or a share if not whole
    max_df: Any = 1.0  # the most
    most: int | None = None  # words, at most: the others are <unk>
    by: Literal["frequency", "information"] = "frequency"  # which words are kept then
    unk: float | None = None  # pseudo-count of <unk>; that of every word if None
    words: tuple[str, ...] | None = None  # frozen at the first fit: what min_df, max_df and most left
    idf: Idf | None = None  # frozen at the first fit
    complete: bool = False  # after the first fit: what was not learnt by then is outside a learnt vocabulary

    def __post_init__(self) -> None:
        checks.check(self)
        for name in ("stop_words", "vocabulary", "ngrams"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, tuple(sorted(value) if name == "stop_words" else value))
        if self.ngrams != "auto":
            _ = self.tokens, self.limits  # refuse what they refuse

    def __repr__(self) -> str:
        """What is not as it is by default; what was frozen is left out."""
        plain = [f for f in fields(self) if f.name not in ("_", "words", "idf", "complete")]
        said = [(f.name, getattr(self, f.name)) for f in plain if getattr(self, f.name) != f.default]
        return f"Text({', '.join(f'{name}={checks.shown(value)}' for name, value in said)})"

    @cached_property
    def tokens(self) -> Tokens:
        """What counts as a word."""
        return Tokens(
            self.unit,  # type: ignore[arg-type]
            (1, 1) if self.ngrams == "auto" else self.ngrams,
            self.lowercase,
            self.strip_accents,  # type: ignore[arg-type]
            self.stop_words,
            self.stem,
            self.pattern,
            self.analyser,
        )

    @cached_property
    def limits(self) -> Limits:
        """Which words are kept."""
        return Limits(self.min_df, self.max_df, self.most, self.by)

    @cached_property
    def terms(self) -> Terms:
        """How much a word counts; by number, as long as it is not chosen."""
        if self.reading == "bernoulli":
            return Terms("binary")
        return Terms() if self.transform == "auto" else Terms.of(self.transform)

    @property
    def kind(self) -> Kind:
        """Where the words come from."""
        if isinstance(self.vocabulary, tuple) or self.most is not None:
            return "given"
        return "growing" if self.vocabulary == "growing" else "learnt"

    @cached_property
    def frozen(self) -> Vocabulary | None:
        """The words, where they are no longer open."""
        words = self.vocabulary if isinstance(self.vocabulary, tuple) else self.words
        return None if words is None else Vocabulary.of(words, "learnt" if self.kind == "learnt" else "given")
