"""Vectorizers of scikit-learn on deciban's kernels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import scipy.sparse as sp
import sklearn.feature_extraction.text as sklearn_text
from sklearn.preprocessing import normalize

from deciban.errors import DecibanError
from deciban.sklearn.dropin import ROWS, Array, DropIn, Shapes
from deciban.text.counting import count_by_arrival, count_rows
from deciban.text.documents import Documents, is_large
from deciban.text.tokens import TWO_OR_MORE, Tokens
from deciban.text.vocabulary import Vocabulary, text_array

# Methods of scikit-learn that a subclass may override; the kernels count only where none is overridden.
_STEPS = ("decode", "build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words", "_word_ngrams")


class _Terms:
    """Terms in the order of their columns, and on demand scikit-learn's dictionary of them.

    A dictionary of millions of terms takes longer to build than to count them, and `transform` does not need it.
    """

    def __init__(self, vocabulary: Vocabulary, order: Array | None = None) -> None:
        """`order` holds the columns in the order of scikit-learn's dictionary, ascending if None."""
        self.vocabulary, self.order = vocabulary, order
        self.columns: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.vocabulary if self.columns is None else self.columns)

    def dictionary(self) -> dict[str, int]:
        """Column of each term, built on first use; the caller may change it."""
        if self.columns is None:
            # CPython: while a dictionary grows that once held a key other than a str, it does not check that all keys
            # are str. This saves a fifth of the time for millions of terms.
            columns: dict[Any, int] = {None: 0}
            if self.order is None:
                columns.update(zip(self.vocabulary, range(len(self.vocabulary))))
            else:
                columns.update(zip(self.vocabulary.names.take(self.order).to_pylist(), self.order.tolist()))
            del columns[None]
            self.columns, self.order = columns, None
        return self.columns


class Tokenizes(DropIn):
    """Base class of vectorizers: options of tokens, and documents that the kernels count."""

    def _unsupported(self) -> str | None:
        return (
            "the kernels lack its options of tokens"
            if self._kernel_tokens() is None or self.input != "content"
            else None
        )

    def _documents(self, raw_documents: Iterable[Any], known: int = 0) -> Documents | None:
        """Documents for the kernels, which look up `known` terms; None if scikit-learn should count them."""
        documents = Documents.of(raw_documents, self.encoding, self.decode_error)
        large = is_large(documents, known)
        return documents if self._log(None if large else "the input is small") else None

    def _kernel_tokens(self) -> Tokens | None:
        """The options for the kernels; None if the kernels do not support them."""
        own = all(getattr(type(self), step, None) is getattr(sklearn_text.CountVectorizer, step) for step in _STEPS)
        low, high = self.ngram_range
        if not own or callable(self.analyzer) or not 1 <= low <= high or self.preprocessor is not None:
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


class CountVectorizer(Tokenizes, sklearn_text.CountVectorizer):
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
        return super()._count_vocab(_iterable(raw_documents), fixed_vocab)

    def _count_by_kernels(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any] | None:
        """Vocabulary and counts, as `_count_vocab` returns them; None where scikit-learn should count."""
        reason = self._reason()
        if reason is not None:
            self._log(reason)
            return None
        documents = self._documents(raw_documents, len(self._vocabulary) if fixed_vocab else 0)
        given = self._fitted_vocabulary() if fixed_vocab and documents is not None else None
        tokens = self._kernel_tokens()
        if tokens is None or documents is None or (fixed_vocab and given is None):
            return None
        self.build_analyzer()  # for its warning of stop words that no token can equal
        if not fixed_vocab and tokens.unit == "word":
            counted, order = count_by_arrival(documents, tokens)
            if len(order):  # scikit-learn raises its own error if there are no terms
                return _Terms(counted.vocabulary, order), _sklearn_sparse(counted.matrix, self.dtype)
        X, found = count_rows(documents, tokens, given)
        return self._vocabulary if fixed_vocab else _Terms(found), _sklearn_sparse(X, self.dtype)

    def _sort_features(self, X: Any, vocabulary: dict[str, int] | _Terms) -> Any:
        """Sort the terms that scikit-learn has counted; those of the kernels are sorted already."""
        if not isinstance(vocabulary, _Terms):
            return super()._sort_features(X, vocabulary)
        columns = vocabulary.columns or {}
        for term, column in columns.items():  # those of `_limit_features` are integers of numpy
            if type(column) is int:
                break
            columns[term] = int(column)
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


