"""Text: a document is counts of words, which a family of counts reads.

    multinomial   words drawn independently from the distribution of the class
    polya         the same with the distribution integrated out: a word's second occurrence is less surprising
    bernoulli     each word of the vocabulary is present or absent, and absence is evidence too

The density is that of a document's words in their order, given their number; it is the same for all orders, so there is
no multinomial coefficient.

Reference: McCallum and Nigam, A comparison of event models for naive Bayes text classification, 1998.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from deciban.errors import HyperparameterError, InputError, shortlist
from deciban.families.abilities import RunningSums
from deciban.families.dirichlet import check_strength
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Density, Family, Rule, require_rows
from deciban.statistics import Array, Members
from deciban.statistics.changed_columns import ChangedColumns
from deciban.text.candidates import FoldedWords, candidate_lines, usual_choices, with_idf, with_words
from deciban.text.counting import TextRows, count_classes
from deciban.text.density import LogTable, TextDensity, WordCells
from deciban.text.leave_one_out import LeaveOneOut
from deciban.text.stats import (
    UNK,
    CountAccumulator,
    Idf,
    Kind,
    TermAccumulator,
    Terms,
    TextStats,
    base_measure,
    count_family,
    documents_of_words,
    idf_of,
    require_words,
    rule_of,
    text_stats,
    vocabulary_along,
    word_sums,
    word_totals,
)
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits, Vocabulary
from deciban.text.word_evidence import LeftOutWords, by_word

READINGS = ("multinomial", "bernoulli", "polya")
BASES = ("flat", "pooled", "auto")
IN_SUMS = ("transform", "unit", "ngrams", "min_df", "words", "idf")  # hyper-parameters on which the sums depend


@dataclass(frozen=True, eq=False, repr=False)
class Text(Family[TextStats]):
    r"""Documents as counts of words: a list, or a column, of texts.

    Options that are "auto" are chosen at the first fit of a classifier, by leave-one-out log loss after calibration.

    Parameters
    ----------
    reading : {"multinomial", "bernoulli", "polya"}, default="multinomial"
        Distribution of a document's counts.
    transform : str, default="auto"
        What a word counts that occurs x times: "counts" (x), "binary" (1) or "log" (log(1 + x)); with "+idf" times its
        inverse document frequency, with "+unit" divided by the document's Euclidean length, as in "log+idf+unit".
    pseudo_count : float, "auto", "evidence" or "loo", default="auto"
        Prior count of every word. "evidence" and "loo" compute it from the present sums: by their marginal likelihood,
        or by leaving out each count.
    ngrams : tuple of (int, int) or "auto", default=(1, 1)
        Fewest and most words (or characters) in a run. With "auto", pairs of words are counted if they help.
    unit : {"auto", "word", "char", "char_wb"}, default="auto"
        Features are runs of words, of characters, or of characters within words. With "auto", they are words, or, if
        the documents are short and this predicts their labels better, runs of 2 to 4 characters within words, or pairs
        of words (from 1,000 documents); words if `pseudo_count`, `ngrams`, or an option about words is given.
    lowercase : bool, default=True
        Whether to convert to lower case.
    strip_accents : {"unicode", "ascii"} or None, default=None
        Whether to remove accents, or everything that is not ASCII.
    stop_words : str, iterable of str or None, default=None
        Words to ignore: a list, or a language such as "english".
    stem : str or None, default=None
        Language whose Snowball stemmer is applied to words.
    pattern : str or None, default=None
        Regular expression of a word, such as r"(?u)\b\w\w+\b", that of scikit-learn's vectorizers. None finds words by
        their script: runs of two or more letters and digits; single characters of scripts in which they may be words,
        such as Korean; emoji; and overlapping pairs of characters in scripts without spaces, such as Chinese.
    analyser : callable or None, default=None
        Function from a text to its features, instead of all options about words above.
    vocabulary : {"learnt", "growing"} or iterable of str, default="learnt"
        "learnt" and "growing" take the words of every document learnt; a list is fixed. Words
        outside a learnt vocabulary are not counted, those outside a growing or given one as the word <unk>.
    min_df, max_df : int or float, default=1, 1.0
        Fewest and most documents that a word of a learnt vocabulary is in; a share of them if not an integer. The
        words that are left at the first fit are kept; documents learnt later add none.
    most : int or None, default=None
        Largest number of words of a learnt vocabulary; other words are counted as <unk>.
    by : {"frequency", "information"}, default="frequency"
        Which words are kept by `most`: the most frequent, or those with the most information about the class.
    unk : float or None, default=None
        Pseudo-count of <unk>; that of all other words if None.
    words : tuple of str or None, default=None
        Vocabulary that `min_df`, `max_df` and `most` left at the first fit.
    idf : Idf or None, default=None
        Inverse document frequencies. If None, they follow from the learnt documents; with "+unit" they are those of the
        first fit.
    base : {"flat", "pooled", "auto"}, default="auto"
        How pseudo-counts are spread over words: evenly, or in proportion to the frequencies of the words in all
        classes together, with `pseudo_count` as their mean. "auto" chooses if `pseudo_count` is "auto", and is flat
        otherwise.

    Attributes
    ----------
    tokens : Tokens
        The options about words.
    terms : Terms
        The transform; plain counts as long as it is not chosen.
    limits : Limits
        The limits of a learnt vocabulary.
    kind : {"learnt", "growing", "given"}
        Where the words come from; a capped vocabulary is "given".
    fixed_vocabulary : Vocabulary or None
        The words, where they are given or were frozen at the first fit.

    Examples
    --------
    >>> spam, ham = ["free prize", "win a free prize"], ["see you at lunch", "lunch at noon"]
    >>> from deciban import GenerativeClassifier
    >>> clf = GenerativeClassifier(Text(pseudo_count=1, transform="counts")).fit(spam + ham, ["spam"] * 2 + ["ham"] * 2)
    >>> clf.predict(["another free prize", "lunch at noon"])
    array(['spam', 'ham'], dtype='<U4')
    """

    reading: Literal["multinomial", "bernoulli", "polya"] = "multinomial"
    transform: str = "auto"
    pseudo_count: float | str = "auto"
    _: KW_ONLY
    ngrams: tuple[int, int] | str = (1, 1)
    unit: str = "auto"
    lowercase: bool = True
    strip_accents: str | None = None
    stop_words: str | Iterable[str] | None = None
    stem: str | None = None
    pattern: str | None = None
    analyser: Callable[[str], Iterable[str]] | None = None
    vocabulary: str | Iterable[str] = "learnt"
    min_df: float = 1
    max_df: float = 1.0
    most: int | None = None
    by: Literal["frequency", "information"] = "frequency"
    unk: float | None = None
    words: tuple[str, ...] | None = None
    idf: Idf | None = None
    base: Literal["flat", "pooled", "auto"] = "auto"

    # set at construction, from the options above
    tokens: ClassVar[Tokens]
    terms: ClassVar[Terms]
    limits: ClassVar[Limits]
    kind: ClassVar[Kind]
    fixed_vocabulary: ClassVar[Vocabulary | None]

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"gaps", "text"})

    def __post_init__(self) -> None:
        for name in ("stop_words", "vocabulary", "ngrams"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, tuple(sorted(value) if name == "stop_words" else value))
        if self.base == "auto" and self.pseudo_count != "auto":
            object.__setattr__(self, "base", "flat")
        _check_options(self)
        if self.unit == "auto" and not _may_choose_unit(self):
            object.__setattr__(self, "unit", "word")
        given = isinstance(self.vocabulary, tuple)
        kind = "given" if given or self.most is not None else self.vocabulary
        words, fixed = self.vocabulary if given else self.words, None
        if words is not None:
            fixed = Vocabulary.of(words, "learnt" if kind == "learnt" else "given")
            if given:
                _check_given(fixed)
        limits = Limits(self.min_df, self.max_df, self.most, self.by)
        derived = {"tokens": _tokens(self), "limits": limits, "terms": _terms(self), "kind": kind}
        for name, value in (*derived.items(), ("fixed_vocabulary", fixed)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Show the options that differ from their default, and not what was frozen."""
        hidden = {"_", "words", "idf", *(["base"] if self.base == "flat" else [])}
        shown = [f for f in fields(self) if f.name not in hidden]
        set_ = [(f.name, getattr(self, f.name)) for f in shown if getattr(self, f.name) != f.default]
        return f"Text({', '.join(f'{name}={_shown(value)}' for name, value in set_)})"

    # -- rows ----------------------------------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: TextStats | None = None) -> TextRows:
        return TextRows.of(X)  # documents are counted when they are summed or scored

    def check(self, X: TextRows, columns: Sequence[str], learning: bool = False) -> None:
        pass  # documents are checked while they are read

    def lengths(self, X: TextRows) -> Array:
        """Return the number of words of each document, in the vocabulary or not.

        Parameters
        ----------
        X : TextRows
            Encoded documents.

        Returns
        -------
        ndarray of shape (n,)
            Numbers of words; 0 for missing documents.
        """
        return X.lengths(self.tokens)

    # -- sums ----------------------------------------------------------------------------------------------------------
    def collect(self, X: TextRows, members: Members) -> TextStats:
        # one pass over the text, unless the documents were counted before
        X, members = X.with_members(members)
        if self._adds_counts and members.codes is not None and members.weight is None:
            done = X.already_counted(self.tokens)
            if len(X) <= 2 * len(done) < 2 * len(X):
                new = np.delete(np.arange(len(X)), done)
                return self._collect(X[done], members.take(done)) + self._collect(X[new], members.take(new))
        return self._collect(X, members)

    def _collect(self, X: TextRows, members: Members) -> TextStats:
        known = self.fixed_vocabulary
        one_pass, documents = members.codes is not None and not X.counted(self.tokens) and self._adds_counts, None
        if one_pass:
            args, w = (X.documents, members.codes, members.K, self.tokens, known), members.weight
            found = count_classes(*args, weight=w, steps=self.terms.steps)
            if w is None:  # documents of weight 0 are not read
                X.counts.keep_lengths(self.tokens, X.at, found.lengths)
            vocabulary, counts, lengths = found.vocabulary, found.counts, found.lengths
        else:
            done = X.count(self.tokens) if known is None else X.count_by(known, self.tokens)
            vocabulary, lengths = done.vocabulary, done.lengths
            if self.terms.unit:
                counts = members.total(self.terms.rows(done.matrix, idf_of(self, done.vocabulary)))
            else:
                amounts = self.terms.amounts(int(done.matrix.data.max(initial=0)))
                counts = members.total(done.matrix, amounts)
            if self._sums_documents:
                documents = members.total(Terms("binary").rows(done.matrix, None))
        tokens = members.total(lengths[:, None].astype(float))[:, 0]
        stats = text_stats(self, members.classes, vocabulary, counts, members.weights(), tokens, documents)
        return stats if one_pass and known is None else stats.pruned()

    @property
    def _adds_counts(self) -> bool:
        """Whether the sums of a document are those of its words, each by itself."""
        return not (self.terms.unit or self._sums_documents)

    def accumulator(self, X: TextRows, members: Members, columns: Sequence[Any]) -> RunningSums:
        """Start the sums of a stream with its first rows.

        Parameters
        ----------
        X : TextRows
            Encoded documents.
        members : Members
            Their classes.
        columns : sequence of str
            Name of the column.

        Returns
        -------
        RunningSums
            Sums that grow in place.
        """
        if self.terms.unit or self._sums_documents:
            return TermAccumulator(self, X, members, columns)
        return CountAccumulator(self, X, members)

    # -- densities -----------------------------------------------------------------------------------------------------
    def estimate(self, stats: TextStats, rule: Rule) -> TextDensity:
        # the logarithms of the words are taken at their first use
        classes: Any = stats.labels["class"]
        require_words(stats)
        inner_rule = rule_of(self, rule)
        if rule == "ml":
            weight = stats.rows if self.reading == "bernoulli" else stats.counts.sum(axis=1)
            require_rows(weight, classes, "Text")

        text = self._with_idf(stats)

        def make() -> WordCells:
            words = word_sums(text, stats)
            family = count_family(text.resolve(stats), words.sums)
            if isinstance(family, Multinomial) and inner_rule in ("mean", "ml"):
                table = words.sums.table
                counts = table if isinstance(table, ChangedColumns) else None
                cells = family.probabilities(words.sums, inner_rule, counts)  # type: ignore[arg-type]
                return WordCells(words.axis, cells.density, cells)
            return WordCells(words.axis, lambda: family.estimate(words.sums, inner_rule))  # type: ignore[arg-type]

        table = LogTable(make)
        if rule == "map":
            table.made()  # refuses a mode that does not exist
        return TextDensity(text, _mean_lengths(stats), table=table)

    def draw(self, stats: TextStats, rng: np.random.Generator, times: int = 1) -> TextDensity:
        """Draw the probabilities of the words from their posterior.

        Parameters
        ----------
        stats : TextStats
            The sums.
        rng : numpy.random.Generator
            Source of random numbers.
        times : int, default=1
            Number of independent draws.

        Returns
        -------
        TextDensity
            The density with these probabilities: K × times classes, those of the first draw first.
        """
        text = self.resolve(stats)
        words = word_sums(text, stats)
        inner = count_family(text, words.sums).draw(words.sums, rng, times)  # type: ignore[arg-type]
        return TextDensity(text, np.concatenate([_mean_lengths(stats)] * times), words.axis, inner)

    def leave_one_out(
        self, stats: TextStats, X: TextRows, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        # a document's own words lose its counts, and leave the vocabulary if no other document has them
        text = self.resolve(stats)
        return LeaveOneOut(text, stats, X, members, rule).all_scores(text)

    def left_out_words(self, stats: TextStats, X: TextRows, members: Members, rule: Rule) -> LeftOutWords | None:
        """Return the source of leave-one-out scores, from which evidence word by word can be had.

        Parameters
        ----------
        stats : TextStats
            The sums.
        X : TextRows
            Encoded documents that were learnt.
        members : Members
            Their classes.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the posterior.

        Returns
        -------
        LeftOutWords or None
            The source; None where scores are not sums over words with a probability each.
        """
        return LeftOutWords(self.resolve(stats), stats, X, members, rule) if by_word(self, rule) else None

    def folded_words(self, stats: TextStats | None, X: TextRows, members: Members, rule: Rule) -> FoldedWords | None:
        """Return the source of scores of documents in folds, by sums without the fold.

        Parameters
        ----------
        stats : TextStats or None
            The sums of a model; None for those of these documents.
        X : TextRows
            Encoded documents that were learnt.
        members : Members
            Their classes.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the posterior.

        Returns
        -------
        FoldedWords or None
            The source; None where scores are not sums over words with a probability each, or words or their amounts
            were fixed.
        """
        fixed = self.kind != "learnt" or self.fixed_vocabulary is not None or isinstance(self.pseudo_count, str)
        if fixed or self.terms.idf or self.terms.unit or members.codes is None or not by_word(self, rule):
            return None
        return FoldedWords.of(self, stats, X, members, rule)

    # -- choices -------------------------------------------------------------------------------------------------------
    @property
    def open(self) -> bool:
        """Whether there are choices to make from the first documents before any are summed."""
        asked = self.pseudo_count == "auto" or self.ngrams == "auto" or self.unit == "auto"
        asked = asked or (self.transform == "auto" and self.reading != "bernoulli")
        return asked or self._open_words or (self.terms.idf and self.terms.unit and self.idf is None)

    @property
    def derives_idf(self) -> bool:
        """Whether the inverse document frequencies follow from the sums."""
        return self.terms.idf and not self.terms.unit and (self.idf is None or self.idf.derived)

    @property
    def _sums_documents(self) -> bool:
        return self.derives_idf and self.terms.amount != "binary"  # the sums of binary terms are documents

    @property
    def _open_words(self) -> bool:
        return self.fixed_vocabulary is None and not self.limits.none

    @property
    def calibration(self) -> str:
        """Method of calibration: "features" is by word and length, "length" by the length of the document alone."""
        return "features" if self.reading == "multinomial" else "length"

    @property
    def not_mixable(self) -> str:
        """Why the family cannot be a mixture component, and what to do instead."""
        return (
            "every iteration would read the documents again. Count words once, with deciban.sklearn.CountVectorizer, "
            "and mix the counts: Mixture(Multinomial(), 2)."
        )

    def candidates(self, X: TextRows, members: Members) -> list[list[Text]]:
        """Return the candidates among which labels choose.

        Parameters
        ----------
        X : TextRows
            The first documents.
        members : Members
            Their classes.

        Returns
        -------
        list of list of Text
            Candidates that differ in the pseudo-count, for each transform and each length of runs.
        """
        return candidate_lines(self, X, members)

    def without_labels(self, X: TextRows, members: Members) -> Text:
        """Return the usual choices for a fit without labels: words, counts, and a pseudo-count of 1.

        Parameters
        ----------
        X : TextRows
            The first documents.
        members : Members
            Their groups.

        Returns
        -------
        Text
            The family with every choice made.
        """
        return with_idf(with_words(usual_choices(self), X, members), X, members)

    def read(self, X: TextRows) -> None:
        """Count documents once, for their sums and for the scores that follow.

        Parameters
        ----------
        X : TextRows
            Documents.
        """
        X.count(self.tokens)

    def same_sums(self, other: Text) -> bool:
        """Return whether another family collects the same statistics.

        Parameters
        ----------
        other : Text
            Another candidate.

        Returns
        -------
        bool
            Whether both can read the same sums.
        """
        return all(getattr(self, name) == getattr(other, name) for name in IN_SUMS)

    def same_features(self, other: Text) -> bool:
        """Return whether another family counts the same features.

        Parameters
        ----------
        other : Text
            Another candidate.

        Returns
        -------
        bool
            Whether both find the same words, or runs, in a document.
        """
        return self.tokens == other.tokens

    def left_out_scores(self, stats: TextStats | None, X: TextRows, members: Members, rule: Rule) -> LeaveOneOut:
        """Return a function that scores learnt documents by candidates that differ in the pseudo-count alone.

        Parameters
        ----------
        stats : TextStats or None
            The sums; None to count and sum the documents here, and to keep their counts.
        X : TextRows
            Encoded documents.
        members : Members
            Their classes.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the posterior.

        Returns
        -------
        LeaveOneOut
            Function of a candidate and row numbers: leave-one-out scores of these documents, shape (m, K).
        """
        if stats is None:
            X.count(self.tokens)  # once, for the sums and for all scores
            stats = self.collect(X, members)
        return LeaveOneOut(self, stats, X, members, rule)

    def choose(self, stats: TextStats, rows: tuple[TextRows, Members] | None = None, rule: Rule = "mean") -> Text:
        # candidates were compared by labels before rows are summed; choices that are still open take their usual values
        if not self.open:
            return self
        return usual_choices(self) if rows is None else self.without_labels(*rows)

    def resolve(self, stats: TextStats) -> Text:
        text = self._with_idf(stats)
        if self.pseudo_count not in ("evidence", "loo"):
            return text
        sums = word_sums(text, stats).sums
        V = sums.counts.shape[1]
        base = base_measure(word_totals(sums)) / V if self.base == "pooled" else None
        found: Any = Multinomial(self.pseudo_count, base=base).resolve(sums).pseudo_count  # type: ignore[arg-type]
        return replace(text, pseudo_count=found if base is None else found / V)  # their mean

    def _with_idf(self, stats: TextStats) -> Text:
        """Return the family with the idf that follows from the sums, if it does."""
        documents = documents_of_words(self, stats) if self.derives_idf and self.idf is None else None
        if documents is None:
            return self
        vocabulary = vocabulary_along(self, stats.labels["word"])  # type: ignore[arg-type]
        found = Idf.of(vocabulary, documents[: len(vocabulary)], float(stats.rows.sum()), derived=True)
        return replace(self, idf=found)

    def chosen_by_labels(self) -> list[str]:
        """Return the choices that labels make, by the log loss of the label.

        Returns
        -------
        list of str
            Their names.
        """
        names = {
            "transform": "transform",
            "pseudo_count": "pseudo-count",
            "ngrams": "runs of words",
            "unit": "words or characters",
        }
        return [said for name, said in names.items() if getattr(self, name) == "auto"]

    @property
    def shared(self) -> bool:
        """Whether a document changes the densities of other classes, through pooled pseudo-counts."""
        return self.base == "pooled"

    def keep_choices(self, chosen: Text, with_rows: bool) -> Text:
        """Copy the choices that cannot be made again: those under which the sums were collected.

        Parameters
        ----------
        chosen : Text
            The family with its choices made.
        with_rows : bool
            Whether rows are there to choose by; without them, a pseudo-count that labels chose is copied too.

        Returns
        -------
        Text
            This family with these choices.
        """
        kept = {name: getattr(chosen, name) for name in IN_SUMS}
        if not with_rows and self.pseudo_count == "auto":
            kept |= {"pseudo_count": chosen.pseudo_count, "base": chosen.base}
        return replace(self, **kept)


def _mean_lengths(stats: TextStats) -> Array:
    return np.divide(stats.tokens, stats.rows, out=np.zeros(len(stats.rows)), where=stats.rows > 0)


# -- options -----------------------------------------------------------------------------------------------------------
def _tokens(text: Text) -> Tokens:
    return Tokens(
        "word" if text.unit == "auto" else text.unit,  # type: ignore[arg-type]
        (1, 1) if isinstance(text.ngrams, str) else text.ngrams,
        text.lowercase,
        text.strip_accents,  # type: ignore[arg-type]
        text.stop_words,
        text.stem,
        text.pattern,
        text.analyser,
    )


def _may_choose_unit(text: Text) -> bool:
    """Whether labels may choose between words and characters: no option is given that decides it."""
    words = (text.stop_words, text.stem, text.pattern, text.analyser, text.words, text.idf, text.most)
    plain = all(option is None for option in words) and text.vocabulary == "learnt" and text.min_df in (0, 1)
    labels_choose = text.pseudo_count == "auto" and text.reading == "multinomial" and text.transform == "auto"
    return labels_choose and plain and text.max_df == 1.0 and text.ngrams in ((1, 1), "auto")


def _terms(text: Text) -> Terms:
    if text.reading == "bernoulli":
        return Terms("binary")
    return Terms() if text.transform == "auto" else Terms.of(text.transform)


def _check_options(text: Text) -> None:
    """Refuse options that do not exist, or do not go together."""
    if text.reading not in READINGS:
        raise HyperparameterError(f"reading={text.reading!r} must be one of {', '.join(READINGS)}.")
    if text.transform != "auto" and text.reading == "bernoulli" and Terms.of(text.transform) != Terms("binary"):
        raise HyperparameterError(
            f"transform={text.transform!r}: a Bernoulli reading counts presence alone. Use 'binary'."
        )
    if text.pseudo_count != "auto":
        check_strength("Text", text.pseudo_count, None)
    if text.reading == "bernoulli" and text.pseudo_count in ("evidence", "loo"):
        raise HyperparameterError("a Bernoulli reading takes a number as pseudo_count, or 'auto'.")
    if text.unk is not None:
        check_strength("Text", text.unk, None)
    if text.base not in BASES or (text.base == "pooled" and text.reading == "bernoulli"):
        raise HyperparameterError(f"base={text.base!r} must be one of {', '.join(BASES)}, and flat for Bernoulli.")
    if isinstance(text.vocabulary, str) and text.vocabulary not in ("learnt", "growing"):
        raise HyperparameterError(f"vocabulary={text.vocabulary!r} must be 'learnt', 'growing' or a list of words.")
    limited = not (text.min_df in (0, 1) and text.max_df == 1.0 and text.most is None)
    if limited and text.vocabulary != "learnt":
        raise HyperparameterError("min_df, max_df and most are for a learnt vocabulary, not for one given or growing.")
    if isinstance(text.ngrams, str):
        if text.ngrams != "auto":
            raise HyperparameterError(f"ngrams={text.ngrams!r} must be (fewest, most) or 'auto'.")
        if text.unit not in ("auto", "word") or text.analyser is not None:
            raise HyperparameterError("ngrams='auto' is for words. Give (fewest, most) for characters.")
    elif len(text.ngrams) != 2:
        raise HyperparameterError(f"ngrams={text.ngrams} must be (fewest, most).")


def _check_given(words: Vocabulary) -> None:
    """Refuse a given vocabulary that is empty or holds <unk>."""
    if not len(words):
        raise InputError("the vocabulary that was given is empty. Give words, or vocabulary='learnt'.")
    if UNK in words:
        raise InputError(
            f"{UNK} stands for words outside the vocabulary, and has a column already. Leave it out of the list."
        )


def _shown(value: Any) -> str:
    """Return an option as text, a long list shortened."""
    return f"({shortlist(list(map(repr, value)))})" if isinstance(value, tuple) and len(value) > 2 else repr(value)
