"""Files of texts: a folder with one sub-folder of texts per class, texts line by line, and sentences with their tags.

A `FolderSource` has the columns `text` and `label`; a file is one row, but an mbox file is all its messages: subject
and body of each. A `LinesSource` has one column, and one row for each line that is not blank. `read_sentences` reads
four formats: one word a line, followed by a tab and its tag, with a blank line between sentences; CoNLL-U, which is the
same with ten columns; JSON lines with "words" and optionally "tags" (or "upos" and "xpos"); plain text, a sentence a
line.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import HERE, Argument, InputError, Remedy, shortlist
from deciban.read.json_files import nests_deeper
from deciban.read.paths import Limits, read_start, refuse_special_file, too_long, within_limit
from deciban.read.source import SKIP_BAD, DocumentSource, FileSource

TEXT, LABEL = "text", "label"
TAGS = ("tags", "upos")  # keys of JSON lines
NO_VALUE = "_"  # in CoNLL-U
LINES_BLOCK = 2**22  # bytes of lines read at a time


# -- a folder of texts -------------------------------------------------------------------------------------------------
class FolderSource(DocumentSource):
    """One row a text. The files of all classes are mixed evenly, so that the first rows hold every class."""

    texts = (TEXT,)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoding: str = "utf-8",
        skip_bad: bool = False,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(path, limits)
        self.encoding, self.skip_bad = encoding, skip_bad
        self.files = _mixed(_classes(Path(path)))
        self.size = sum(file.stat().st_size for file, _ in self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        return TEXT, LABEL

    def documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The texts of all files."""
        for file, label in self.files:
            for place, text in self._texts(file):
                yield place, {TEXT: text, LABEL: label}

    def _texts(self, file: Path) -> Iterator[tuple[str, str]]:
        """Place and text of a file, or of each message of an mbox; none if it cannot be read and is skipped."""
        try:
            data = read_start(file, self.limits.record_bytes + 1)
            if data.startswith(b"From "):
                from deciban.read.mail import is_mbox  # lazy: the email package is slow to import

                if is_mbox(file):
                    yield from self._messages(file)
                    return
            self.read += len(data)
            text = within_limit(data, str(file), self.limits).decode(self.encoding)
        except InputError as error:
            reason = error
        except UnicodeDecodeError as error:
            shown = f"byte {error.start} ({data[error.start : error.start + 8]!r})"
            encoding = Argument("encoding", "latin-1")
            reason = InputError(
                f"{shown} is not {self.encoding.upper()}.",
                place=str(file),
                remedy=Remedy("Give the encoding, as in ", encoding, ", or skip bad files (", SKIP_BAD, ")."),
            )
        except OSError as error:
            reason = InputError(
                HERE,
                f" cannot be read ({error.strerror}).",
                place=str(file),
                remedy=Remedy("Check it, or skip bad files (", SKIP_BAD, ")."),
            )
        else:
            yield str(file), text
            return
        self.raise_or_skip(reason)

    def _messages(self, file: Path) -> Iterator[tuple[str, str]]:
        """Place, subject and body of each message of an mbox."""
        from deciban.read.mail import raw_messages

        for message in raw_messages(file, self.limits):
            self.read += len(message.data)
            try:
                fields = message.fields(self.limits)
            except InputError as error:
                self.raise_or_skip(error)
            else:
                yield message.place, f"{fields['subject']}\n{fields['body']}"


def _classes(folder: Path) -> dict[str, list[Path]]:
    """The files of each class, sorted, without hidden ones."""
    try:
        subfolders = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        found = {sub.name: sorted(_files(sub)) for sub in subfolders}
    except PermissionError as error:
        raise InputError(
            "no permission to read it.", place=str(error.filename), remedy="Ask for it, or copy the folder."
        ) from None
    empty = [name for name, files in found.items() if not files]
    if not found or len(empty) == len(found):
        raise InputError(
            HERE,
            " has no sub-folders with files in them.",
            place=str(folder),
            remedy=f"A folder of texts has one sub-folder per class: {folder}/spam/1.txt, {folder}/ham/2.txt.",
        )
    if empty:
        raise InputError(f"no files in {shortlist(empty)}.", place=str(folder), remedy="Remove the empty sub-folders.")
    return found


