"""What options of text go together."""

from __future__ import annotations

from typing import Any

from deciban.errors import HyperparameterError, InputError, shortlist
from deciban.families.dirichlet import check_strength
from deciban.families.text.sums import UNK
from deciban.families.text.terms import Terms
from deciban.features.vocabulary import Vocabulary

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
