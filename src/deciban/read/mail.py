"""Mail: subject, sender and body of messages in .eml files, mbox files and Maildirs; the header of a mail filter.

A folder of mail holds .eml and mbox files; an mbox file is all its messages. A message that exceeds a limit
(`read/paths.py`) is an error for that message only, or a skipped row.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import time
from collections.abc import Iterator
from email import policy
from email.feedparser import BytesFeedParser
from email.header import decode_header
from email.message import Message
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from deciban.errors import HERE, InputError
from deciban.read.paths import Limits, read_record, refuse_special_file, too_long
from deciban.read.source import DocumentSource, no_file
from deciban.terminal import one_line

FIELDS = ("subject", "from", "body")
LABEL = "label"
HEAD_BYTES = 2048  # read to recognise an mbox
SNIFFED = 20  # files of a folder examined to recognise a folder of mail
PIECE = 2**16  # bytes given to the parser between two looks at the clock; of a line of an mbox read at a time
HEADERS = ("subject", "from", "content-type", "content-disposition", "content-transfer-encoding")  # that are read

# Codecs that are no charsets of mail. Punycode takes quadratic time.
NO_CHARSETS = ("punycode", "idna", "undefined", "unicode-escape", "raw-unicode-escape")
HIDDEN = {"script", "style", "head", "title"}
PARAGRAPHS = {"p", "div", "br", "tr", "li", "table", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}
_BLANKS, _LINES = re.compile(r"[ \t\r\f\v]+"), re.compile(r" ?\n\s*")
HEADER = "X-Deciban"
OWN = re.compile(rb"^x-deciban[ \t]*:", re.IGNORECASE)
UNREAD = "none; error; unsure=yes"  # value for a message that cannot be read


def read_mail(path: str | os.PathLike[str], limits: Limits | None = None) -> Iterator[dict[str, str]]:
    """The messages of an .eml or mbox file, a Maildir, or a folder of .eml files, in order, as dicts of FIELDS."""
    limits = Limits.from_environment() if limits is None else limits
    for message in raw_messages(path, limits):
        yield message.fields(limits)


def fields_of(data: bytes, limits: Limits | None = None) -> dict[str, str]:
    r"""Subject, sender and body of a message; bytes that cannot be decoded are replaced.

    >>> fields_of(b"Subject: =?utf-8?q?caf=C3=A9?=\nFrom: Ada <ada@example.org>\n\nAt noon?\n")
    {'subject': 'café', 'from': 'Ada <ada@example.org>', 'body': 'At noon?'}
    """
    reading = _Reading(Limits.from_environment() if limits is None else limits)
    try:
        message = reading.parsed(data)
        subject, sender = (_header(message, name) for name in ("Subject", "From"))
        return {"subject": subject, "from": sender, "body": _text(message, reading).strip()}
    except RecursionError:  # little of the stack is left
        raise reading.refusal("depth", "the message has too many parts within one another.") from None


# -- finding messages --------------------------------------------------------------------------------------------------
class RawMessage(NamedTuple):
    """A message as it was found."""

    place: str  # in words
    data: bytes
    wrong: InputError | None = None  # why it was not read; `data` is empty then

    def fields(self, limits: Limits) -> dict[str, str]:
        """The fields of the message; an InputError if it cannot be read."""
        if self.wrong is not None:
            raise self.wrong
        try:
            return fields_of(self.data, limits)
        except InputError as error:
            raise error.at(self.place) from None


def raw_messages(path: str | os.PathLike[str], limits: Limits) -> Iterator[RawMessage]:
    """The messages of a file or a folder."""
    place = Path(path)
    try:
        if is_maildir(place):
            for key, file in sorted(_of_maildir(place).items()):
                yield _of_file(file, f"{place}, message {key}", limits)
        elif place.is_dir():
            for file in sorted(entry for entry in place.iterdir() if _is_mail_file(entry)):
                yield from raw_messages(file, limits)
        elif place.is_file() and is_mbox(place):
            yield from _of_mbox(place, limits)
        else:
            yield _of_file(place, str(place), limits)
    except OSError as error:
        raise _unreadable(str(place), error) from None


def _of_file(file: Path, place: str, limits: Limits) -> RawMessage:
    try:
        return RawMessage(place, read_record(file, limits))
    except InputError as error:
        return RawMessage(place, b"", error)
    except OSError as error:
        return RawMessage(place, b"", _unreadable(place, error))


def _unreadable(place: str, error: OSError) -> InputError:
    return InputError(HERE, f" cannot be read ({error.strerror}).", place=place, remedy="Check the path.")


def _of_maildir(folder: Path) -> dict[str, Path]:
    """The files of a Maildir by their unique names, which end at a colon."""
    entries = (entry for name in ("new", "cur") for entry in (folder / name).iterdir())
    return {entry.name.split(":")[0]: entry for entry in entries if not entry.is_dir()}


def is_maildir(place: Path) -> bool:
    """Whether a folder is a Maildir: one file a message, with sub-folders `cur` and `new`."""
    return (place / "cur").is_dir() and (place / "new").is_dir()


def is_mail(place: Path) -> bool:
    """Whether a path holds messages: a file by its ending, a folder by its contents."""
    if place.is_dir():
        return is_maildir(place) or any(map(_is_mail_file, sorted(place.iterdir())[:SNIFFED]))
    return _is_mail_file(place)


def _is_mail_file(place: Path) -> bool:
    """Whether a file is mail by its ending or its first lines; a named pipe may be, and is refused when it is read."""
    if place.name.startswith(".") or place.is_dir():
        return False
    if place.suffix.lower() in (".eml", ".mbox"):
        return place.exists()
    return not place.suffix and place.is_file() and is_mbox(place)


def is_mbox(place: Path) -> bool:
    """Whether a file is an mbox: its first line begins with "From ", the next with the name of a header."""
    with open(place, "rb") as file:
        return re.match(rb"From [^\n]*\n[!-9;-~]+:", file.read(HEAD_BYTES)) is not None


def _of_mbox(place: Path, limits: Limits) -> Iterator[RawMessage]:
    """The messages of an mbox: each begins behind a line that begins with "From ", and ends before an empty line."""
    held: list[bytes] = []
    number, size, within, begins = 0, 0, False, True  # `within` a line "From …"; the next piece `begins` a line

    def message() -> RawMessage:
        where = f"{place}, message {number}"
        if size > limits.record_bytes:
            return RawMessage(where, b"", too_long(where, "the message", limits))
        return RawMessage(where, b"".join(held[:-1] if held and held[-1] == b"\n" else held))

    with place.open("rb") as file:
        while piece := file.readline(PIECE):
            if begins and piece.startswith(b"From "):
                if number:
                    yield message()
                number, held, size, within = number + 1, [], 0, True
            elif not within:
                size += len(piece)
                if size <= limits.record_bytes:
                    held.append(piece)
                else:
                    held.clear()
            begins = piece.endswith(b"\n")
            within = within and not begins
        if number:
            yield message()


# -- reading a message -------------------------------------------------------------------------------------------------
class _Reading:
    """Counts the parts and the seconds of one message while it is read."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.parts = limits, 0
        self.end = time.monotonic() + limits.seconds

    def parsed(self, data: bytes) -> Message:
        """The message with its parts."""
        parser = BytesFeedParser(self.new_part, policy=policy.compat32)
        for at in range(0, len(data), PIECE):
            self.check_time()
            parser.feed(data[at : at + PIECE])
        return parser.close()

    def new_part(self, policy: Any = policy.compat32) -> _Part:
        return _Part(self, policy)

    def check_time(self) -> None:
        if time.monotonic() > self.end:
            raise self.refusal("seconds", f"reading the message takes more than {self.limits.seconds:g} seconds.")

    def add_part(self, depth: int) -> None:
        self.check_time()
        self.parts += 1
        if self.parts > self.limits.parts:
            raise self.refusal("parts", f"the message has more than {self.limits.parts:,} parts.")
        if depth > self.limits.depth:
            raise self.refusal("depth", f"the message has more than {self.limits.depth:,} parts within one another.")

    def refusal(self, name: str, what: str) -> InputError:
        return InputError(what, remedy=self.limits.remedy(name, "Remove the message"))


