"""Tokens: how a text becomes features, which are words, stems, runs of words or runs of characters.

Features are found in two ways with the same result: by compiled kernels (see `reading`), and by `Tokens.analyse`, which
is plain Python and the reference that the kernels are tested against.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from deciban.errors import HyperparameterError, shortlist

Unit = Literal["word", "char", "char_wb"]
TWO_OR_MORE = r"(?u)\b\w\w+\b"
_SPACES = re.compile(r"\s\s+")


@dataclass(frozen=True)
class Tokens:
    """What counts as a feature of a text.

    >>> Tokens(ngrams=(1, 2), stop_words=["the"], stem="english").analyse("The cats slept")
    ['cat', 'slept', 'cat slept']
    >>> Tokens("char_wb", ngrams=(3, 3)).analyse("To be")
    [' to', 'to ', ' be', 'be ']
    """

    unit: Unit = "word"
    ngrams: tuple[int, int] = (1, 1)  # the fewest and the most words, or characters, in a run
    lowercase: bool = True
    strip_accents: Literal["unicode", "ascii"] | None = None
    stop_words: str | Iterable[str] | None = None  # a language, or a list
    stem: str | None = None  # a language
    pattern: str = TWO_OR_MORE  # regular expression of a word
    analyser: Callable[[str], Iterable[str]] | None = None  # instead of everything above

    def __post_init__(self) -> None:
        low, high = self.ngrams
        if self.unit not in ("word", "char", "char_wb"):
            raise HyperparameterError(f"unit must be 'word', 'char' or 'char_wb', not {self.unit!r}.")
        if not 1 <= low <= high:
            raise HyperparameterError(f"ngrams={self.ngrams} must be (fewest, most), with 1 ≤ fewest ≤ most.")
        if self.strip_accents not in (None, "unicode", "ascii"):
            raise HyperparameterError(f"strip_accents must be None, 'unicode' or 'ascii', not {self.strip_accents!r}.")
        if self.unit != "word" and (self.stop_words is not None or self.stem is not None):
            raise HyperparameterError(f"stop words and stems are for words, not for unit={self.unit!r}.")
        if re.compile(self.pattern).groups > 1:
            raise HyperparameterError("More than 1 capturing group in token pattern; it may have one, for the word.")
        if self.stop_words is not None and not isinstance(self.stop_words, str):
            object.__setattr__(self, "stop_words", frozenset(self.stop_words))
        stop_words_of(self.stop_words)  # refuses an unknown language
        stemmer(self.stem)  # likewise

    @property
    def compiled(self) -> bool:
        """Whether the kernels can find these features."""
        return self.analyser is None and (self.unit != "word" or self.pattern == TWO_OR_MORE)

    def analyse(self, text: str) -> list[str]:
        """Return the features of a text."""
        return self.analyse_all([text])[0]

    def analyse_all(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the features of each text."""
        if self.analyser is not None:
            return [list(self.analyser(text)) for text in texts]
        prepared = map(self.prepare, texts)
        low, high = self.ngrams
        if self.unit == "word":
            each = map(re.compile(self.pattern).findall, prepared)
            if self.stop_words is not None or self.stem is not None:
                each = ([word for word in self.labels(words) if word is not None] for words in each)  # type: ignore[assignment]
            return list(each) if high == 1 else [_runs_of_words(words, low, high) for words in each]
        spaced = (_SPACES.sub(" ", text) for text in prepared)
        if self.unit == "char":
            return [
                [text[i : i + n] for n in range(low, high + 1) for i in range(len(text) - n + 1)] for text in spaced
            ]
        return [[run for word in text.split() for run in _runs_within(f" {word} ", low, high)] for text in spaced]

    def prepare(self, text: str) -> str:
        """Return a text in lower case and without accents, as asked for."""
        text = text.lower() if self.lowercase else text
        if self.strip_accents is None:
            return text
        return without_marks(text) if self.strip_accents == "unicode" else only_ascii(text)

    def labels(self, words: list[str]) -> list[str | None]:
        """Return the stem of each word, or None for stop words."""
        stop, stem_all = stop_words_of(self.stop_words), stemmer(self.stem)
        kept = [word for word in words if word not in stop] if stop else words
        stems = iter(kept if stem_all is None else stem_all(kept))
        return [None if word in stop else next(stems) for word in words]


def _runs_of_words(words: list[str], low: int, high: int) -> list[str]:
    return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]


def _runs_of_characters(text: str, low: int, high: int) -> list[str]:
    return [text[i : i + n] for n in range(low, high + 1) for i in range(len(text) - n + 1)]


def _runs_within(window: str, low: int, high: int) -> Iterator[str]:
    for n in range(low, high + 1):
        yield window[:n]
        yield from (window[i : i + n] for i in range(1, len(window) - n + 1))
        if len(window) <= n:
            return


