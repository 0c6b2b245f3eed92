"""What options of text go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from deciban.errors import HyperparameterError, InputError, shortlist
from deciban.families.bernoulli import Bernoulli
from deciban.families.dirichlet import check_strength
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Family, Rule, require_rows
from deciban.read.tables import Columns
from deciban.statistics import Array, Axis, Members
from deciban.text import candidates as offers
from deciban.text.counting import count_classes
from deciban.text.density import TextDensity
from deciban.text.leave_one_out import LeaveOneOut
from deciban.text.reading import KnownWords
from deciban.text.rows import TextRows
from deciban.text.stats import (
    UNK,
    Kind,
    TextStats,
    in_axis_order,
    in_vocabulary_order,
    require_words,
    vocabulary_of,
    with_unk,
    word_axis,
)
from deciban.text.stream import RunningTerms, RunningText
from deciban.text.terms import Idf, Terms
from deciban.text.tokens import TWO_OR_MORE, Tokens
from deciban.text.vocabulary import Limits, Vocabulary

READINGS = ("multinomial", "bernoulli", "polya")


def check(text: Any) -> None:
    """Refuse options that are not there or do not go together."""
    if text.reading not in READINGS:
        raise HyperparameterError(f"reading={text.reading!r} must be one of {', '.join(READINGS)}.")
    if text.transform != "auto":
        terms = Terms.of(text.transform)
        if text.reading == "bernoulli" and terms != Terms("binary"):
            raise HyperparameterError(f"transform={text.transform!r}: a Bernoulli reading knows presence alone.")
    if text.pseudo_count != "auto":
        check_strength("Text", text.pseudo_count, None)
    if text.reading == "bernoulli" and text.pseudo_count in ("evidence", "loo"):
        raise HyperparameterError("a Bernoulli reading takes a number as pseudo_count, or 'auto'.")
    if text.unk is not None:
        check_strength("Text", text.unk, None)
    _check_vocabulary(text)
    _check_ngrams(text)


def _check_vocabulary(text: Any) -> None:
    given = text.vocabulary
    limited = not (text.min_df in (0, 1) and text.max_df == 1.0 and text.most is None)
    if isinstance(given, str):
        if given not in ("learnt", "growing"):
            raise HyperparameterError(f"vocabulary={given!r} must be 'learnt', 'growing' or a list of words.")
    else:
        words = Vocabulary.of(given)
        if not len(words):
            raise InputError("the vocabulary that was given is empty. Give words, or vocabulary='learnt'.")
        if UNK in words:
            raise InputError(f"{UNK} stands for words outside the vocabulary: it is there without being listed.")
    if limited and given != "learnt":
        raise HyperparameterError("min_df, max_df and most are for a learnt vocabulary, not for one given or growing.")


def _check_ngrams(text: Any) -> None:
    if isinstance(text.ngrams, str):
        if text.ngrams != "auto":
            raise HyperparameterError(f"ngrams={text.ngrams!r} must be (fewest, most) or 'auto'.")
        if text.unit != "word" or text.analyser is not None:
            raise HyperparameterError("ngrams='auto' is for words. Give (fewest, most) for characters.")
    elif len(tuple(text.ngrams)) != 2:
        raise HyperparameterError(f"ngrams={text.ngrams} must be (fewest, most).")


def shown(value: Any) -> str:
    """An option as text, long lists cut short."""
    return f"({shortlist(list(map(repr, value)))})" if isinstance(value, tuple) and len(value) > 2 else repr(value)


# -- options ----------
# The options of text: what a word is, which words there are, and how much each counts.


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

    def __post_init__(self) -> None:
        check(self)
        for name in ("stop_words", "vocabulary", "ngrams"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, tuple(sorted(value) if name == "stop_words" else value))
        if self.ngrams != "auto":
            _ = self.tokens, self.limits  # refuse what they refuse

    def __repr__(self) -> str:
        """What is not as it is by default; what was frozen is left out."""
        plain = [f for f in fields(self) if f.name not in ("_", "words", "idf")]
        said = [(f.name, getattr(self, f.name)) for f in plain if getattr(self, f.name) != f.default]
        return f"Text({', '.join(f'{name}={shown(value)}' for name, value in said)})"

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


# -- family ----------
# Text: a document is counts of words, which any family of counts can read.
#
#     multinomial   words drawn one by one, each class from its own urn
#     polya         the same with the urn's contents integrated out: a word's second occurrence surprises less
#     bernoulli     each word of the vocabulary is there or not, and absence speaks too
#
# The density is that of a document's words in their order, given how many there are: the same for all ways to order
# them, so no coefficient is left out.
#
# Reference: McCallum and Nigam, A comparison of event models for naive Bayes text classification, 1998.

LARGE = 2**22  # counts of words, beside which
PART = 4_096  # documents are left out at a time, for few words are in so few


@dataclass(frozen=True, eq=False, repr=False)
class Text(TextOptions):
    """Documents: a list, or a column, of texts.

    What is "auto" is chosen at the first fit of a classifier, by leave-one-out log loss after calibration.

    >>> spam, ham = ["free prize", "win a free prize"], ["see you at lunch", "lunch at noon"]
    >>> from deciban import GenerativeClassifier
    >>> clf = GenerativeClassifier(Text(pseudo_count=1, transform="counts")).fit(spam + ham, ["spam"] * 2 + ["ham"] * 2)
    >>> clf.predict(["another free prize", "lunch at noon"])
    array(['spam', 'ham'], dtype='<U4')
    """

    # -- how documents are read ---------------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> TextRows:
        """Documents; they are counted when they are summed or scored."""
        X = X.texts() if isinstance(X, Columns) else X
        return TextRows.of(X, None if stats is None else stats.labels["word"])

    def check(self, X: TextRows, columns: Sequence[str], learning: bool = False) -> None:
        """Documents are checked while they are read."""

    def lengths(self, X: TextRows) -> Array:
        """(n,) words of each document, in the vocabulary or not."""
        return X.lengths(self.tokens)

    # -- sums -----------------------------------------------------------------------------------------------------
    def collect(self, X: TextRows, members: Members) -> TextStats:
        """Σ w·term per class and word; for plain counts in one pass over the text."""
        X, at = X.there()
        members = members if at is None else members.take(at)
        axis = X.known if self.kind == "learnt" and self.frozen is None else None
        known = self.frozen if axis is None else vocabulary_of(axis, self.kind)
        at_once = self.terms.plain and members.codes is not None and not X.counted
        if at_once:
            vocabulary, counts, tokens = self._in_one_pass(X, members, known)
        else:
            done = X.count_openly(self.tokens) if known is None else X.count_known(KnownWords(known, self.tokens))
            vocabulary, tokens = done.vocabulary, members.total(done.lengths[:, None].astype(float))[:, 0]
            counts = members.total(self.terms.rows(done.matrix, self.factors(done.vocabulary)))
        if axis is not None:
            return TextStats({"class": members.classes, "word": axis}, counts, members.weights(), tokens)
        stats = self.sums(members.classes, vocabulary, counts, members.weights(), tokens)
        return stats if at_once and known is None else stats.pruned()

    def accumulator(self, X: TextRows, members: Members, columns: Sequence[Any]) -> RunningText | RunningTerms:
        """Sums that grow in place, where documents are summed while they are read."""
        return RunningText(self, X, members) if self.terms.plain else RunningTerms(self, X, members, columns)

    def sums(self, classes: Axis, vocabulary: Vocabulary, counts: Array, rows: Array, tokens: Array) -> TextStats:
        """Counts of the columns of a vocabulary, found or frozen, as statistics."""
        names: Any = vocabulary
        if self.frozen is None and self.kind != "learnt":
            names, counts = with_unk(vocabulary, counts)
        labels = {"class": classes, "word": word_axis(names, self.kind)}
        return TextStats(labels, in_axis_order(counts, self.kind), rows, tokens)

    def _in_one_pass(self, X: TextRows, members: Members, known: Vocabulary | None) -> tuple[Vocabulary, Array, Array]:
        binary = self.terms.amount == "binary"
        w = members.weight
        found = count_classes(
            X.documents, members.codes, members.K, self.tokens, known, weight=w, presence=binary, steps=self.terms.steps
        )
        if w is None:
            X.measured[self.tokens] = found.lengths
        tokens = np.bincount(members.codes, found.lengths if w is None else w * found.lengths, members.K)
        return found.vocabulary, found.documents if binary else found.counts, tokens.astype(float)  # type: ignore[return-value]

    def factors(self, vocabulary: Vocabulary) -> Array | None:
        """(V,) the idf of each column, that of unk too."""
        if not self.terms.idf or self.idf is None:
            return None
        values = self.idf.of_words(vocabulary.names)
        return np.append(values, self.idf.new) if vocabulary.unk else values

    # -- choices ----------------------------------------------------------------------------------------------------
    @property
    def open(self) -> bool:
        """Whether the first rows must be seen before any are summed."""
        return offers.is_open(self)

    @property
    def not_mixable(self) -> str:
        """Why documents cannot be mixed."""
        return "documents would be read again in every iteration"

    @property
    def calibration(self) -> str:
        """By the length of the document."""
        return "length"

    def candidates(self, X: TextRows, members: Members) -> list[list[Text]]:
        """What this could become, by the first rows: for each transform and length of run, a line of pseudo-counts."""
        return offers.candidates(self, X, members)

    def _ahead(self, X: TextRows, rows: Array, some: TextRows) -> TextRows:
        """What is counted of them is not counted again."""
        return X.note(rows, some)

    def without_labels(self, X: TextRows, members: Members) -> Text:
        """As textbooks have it: counts, and a pseudo-count of 1."""
        return offers.with_idf(offers.with_words(offers.textbook(self), X, members), X, members)

    def choose(self, stats: TextStats, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Text:
        """Freeze the strength that the counts call for, and, where nobody judged candidates, the textbook's."""
        chosen: Text = self
        if self.open and rows is not None:
            chosen = self.without_labels(*rows)
        elif self.open:
            chosen = offers.textbook(self)
        if chosen.pseudo_count not in ("evidence", "loo"):
            return chosen
        _, sums = chosen.readable(stats)
        strength = Multinomial(chosen.pseudo_count).choose(sums).pseudo_count  # type: ignore[arg-type]
        return replace(chosen, pseudo_count=strength)

    def summed_as(self, chosen: Text) -> Text:
        """What was asked for, less the choices that the sums were made under."""
        kept = {name: getattr(chosen, name) for name in ("transform", "ngrams", "min_df", "words", "idf")}
        return replace(self, **kept)

    def same_sums(self, other):
        return self.summed_as(other) == self

    def keep_choices(self, chosen: Text, with_rows: bool) -> Text:
        again = self.summed_as(chosen)
        if with_rows:
            return again
        return replace(again, pseudo_count=chosen.pseudo_count) if again.pseudo_count == "auto" else again

    def _settled(self, chosen: Text) -> Text:
        """The strength by evidence can be chosen again; what labels chose stays."""
        again = self.summed_as(chosen)
        return replace(again, pseudo_count=chosen.pseudo_count) if again.pseudo_count == "auto" else again

    def chosen_by_labels(self) -> list[str]:
        """What is chosen by the log loss of the label."""
        names = {"transform": "transform", "pseudo_count": "pseudo-count", "ngrams": "runs of words"}
        return [said for name, said in names.items() if getattr(self, name) == "auto"]

    # -- densities --------------------------------------------------------------------------------------------------
    def readable(self, stats: TextStats) -> tuple[Axis, TextStats]:
        """The words that are counted, and their sums as families of counts read them: unk last, idf multiplied in."""
        stats = stats.pruned()
        axis: Any = stats.labels["word"]
        require_words(axis)
        counts = in_vocabulary_order(stats.counts, self.kind)
        factors = self.factors(vocabulary_of(axis, self.kind)) if self.terms.idf else None
        return axis, replace(stats, counts=counts if factors is None else counts * factors)

    def family(self, V: int) -> Multinomial | Bernoulli:
        """The family that reads the counts of V columns, unk among them."""
        alpha: Any = self.pseudo_count if not isinstance(self.pseudo_count, str) else 1.0
        if self.unk is not None and self.kind != "learnt":
            alpha = np.append(np.full(V - 1, float(alpha)), self.unk)
        return Bernoulli(alpha, alpha) if self.reading == "bernoulli" else Multinomial(alpha)

    def rule_of(self, rule: Rule) -> Rule:
        """Pólya is what integrating out gives."""
        if self.reading != "polya":
            return rule
        if rule in ("ml", "map"):
            raise HyperparameterError(
                f"a Pólya reading integrates the probabilities out, which rule {rule!r} does not. Use rule 'mean'."
            )
        return "predictive"

    def estimate(self, stats: TextStats, rule: Rule) -> TextDensity:
        """The density of documents; its logarithms are taken when they are first needed."""
        classes: Any = stats.labels["class"]
        require_words(stats.labels["word"])
        reading = self.rule_of(rule)
        if rule == "ml":
            weight = stats.rows if self.reading == "bernoulli" else stats.counts.sum(axis=1)
            require_rows(weight, classes, "Text")
        length = np.divide(stats.tokens, stats.rows, out=np.zeros(len(stats.rows)), where=stats.rows > 0)

        def make() -> tuple[Axis, Any]:
            axis, sums = self.readable(stats)
            return axis, self.family(axis.size).estimate(sums, reading)  # type: ignore[arg-type]

        density = TextDensity.later(self, length, make)
        if rule == "map":
            _ = density.inner  # a mode that does not exist is refused now
        return density

    def leave_one_out(self, stats: TextStats, X: TextRows, members: Members, rule: Rule, density=None) -> Array:
        """Only the row's own words move, and leave where nobody else has them."""
        alike = LeaveOneOut(self, stats, X, members, rule)
        at_hand = X.samples or stats.counts.size <= LARGE  # what was counted ahead is not counted by parts
        return alike(self) if at_hand else alike.in_parts(PART)

    def left_out_scores(self, stats: TextStats, X: TextRows, members: Members, rule: Rule) -> LeaveOneOut:
        """Which words move and leave is found once."""
        return LeaveOneOut(self, stats, X, members, rule)

    def draw(self, stats, rng):
        axis, sums = self.readable(stats)
        return TextDensity(self, self.estimate(stats, "mean").length, axis, self.family(axis.size).draw(sums, rng))