class _Part(Message):
    """A message or a part of one; an InputError ends the parser when it exceeds a limit."""

    def __init__(self, reading: _Reading, policy: Any) -> None:
        super().__init__(policy)
        self.reading, self.depth = reading, 0

    def attach(self, payload: Any) -> None:
        payload.depth = self.depth + 1
        self.reading.add_part(payload.depth)
        super().attach(payload)

    def set_raw(self, name: str, value: Any) -> None:
        most = self.reading.limits.header_bytes
        if len(value) > most and name.lower() in HEADERS:
            raise self.reading.refusal("header_bytes", f"the header {name} has more than {most:,} bytes.")
        super().set_raw(name, value)


def _header(message: Message, name: str) -> str:
    raw = message.get(name)
    if raw is None:
        return ""
    try:
        parts = decode_header(str(raw).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    except ValueError:  # wrongly encoded
        return " ".join(_clean(str(raw)).split())
    text = "".join(part if isinstance(part, str) else _decoded(part, charset) for part, charset in parts)
    return " ".join(_clean(text).split())


def _text(message: Message, reading: _Reading) -> str:
    """The text of a message and its parts; of alternatives the plain text, unless it is empty."""
    reading.check_time()
    if message.is_multipart():
        parts = [part for part in message.get_payload() if isinstance(part, Message)]
        if message.get_content_subtype() != "alternative":
            return "\n".join(text for part in parts if (text := _text(part, reading)))
        ranked = sorted(parts, key=lambda part: part.get_content_type() != "text/plain")
        return next((text for part in ranked if (text := _text(part, reading)).strip()), "")
    if message.get_content_maintype() != "text" or message.get_content_disposition() == "attachment":
        return ""
    data = message.get_payload(decode=True)
    text = _decoded(data if isinstance(data, bytes) else b"", _charset(message))
    return html_text(text) if message.get_content_subtype() == "html" else _clean(text)


def _charset(message: Message) -> str | None:
    try:
        return message.get_content_charset()
    except (LookupError, ValueError):
        return None


def _decoded(data: bytes, charset: str | None) -> str:
    for name in (charset, "utf-8"):
        try:
            if codecs.lookup(name or "utf-8").name not in NO_CHARSETS:
                return data.decode(name or "utf-8")
        except (LookupError, ValueError):  # an unknown charset, or the wrong one
            continue
    return data.decode("latin-1")


def _clean(text: str) -> str:
    """Replace surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


_MARKUP, _TAG_EDGE = re.compile(r"<(?:(!--)|([!?])|(/?)([a-zA-Z][^\s/>]*))"), re.compile(r">|=\s*[\"']")
_RAW_TEXT_END = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_HUGE_REFERENCE = re.compile(r"&#[0-9]{8,};?")  # int() refuses more than 4,300 digits


def html_text(page: str) -> str:
    r"""The visible text of a page, in time proportional to its length.

    Tags, comments and the contents of some elements are removed, as browsers do. A tag that is not closed is text.

    >>> html_text("<p>Fish &amp; chips</p><script>x</script><p>at <b>noon</b></p>")
    'Fish & chips\nat noon'
    """
    text = io.StringIO()  # a list of many short pieces would take more memory
    text.writelines(_visible(_clean(page)))
    return _LINES.sub("\n", _BLANKS.sub(" ", text.getvalue())).strip()


def _visible(page: str) -> Iterator[str]:
    """Pieces of visible text, and a line break at each tag of a paragraph. The position only moves forward."""
    at, hidden = 0, 0
    while (markup := _MARKUP.search(page, at)) is not None:
        if not hidden:
            yield _characters(page[at : markup.start()])
        comment, declaration, closing, name = markup.groups()
        if comment or declaration:
            end = page.find("-->" if comment else ">", markup.start() + 2)
            if end < 0:
                return
            at = end + (3 if comment else 1)
            continue
        end = _tag_end(page, markup.end())
        if end < 0:
            at = markup.start()
            break
        tag, at = name.lower(), end + 1
        if tag in PARAGRAPHS:
            yield "\n"
        if tag in HIDDEN and closing:
            hidden = max(0, hidden - 1)
        elif tag in HIDDEN and page[end - 1] != "/":  # <script/> has no contents
            hidden += 1
            if tag in _RAW_TEXT_END:
                found = _RAW_TEXT_END[tag].search(page, at)
                if found is None:
                    return
                at = found.start()
    if not hidden:
        yield _characters(page[at:])


def _tag_end(page: str, at: int) -> int:
    """The position of the ">" that ends a tag, outside of quoted values; -1 if there is none."""
    while (edge := _TAG_EDGE.search(page, at)) is not None:
        if edge[0] == ">":
            return edge.start()
        closed = page.find(edge[0][-1], edge.end())
        at = edge.end() if closed < 0 else closed + 1
    return -1


def _characters(text: str) -> str:
    """Text with its character references replaced."""
    return unescape(_HUGE_REFERENCE.sub("\ufffd", text)) if "&" in text else text


# -- a source of messages ----------------------------------------------------------------------------------------------
class MailSource(DocumentSource):
    """One row a message: of a file, an mbox, a Maildir or a folder of .eml files, or of a folder with one such a class.

    With classes there is a column `label`, and the messages of the classes alternate, so that the first rows hold every
    class.
    """

    texts = ("subject", "body")

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, limits: Limits | None = None) -> None:
        super().__init__(path, limits)
        self.skip_bad = skip_bad
        place = Path(path)
        if not place.exists():
            raise no_file(self.name)
        refuse_special_file(place)
        self.boxes = {} if is_mail(place) or not place.is_dir() else boxes_of(place)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*FIELDS, LABEL) if self.boxes else FIELDS

    def documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The fields of all messages."""
        for message, label in self._messages():
            self.read += len(message.data)
            try:
                fields = message.fields(self.limits)
            except InputError as error:
                self.raise_or_skip(error)
            else:
                yield message.place, fields | ({} if label is None else {LABEL: label})

    def _messages(self) -> Iterator[tuple[RawMessage, str | None]]:
        if not self.boxes:
            yield from ((message, None) for message in raw_messages(self.name, self.limits))
            return
        left = {label: raw_messages(box, self.limits) for label, box in self.boxes.items()}
        while left:
            for label, box in list(left.items()):
                found = next(box, None)
                if found is None:
                    del left[label]
                else:
                    yield found, label


def boxes_of(folder: Path) -> dict[str, Path]:
    """The mailbox of each class in a folder: its Maildirs, mbox files and sub-folders of .eml files, by name."""
    if not folder.is_dir() or is_maildir(folder):
        return {}
    entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    found = {entry.stem: entry for entry in entries if is_mail(entry)}
    return found if len(found) > 1 or len(found) == len(entries) else {}  # one folder alone is the mail of one class


# -- the header of a mail filter ---------------------------------------------------------------------------------------
class MailAnswer(NamedTuple):
    """The decision on a message."""

    label: str
    decibans: float  # for the class over the most probable other one
    posterior: float

    def header(self, unsure: bool) -> str:
        """The value of the header.

        >>> MailAnswer("spam", 32.4, 0.999).header(False)
        'spam; 32 dban; unsure=no'
        """
        evidence = f"{self.decibans:.0f}" if abs(self.decibans) < 1e6 else "inf" if self.decibans > 0 else "-inf"
        return f"{header_text(self.label)}; {evidence} dban; unsure={'yes' if unsure else 'no'}"


def with_header(message: bytes, value: str) -> bytes:
    r"""The message with the header in front, without headers of that name that it had.

    >>> with_header(b"Subject: hi\nX-Deciban: ham;\n 99 dban\n\nX-Deciban: text\n", "spam; 3 dban; unsure=yes")
    b'X-Deciban: spam; 3 dban; unsure=yes\nSubject: hi\n\nX-Deciban: text\n'
    """
    end = b"\r\n" if b"\r\n" in message[: message.find(b"\n") + 1] else b"\n"
    kept: list[bytes] = []
    own, at = False, 0
    while at < len(message):
        stop = message.find(b"\n", at) + 1 or len(message)
        line = message[at:stop]
        if not line.strip(b"\r\n"):
            break  # the body begins
        if line[:1] not in b" \t":
            own = OWN.match(line) is not None
        if not own:
            kept.append(line)
        at = stop
    first = [kept.pop(0)] if kept and kept[0].startswith(b"From ") else []  # the line of an mbox stays first
    return b"".join([*first, f"{HEADER}: {value}".encode("ascii"), end, *kept, message[at:]])


def header_text(label: str) -> str:
    """The name of a class within a header: one line of ASCII without semicolons.

    >>> header_text("spam; x"), header_text("Müll")
    ('spam, x', '=?utf-8?b?TcO8bGw=?=')
    """
    from email.header import Header

    name = one_line(label).replace(";", ",")
    return name if name.isascii() else Header(name, "utf-8", maxlinelen=10_000).encode()