class TfidfTransformer(DropIn, sklearn_text.TfidfTransformer, auto_wrap_output_keys=None):
    """Term weights by inverse document frequency: scikit-learn's own code, whose speed is that of memory.

    Parameters
    ----------
    norm : {"l1", "l2"} or None, default="l2"
        Norm to which rows are scaled.
    use_idf : bool, default=True
        Whether counts are multiplied by the inverse document frequency.
    smooth_idf : bool, default=True
        Whether 1 is added to document frequencies.
    sublinear_tf : bool, default=False
        Whether a count is replaced by 1 + log(count).

    Examples
    --------
    >>> TfidfTransformer(norm=None).fit_transform([[1, 0], [2, 1]]).toarray().round(3)
    array([[1.   , 0.   ],
           [2.   , 1.405]])
    """

    def fitted_shapes(self) -> Shapes:
        # scikit-learn multiplies by `idf_` where it is there, also if `use_idf` was set to False after a fit
        return {**ROWS, "idf_": "D factor" if self.use_idf else "optional D factor"}

    def _unsupported(self) -> str | None:
        return "its own code is as fast"


class TfidfVectorizer(CountVectorizer, sklearn_text.TfidfVectorizer):
    r"""Weights of terms in texts as scikit-learn's `TfidfVectorizer` gives them; terms are counted by the kernels.

    All arguments are scikit-learn's. Options that `CountVectorizer` leaves to scikit-learn are left to it here, too.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, analyzer, stop_words
        As of `CountVectorizer`.
    token_pattern, ngram_range, max_df, min_df, max_features, vocabulary, binary
        As of `CountVectorizer`.
    dtype : dtype, default=np.float64
        Type of the weights.
    norm, use_idf, smooth_idf, sublinear_tf
        As of `TfidfTransformer`.

    Examples
    --------
    >>> TfidfVectorizer().fit_transform(["to be or", "not to be"]).toarray().round(3)
    array([[0.502, 0.   , 0.705, 0.502],
           [0.502, 0.705, 0.   , 0.502]])
    """

    __init__ = sklearn_text.TfidfVectorizer.__init__  # otherwise that of CountVectorizer, the first base class


class HashingVectorizer(Tokenizes, sklearn_text.HashingVectorizer, auto_wrap_output_keys=None):
    r"""Counts of hashed terms as scikit-learn's `HashingVectorizer` gives them; each different term is hashed once.

    All arguments are scikit-learn's. Options that `CountVectorizer` leaves to scikit-learn, and binary=True, are left
    to it here, too.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, stop_words, token_pattern
        As of `CountVectorizer`.
    ngram_range, analyzer
        As of `CountVectorizer`.
    n_features : int, default=2**20
        Number of columns.
    binary : bool, default=False
        Whether counts other than 0 are 1.
    norm : {"l1", "l2"} or None, default="l2"
        Norm to which rows are scaled.
    alternate_sign : bool, default=True
        Whether half of the terms are counted with a negative sign.
    dtype : dtype, default=np.float64
        Type of the counts.

    Examples
    --------
    >>> HashingVectorizer(n_features=4, norm=None).transform(["to be or not to be"]).toarray()
    array([[ 1.,  0., -2.,  3.]])
    """

    def _unsupported(self) -> str | None:
        return "binary=True" if self.binary else super()._unsupported()

    def transform(self, X: Any) -> Any:
        """Count the hashed terms of documents.

        Parameters
        ----------
        X : iterable of str or bytes
            Documents.

        Returns
        -------
        sparse matrix of shape (n_samples, n_features)
            Counts, scaled by `norm`.
        """
        reason = self._reason()
        if isinstance(X, str) or reason is not None:
            self._log(reason or "the input is one text")
            return super().transform(X)
        self._validate_ngram_range()
        X = X if isinstance(X, list) else list(X)
        try:
            documents, tokens = self._documents(X), self._kernel_tokens()
            if documents is None or tokens is None:
                return super().transform(X)
            self.build_analyzer()  # for its warning of stop words that no token can equal
            counts, found = count_rows(documents, tokens, None)
        except DecibanError:
            return super().transform(X)  # scikit-learn raises its own error, or accepts text that is not valid Unicode
        hashed = self._get_hasher().transform([term] for term in found)
        columns, signs = hashed.indices[counts.indices], hashed.data[counts.indices]
        data = (counts.data * signs).astype(self.dtype, copy=False)
        rows = sp.csr_array((data, columns, counts.indptr), shape=(counts.shape[0], self.n_features))
        rows.sum_duplicates()
        if self.norm is not None:
            rows = normalize(rows, norm=self.norm, copy=False)
        return _sklearn_sparse(rows, self.dtype)


def _iterable(raw_documents: Iterable[Any]) -> Iterable[Any]:
    """Documents as scikit-learn iterates over them: a list, or an Arrow column as a list of texts."""
    if isinstance(raw_documents, list):
        return raw_documents
    texts = Documents.of(raw_documents).texts
    return texts if isinstance(texts, list) else texts.to_pylist()


def _sklearn_sparse(X: sp.csr_array, dtype: Any) -> Any:
    """A sparse array or matrix of a type, as this version of scikit-learn returns it; entries keep their order."""
    align = getattr(sklearn_text, "_align_api_if_sparse", sp.csr_matrix)
    made = align(sp.csr_array((X.data.astype(dtype, copy=False), X.indices, X.indptr), X.shape))
    made.has_sorted_indices, made.has_canonical_format = X.has_sorted_indices, X.has_canonical_format
    return made
