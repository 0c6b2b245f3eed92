"""Drop-in classes: scikit-learn's own names and arguments on deciban's kernels. Changing one import is enough.

from deciban.sklearn import CountVectorizer
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import scipy.sparse as sp
import sklearn.feature_extraction.text as sklearn_text

from deciban.errors import DecibanError
from deciban.text.counting import count_rows
from deciban.text.documents import Documents, is_large
from deciban.text.tokens import TWO_OR_MORE, Tokens
from deciban.text.vocabulary import Vocabulary, text_array

# Methods of scikit-learn that a subclass may override; the kernels count only where none is overridden.
_STEPS = ("decode", "build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words", "_word_ngrams")


class _Terms:
    """Terms in the order of their columns, and on demand scikit-learn's dictionary of them.

    A dictionary of millions of terms takes longer to build than to count them, and `transform` does not need it.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.columns: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.vocabulary if self.columns is None else self.columns)

    def dictionary(self) -> dict[str, int]:
        """Column of each term, built on first use; the caller may change it."""
        if self.columns is None:
            # A dictionary that once held a key that is no text does not check that all keys are texts while it grows,
            # which saves a fifth of the time for millions of terms.
            columns: dict[Any, int] = {None: 0}
            columns.update(zip(self.vocabulary, range(len(self.vocabulary))))
            del columns[None]
            self.columns = columns
        return self.columns


class CountVectorizer(sklearn_text.CountVectorizer):
    r"""Count terms of texts as scikit-learn's `CountVectorizer` does, many times faster.

    Arguments, attributes and results are those of scikit-learn. Callable analyzers, preprocessors and tokenizers, other
    token patterns than the default, overridden methods and small inputs are left to scikit-learn. Documents may also be
    given as Arrow columns.

    Parameters
    ----------
    input : {"filename", "file", "content"}, default="content"
        What the documents are; only "content" is counted by the kernels.
    encoding : str, default="utf-8"
        Encoding of documents given as bytes.
    decode_error : {"strict", "ignore", "replace"}, default="strict"
        What to do with bytes that cannot be decoded.
    strip_accents : {"ascii", "unicode"} or callable, default=None
        How accents are removed.
    lowercase : bool, default=True
        Whether texts are converted to lower case.
    preprocessor, tokenizer : callable, default=None
        Replacements of these steps.
    stop_words : {"english"} or list of str, default=None
        Words to leave out.
    token_pattern : str, default="(?u)\b\w\w+\b"
        What a token is.
    ngram_range : (int, int), default=(1, 1)
        Least and greatest length of n-grams.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        Whether n-grams are of words or of characters.
    max_df, min_df : float or int, default=1.0 and 1
        Greatest and least share or number of documents of a term.
    max_features : int, default=None
        Number of most frequent terms to keep.
    vocabulary : mapping or iterable, default=None
        Terms to count, all that occur if not given.
    binary : bool, default=False
        Whether counts above 0 are 1.
    dtype : dtype, default=np.int64
        Type of the counts.

    Attributes
    ----------
    vocabulary_ : dict of {str: int}
        Column of each term.
    fixed_vocabulary_ : bool
        Whether the vocabulary was given.

    Examples
    --------
    >>> vectorizer = CountVectorizer(ngram_range=(1, 2))
    >>> vectorizer.fit_transform(["to be or", "not to be"]).toarray()
    array([[1, 1, 0, 0, 1, 1, 1],
           [1, 0, 1, 1, 0, 1, 1]])
    >>> vectorizer.get_feature_names_out().tolist()
    ['be', 'be or', 'not', 'not to', 'or', 'to', 'to be']
    """

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each term."""
        try:
            terms = self._vocabulary
        except AttributeError:
            raise AttributeError("vocabulary_: not fitted, and no vocabulary provided") from None
        return terms.dictionary() if isinstance(terms, _Terms) else terms

    @vocabulary_.setter
    def vocabulary_(self, vocabulary: dict[str, int] | _Terms) -> None:
        self._vocabulary = vocabulary

    @vocabulary_.deleter
    def vocabulary_(self) -> None:
        del self._vocabulary

    def _check_vocabulary(self) -> None:
        if not isinstance(getattr(self, "_vocabulary", None), _Terms) or not len(self._vocabulary):
            super()._check_vocabulary()

    def _fitted_vocabulary(self) -> Vocabulary | None:
        """The fitted terms for the kernels; None if one of them is not a text."""
        terms = self._vocabulary
        if isinstance(terms, _Terms) and terms.columns is None:
            return terms.vocabulary
        names = sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)
        return Vocabulary(text_array(names), "learnt") if all(isinstance(name, str) for name in names) else None

    def _count_vocab(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any]:
        if not hasattr(raw_documents, "__arrow_c_stream__") and not hasattr(raw_documents, "__arrow_c_array__"):
            raw_documents = raw_documents if isinstance(raw_documents, list) else list(raw_documents)
        try:
            counted = self._count_by_kernels(raw_documents, fixed_vocab)
        except DecibanError:
            counted = None  # scikit-learn raises its own error, or accepts text that is not valid Unicode
        if counted is not None:
            return counted
        vocabulary, X = super()._count_vocab(_iterable(raw_documents), fixed_vocab)
        if not fixed_vocab:
            X = super()._sort_features(X, vocabulary)
            X.sort_indices()
        return vocabulary, X

    def _count_by_kernels(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any] | None:
        """Vocabulary and counts, as `_count_vocab` returns them; None where scikit-learn should count."""
        tokens = self._kernel_tokens()
        if tokens is None or self.input != "content":
            return None
        documents = Documents.of(raw_documents, self.encoding, self.decode_error)
        given = None
        if fixed_vocab:
            given = self._fitted_vocabulary() if is_large(documents, len(self._vocabulary)) else None
            if given is None:
                return None
        elif not is_large(documents):
            return None
        self.build_analyzer()  # for its warning of stop words that no token can equal
        X, found = count_rows(documents, tokens, given)
        vocabulary = self._vocabulary if fixed_vocab else _Terms(found)
        return vocabulary, _sklearn_sparse(X.astype(self.dtype, copy=False))

    def _kernel_tokens(self) -> Tokens | None:
        """These options as the kernels take them; None if they do not have them."""
        own = all(getattr(type(self), step) is getattr(sklearn_text.CountVectorizer, step) for step in _STEPS)
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

    def _sort_features(self, X: Any, vocabulary: dict[str, int] | _Terms) -> Any:
        """Convert columns to Python integers; terms are sorted already."""
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
        self,
        X: Any,
        vocabulary: dict[str, int] | _Terms,
        high: float | None = None,
        low: float | None = None,
        limit: int | None = None,
    ) -> Any:
        # every term is in at least one document, and at most in all
        if limit is None and (low is None or low <= 1) and (high is None or high >= X.shape[0]):
            return X
        terms = vocabulary.dictionary() if isinstance(vocabulary, _Terms) else vocabulary
        return super()._limit_features(X, terms, high, low, limit)


def _iterable(raw_documents: Iterable[Any]) -> Iterable[Any]:
    """Documents as scikit-learn iterates over them: a list, or an Arrow column as a list of texts."""
    if isinstance(raw_documents, list):
        return raw_documents
    texts = Documents.of(raw_documents).texts
    return texts if isinstance(texts, list) else texts.to_pylist()


def _sklearn_sparse(X: sp.csr_array) -> Any:
    """A sparse array or matrix, as this version of scikit-learn returns it."""
    align = getattr(sklearn_text, "_align_api_if_sparse", sp.csr_matrix)
    X = align(X)
    X.has_sorted_indices = X.has_canonical_format = True
    return X