def _files(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Every file below a folder; unlike `rglob`, raises PermissionError. Links to folders above are not followed."""
    above = (*above, folder.resolve())
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.resolve() not in above:
                yield from _files(entry, above)
        elif not entry.name.startswith("."):
            yield entry


def _mixed(classes: dict[str, list[Path]]) -> list[tuple[Path, str]]:
    """All files with their class; those of each class are spread evenly over the whole list."""
    places = [
        ((at + 0.5) / len(files), label, file) for label, files in classes.items() for at, file in enumerate(files)
    ]
    return [(file, label) for _, label, file in sorted(places)]


# -- texts line by line ------------------------------------------------------------------------------------------------
class LinesSource(FileSource):
    """One text a line, in a column named `column`; blank lines are not read."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        column: str = TEXT,
        encoding: str | None = None,
        skip_bad: bool = False,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(path, skip_bad=skip_bad, limits=limits)
        self.texts = (column,)
        self.encoding = encoding

    @property
    def columns(self) -> tuple[str, ...]:
        return self.texts

    def pieces(self) -> Iterator[pa.Table]:
        """The lines of blocks of the file, without spaces at their end."""
        read = 0  # lines
        for block in self._blocks():
            if "\0" in block:
                raise self.refusal(" is not text: it holds zero bytes.", remedy="Give a file of texts.")
            lines = pc.split_pattern(pa.array([block], pa.large_string()), "\n").flatten()
            texts = pc.utf8_rtrim_whitespace(lines)
            if pc.max(pc.binary_length(texts)).as_py() > self.limits.record_bytes:
                long = pc.index(pc.greater(pc.binary_length(texts), self.limits.record_bytes), True).as_py()
                raise too_long(f"{self.name}, line {read + long + 1}", "the line", self.limits, read + long + 1)
            read += len(lines)
            yield pa.table({self.texts[0]: texts.filter(pc.not_equal(texts, ""))})

    def _blocks(self) -> Iterator[str]:
        """The file in pieces that end with a line, without the last line break."""
        held = ""
        with self.opened() as stream:
            start = stream.read(LINES_BLOCK)
            utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            encoding = self.encoding or ("utf-16" if utf16 else "utf-8-sig")
            decoder = codecs.getincrementaldecoder(encoding)()
            while start:
                self.progressed(len(start))
                try:
                    held += decoder.decode(start)
                except UnicodeDecodeError as error:
                    raise self._not_text(error, encoding) from None
                whole, line_break, rest = held.rpartition("\n")
                if line_break:
                    yield whole
                    held = rest
                elif len(held) > self.limits.record_bytes:
                    raise too_long(self.name, "a line", self.limits)
                start = stream.read(LINES_BLOCK)
        yield held

    def _not_text(self, error: UnicodeDecodeError, encoding: str) -> InputError:
        shown = error.object[error.start : error.start + 8]
        return self.refusal(
            f" holds bytes ({shown!r}) that are not {encoding.removesuffix('-sig').upper()}.",
            remedy=Remedy("Give the encoding, as in ", Argument("encoding", "latin-1"), "."),
        )


# -- sentences ---------------------------------------------------------------------------------------------------------
class Sentence(NamedTuple):
    """Words, and a tag of each, to which `|` and a finer tag may be added."""

    words: list[str]
    tags: list[str] | None


def read_sentences(path: str, tagged: bool) -> list[Sentence]:
    """All sentences of a file, or of "-" for standard input; with `tagged`, words must have tags."""
    name, limits = "standard input" if path == "-" else path, Limits.from_environment()
    with _opened(path) as lines:
        try:
            found = list(_sentences(_lines(lines, name, limits), name, tagged, limits))
        except UnicodeDecodeError as error:
            what = f" is not UTF-8 (byte {error.start})."
            raise InputError(HERE, what, place=name, remedy="Convert it first.") from None
        except OSError as error:
            what = f" cannot be read ({error.strerror or error})."
            raise InputError(HERE, what, place=name, remedy="Is it whole?") from None
    if not found:
        remedy = "Give a word and a tag a line, or a sentence a line."
        raise InputError(HERE, " holds no sentences.", place=name, remedy=remedy)
    return found


def _lines(stream: IO[str], name: str, limits: Limits) -> Iterator[str]:
    """The lines of a file; one that is too long is an error."""
    number = 1
    while line := stream.readline(limits.record_bytes + 1):
        if len(line) > limits.record_bytes:
            raise too_long(f"{name}, line {number}", "the line", limits, number)
        yield line
        number += 1


def _sentences(lines: Iterable[str], name: str, tagged: bool, limits: Limits) -> Iterator[Sentence]:
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.startswith("{"):
            yield _of_json(text, f"{name}, line {number}", number, tagged, limits)
        elif not text.strip():
            if words:
                yield Sentence(words, tags or None)
            words, tags = [], []
        elif "\t" in text:
            _add(text.split("\t"), words, tags)
        elif tagged and not text.startswith("#"):
            raise InputError(
                f"{text[:60]!r} has no tag.",
                row=number,
                place=f"{name}, line {number}",
                remedy="Write the word, a tab, and its tag.",
            )
        elif not text.startswith("#"):
            yield Sentence(text.split(), None)
    if words:
        yield Sentence(words, tags or None)


def _add(cells: list[str], words: list[str], tags: list[str]) -> None:
    """Add the word of a line; CoNLL-U lists the parts of a contraction after it, so its own line is skipped."""
    if len(cells) < 8:
        words.append(cells[0])
        tags.append(cells[1])
    elif cells[0].isdigit():
        words.append(cells[1])
        tags.append(cells[3] if cells[4] in (NO_VALUE, "") else f"{cells[3]}|{cells[4]}")


def _of_json(text: str, place: str, row: int, tagged: bool, limits: Limits) -> Sentence:
    try:
        if nests_deeper(text.encode("utf-8", "replace"), limits.depth):
            raise ValueError(f"arrays and objects are nested more than {limits.depth} deep")
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"not JSON ({error}).", row=row, place=place, remedy="Correct the line.") from None
    words = found.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        what = f'a sentence needs a list of "words". It has {", ".join(found)}.'
        raise InputError(what, row=row, place=place)
    tags = next((found[key] for key in TAGS if key in found), None)
    if tags is None and tagged:
        raise InputError('a sentence to learn from needs "tags" beside its "words".', row=row, place=place)
    if tags is not None and len(tags) != len(words):
        what = f"{len(words)} words, but {len(tags)} tags."
        raise InputError(what, row=row, place=place, remedy="Give each word one.")
    finer = found.get("xpos")
    if tags is not None and isinstance(finer, list) and len(finer) == len(words):
        tags = [f"{tag}|{more}" for tag, more in zip(tags, finer)]
    return Sentence(words, tags)


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    """Lines of a file, compressed or not, or of standard input."""
    if path == "-":
        yield sys.stdin
        return
    refuse_special_file(path)
    try:
        stream = pa.input_stream(path, compression="detect")
    except OSError as error:
        what = f" cannot be read ({error.strerror or error})."
        raise InputError(HERE, what, place=path, remedy="Check the path and its permissions.") from None
    with io.TextIOWrapper(stream, "utf-8") as lines:
        yield lines