def without_marks(text: str) -> str:
    """Return a text without accents: decomposed, its combining marks left out.

    >>> without_marks("déjà vu")
    'deja vu'
    """
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def only_ascii(text: str) -> str:
    """Return the ASCII characters of a decomposed text."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


@cache
def stemmer(language: str | None) -> Callable[[list[str]], Sequence[str]] | None:
    """Return the Snowball stemmer of a language: words to stems."""
    if language is None:
        return None
    import Stemmer

    try:
        return Stemmer.Stemmer(language).stemWords
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise HyperparameterError(f"no stemmer for {language!r}; there are {known}.") from None


def stop_words_of(given: str | Iterable[str] | None) -> frozenset[str]:
    """Return the stop words of a language, or the list given.

    >>> sorted(stop_words_of("german"))[:3], stop_words_of(None)
    (['aber', 'alle', 'allem'], frozenset())
    """
    if given is None:
        return frozenset()
    return _of_language(given) if isinstance(given, str) else frozenset(given)


@cache
def _of_language(language: str) -> frozenset[str]:
    if language == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return ENGLISH_STOP_WORDS
    if language not in _COMMON:
        known = shortlist(sorted([*_COMMON, "english"]), 20)
        raise HyperparameterError(f"no stop words for {language!r}; there are {known}. Give a list of your own.")
    return frozenset(_COMMON[language].split())


# Stop words of languages other than English, for which scikit-learn's list is used
_COMMON = {
    "danish": """
        af alle andet at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter
        eller en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvis hvor hvordan i
        ikke ind jeg jer jo kunne man mange med men mig min mit mod ned noget nogle nu når og også om op os over
        på selv sig sin sine sit skal skulle som sådan til ud under var vi vil ville vor være været""",
    "dutch": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er ge
        geen had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan kon kunnen maar me meer
        men met mij mijn moet na naar niet niets nog nu of om omdat ons ook op over reeds te tegen toch toen tot u
        uit uw van veel voor want waren was wat we wel werd wezen wie wij wil worden zal ze zei zelf zich zij zijn
        zo zonder zou""",
    "french": """
        ai as au aussi autre aux avait avec avez avoir avons ce ces cet cette ceux chez comme dans de des deux
        donc du elle elles en encore entre est et étaient était été être eu fait il ils je la là le les leur leurs
        lui ma mais me même mes moi mon ne ni nos notre nous on ont ou où par pas peu plus pour quand que quel
        quelle qui sa sans se sera ses si son sont sous sur ta te tes toi ton tous tout toute très tu un une vos
        votre vous""",
    "german": """
        aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei bin bis bist da
        damit dann das dass dein deine dem den der des die dies diese diesem diesen dieser dieses doch dort du
        durch ein eine einem einen einer eines er es etwas euch euer für gegen hab habe haben hat hatte hatten
        hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder
        jedes jetzt kann kein keine keinem keinen keiner können könnte machen man mein meine mich mir mit muss
        nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie sind so solche
        soll sollte sondern sonst um und uns unser unter viel vom von vor während war waren was weg weil weiter
        welche wenn werde werden wie wieder will wir wird wo wollen wollte würde würden zu zum zur zwar zwischen
        über""",
    "italian": """
        abbiamo agli ai al alla alle allo anche avere aveva c che chi ci come con così cui da dagli dai dal dalla
        dalle degli dei del della delle dello dentro di dove e ed era erano essere fra gli ha hai hanno ho i il in
        io la le lei li lo loro lui ma me mi mia mio molto ne negli nei nel nella nelle noi non nostro o ogni per
        perché più poi quale quando quello questa queste questi questo se sei si sia siamo sono sta stato su sua
        sue sugli sui sul sulla suo tra tu tutti tutto un una uno vi voi""",
    "norwegian": """
        alle at av bare ble bli blir da de deg dei dem den denne der deres det dette din disse du eller en enn er
        et etter for fordi fra før ha hadde ham han hans har henne hennes her hun hva hvis hvor hvordan i ikke inn
        jeg kan kunne man med meg men min mitt mot noe noen nå når og også om opp oss over på seg selv sin sine
        sitt skal skulle slik som så til under ut var ved vi vil ville vår være vært å""",
    "portuguese": """
        a ao aos as até com como da das de dela dele deles depois do dos e ela elas ele eles em entre era essa
        esse esta estão estar estas este estes estou está eu foi foram há isso isto já lhe mais mas me mesmo meu
        meus minha muito na nas nem no nos nossa nosso num numa não o os ou para pela pelas pelo pelos por quando
        que quem se seja sem ser será seu seus somos sou sua suas são só também te tem tinha ter teu tu tua um uma
        você vocês à às é""",
    "spanish": """
        a al algo algunos ante antes como con contra cual cuando de del desde donde durante e el ella ellas ellos
        en entre era eran es esa ese eso esta estaba este esto estos está están fue ha había han hasta hay la las
        le les lo los me mi mis mucho muchos muy más nada ni no nos nosotros o os otra otro otros para pero poco
        por porque que quien qué se sea ser si sido sin sobre son su sus también tanto te tiene tienen todo todos
        tu tus un una uno unos y ya yo él""",
    "swedish": """
        alla allt att av bara blev bli blir de dem den denna deras dess det detta dig din dock du där då efter
        eller en er ett från för ha hade han hans har henne hennes hon honom hur här i icke inom inte jag ju kan
        kunde man med mellan men mig min mitt mot mycket ni nu när någon något några och om oss på samma sedan sig
        sin sina själv skulle som så sådan till under upp ut utan vad var vara varit vi vid vilka vilken vår åt än
        är över""",
}

WORDS = Tokens()  # the default of CountVectorizer
