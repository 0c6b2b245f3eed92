"""Drop-in classes: scikit-learn's own names and arguments on deciban's kernels. Changing one import is enough.

from deciban.sklearn import CountVectorizer
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import sklearn.feature_extraction.text as theirs

from deciban.errors import DecibanError
from deciban.text.counting import count_rows
from deciban.text.documents import Documents
from deciban.text.reading import is_large
from deciban.text.tokens import TWO_OR_MORE, Tokens
from deciban.text.vocabulary import Vocabulary, text_array

# What somebody may have put in the place of scikit-learn's own: then that is what must run.
_STEPS = ("decode", "build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words", "_word_ngrams")


class _Terms:
    """Terms in order of their columns; the dictionary that scikit-learn has for them, once somebody wants it.

    Millions of terms take longer to put into a dictionary than to count, and `transform` can do without.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.columns: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.vocabulary if self.columns is None else self.columns)

    def dictionary(self) -> dict[str, int]:
        if self.columns is None:
            # What has held a key that is no text keeps hashes beside keys, and grows without a look at all the texts:
            # a fifth of the time of a dictionary of millions.
            columns: dict[Any, int] = {None: 0}
            columns.update(zip(self.vocabulary, range(len(self.vocabulary))))
            del columns[None]
            self.columns = columns
        return self.columns


class CountVectorizer(theirs.CountVectorizer):
    """scikit-learn's `CountVectorizer`: the same arguments, attributes and answers, many times faster.

    Callables, token patterns of one's own and small inputs are left to scikit-learn. Arrow columns may be given, too.

    >>> vectorizer = CountVectorizer(ngram_range=(1, 2))
    >>> vectorizer.fit_transform(["to be or", "not to be"]).toarray()
    array([[1, 1, 0, 0, 1, 1, 1],
           [1, 0, 1, 1, 0, 1, 1]])
    >>> vectorizer.get_feature_names_out().tolist()
    ['be', 'be or', 'not', 'not to', 'or', 'to', 'to be']
    """

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Terms and their columns."""
        try:
            terms = self._vocabulary
        except AttributeError:
            raise AttributeError("vocabulary_: not fitted, and no vocabulary provided") from None
        return terms.dictionary() if isinstance(terms, _Terms) else terms

    @vocabulary_.setter
    def vocabulary_(self, vocabulary: Any) -> None:
        self._vocabulary = vocabulary

    @vocabulary_.deleter
    def vocabulary_(self) -> None:
        del self._vocabulary

    def _check_vocabulary(self) -> None:
        if not isinstance(getattr(self, "_vocabulary", None), _Terms) or not len(self._vocabulary):
            super()._check_vocabulary()

    def _known(self) -> Vocabulary | None:
        """The fitted terms as kernels take them; None where there are other things than texts among them."""
        terms = self._vocabulary
        if isinstance(terms, _Terms) and terms.columns is None:
            return terms.vocabulary
        names = sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)
        return Vocabulary(text_array(names), "learnt") if all(isinstance(name, str) for name in names) else None

    def _count_vocab(self, raw_documents: Any, fixed_vocab: bool) -> tuple[Any, Any]:
        if not hasattr(raw_documents, "__arrow_c_stream__") and not hasattr(raw_documents, "__arrow_c_array__"):
            raw_documents = raw_documents if isinstance(raw_documents, list) else list(raw_documents)
        try:
            counted = self._counted(raw_documents, fixed_vocab)
        except DecibanError:
            counted = None  # scikit-learn has its own words for it, and takes texts that are not quite Unicode
        if counted is not None:
            return counted
        vocabulary, X = super()._count_vocab(_plain(raw_documents), fixed_vocab)
        if not fixed_vocab:
            X = super()._sort_features(X, vocabulary)
            X.sort_indices()
        return vocabulary, X

    def _counted(self, raw_documents: Any, fixed_vocab: bool) -> tuple[Any, Any] | None:
        """What the kernels count; None where scikit-learn should."""
        tokens = self._tokens()
        if tokens is None or self.input != "content":
            return None
        documents = Documents.of(raw_documents, self.encoding, self.decode_error)
        given = None
        if fixed_vocab:
            given = self._known() if is_large(documents, len(self._vocabulary)) else None
            if given is None:
                return None
        elif not is_large(documents):
            return None
        self.build_analyzer()  # warns of stop words that no token can equal
        X, found = count_rows(documents, tokens, given)
        vocabulary = self._vocabulary if fixed_vocab else _Terms(found)
        return vocabulary, _as_theirs(X.astype(self.dtype, copy=False))

    def _tokens(self) -> Tokens | None:
        """These options, if the kernels have them."""
        own = all(getattr(type(self), step) is getattr(theirs.CountVectorizer, step) for step in _STEPS)
        low, _ = self.ngram_range
        if not own or callable(self.analyzer) or low < 1 or self.preprocessor is not None:
            return None
        if self.strip_accents not in (None, "unicode", "ascii"):
            return None
        options: dict[str, Any] = {
            "ngrams": self.ngram_range,
            "lowercase": bool(self.lowercase),
            "strip_accents": self.strip_accents,
        }
        if self.analyzer in ("char", "char_wb"):
            return Tokens(self.analyzer, **options)
        if self.analyzer != "word" or self.tokenizer is not None or self.token_pattern != TWO_OR_MORE:
            return None
        return Tokens(stop_words=self.get_stop_words(), **options)

    def _sort_features(self, X: Any, vocabulary: Any) -> Any:
        """Nothing to do but to keep columns plain integers: terms are in order from the beginning."""
        if isinstance(vocabulary, _Terms):
            if vocabulary.columns is None:
                return X
            vocabulary = vocabulary.columns
        for term, column in vocabulary.items():
            if type(column) is int:
                break
            vocabulary[term] = int(column)
        return X

    def _limit_features(
        self, X: Any, vocabulary: Any, high: Any = None, low: Any = None, limit: int | None = None
    ) -> Any:
        # Every term is in one document at least, and in all at most.
        if limit is None and (low is None or low <= 1) and (high is None or high >= X.shape[0]):
            return X
        terms = vocabulary.dictionary() if isinstance(vocabulary, _Terms) else vocabulary
        return super()._limit_features(X, terms, high, low, limit)


def _plain(raw_documents: Any) -> Any:
    """Documents that can be iterated as texts."""
    if isinstance(raw_documents, list):
        return raw_documents
    texts = Documents.of(raw_documents).texts
    return texts if isinstance(texts, list) else texts.to_pylist()


def _as_theirs(X: sp.csr_array) -> Any:
    """An array or a matrix, whichever this version of scikit-learn gives."""
    align = getattr(theirs, "_align_api_if_sparse", sp.csr_matrix)
    X = align(X)
    X.has_sorted_indices = X.has_canonical_format = True
    return X
