"""Mail as rows: subject, sender and body of each message, from .eml files, mbox files and Maildir folders.

A folder of mail holds .eml and mbox files; an mbox file is all its messages.
"""

from __future__ import annotations

import mailbox
import os
import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.header import decode_header
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path

from deciban.errors import HERE, InputError
from deciban.read.source import DocumentSource, no_file

FIELDS = ("subject", "from", "body")
LABEL = "label"
HEAD_BYTES = 2048  # read to recognise an mbox
SNIFFED = 20  # files of a folder examined to recognise a folder of mail
MOST_NESTED = 20  # messages forwarded within messages
HIDDEN = {"script", "style", "head", "title"}
PARAGRAPHS = {"p", "div", "br", "tr", "li", "table", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}
_BLANKS, _LINES = re.compile(r"[ \t\r\f\v]+"), re.compile(r" ?\n\s*")


def read_mail(path: str | os.PathLike[str]) -> Iterator[dict[str, str]]:
    """The messages of an .eml or mbox file, a Maildir, or a folder of .eml files, in order, as dicts of FIELDS."""
    for _, data in raw_messages(path):
        yield fields_of(data)


def fields_of(data: bytes) -> dict[str, str]:
    r"""Subject, sender and body of a message; bytes that cannot be decoded are replaced.

    >>> fields_of(b"Subject: =?utf-8?q?caf=C3=A9?=\nFrom: Ada <ada@example.org>\n\nAt noon?\n")
    {'subject': 'café', 'from': 'Ada <ada@example.org>', 'body': 'At noon?'}
    """
    message = message_from_bytes(data, policy=policy.compat32)
    subject, sender = (_header(message, name) for name in ("Subject", "From"))
    return {"subject": subject, "from": sender, "body": _text(message).strip()}


# -- finding messages --------------------------------------------------------------------------------------------------
def raw_messages(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """The place of each message in words, and its bytes."""
    place = Path(path)
    try:
        if is_maildir(place):
            box = mailbox.Maildir(place, factory=None, create=False)
            for key in sorted(box.keys()):
                yield f"{place}, message {key}", box.get_bytes(key)
        elif place.is_dir():
            for file in sorted(entry for entry in place.iterdir() if _is_mail_file(entry)):
                yield from raw_messages(file)
        elif is_mbox(place):
            yield from _of_mbox(place)
        else:
            yield str(place), place.read_bytes()
    except OSError as error:
        raise InputError(
            HERE, f" cannot be read ({error.strerror}).", place=str(place), remedy="Check the path."
        ) from None


def is_maildir(place: Path) -> bool:
    """Whether a folder is a Maildir: one file a message, with sub-folders `cur` and `new`."""
    return (place / "cur").is_dir() and (place / "new").is_dir()


def is_mail(place: Path) -> bool:
    """Whether a path holds messages: a file by its ending, a folder by its contents."""
    if place.is_dir():
        return is_maildir(place) or any(map(_is_mail_file, sorted(place.iterdir())[:SNIFFED]))
    return _is_mail_file(place)


def _is_mail_file(place: Path) -> bool:
    if not place.is_file() or place.name.startswith("."):
        return False
    return place.suffix.lower() in (".eml", ".mbox") or (not place.suffix and is_mbox(place))


def is_mbox(place: Path) -> bool:
    """Whether a file is an mbox: its first line begins with "From ", the next with the name of a header."""
    with open(place, "rb") as file:
        return re.match(rb"From [^\n]*\n[!-9;-~]+:", file.read(HEAD_BYTES)) is not None


def _of_mbox(place: Path) -> Iterator[tuple[str, bytes]]:
    box = mailbox.mbox(place, factory=None, create=False)
    try:
        for number, key in enumerate(box.keys(), 1):
            yield f"{place}, message {number}", box.get_bytes(key)
    finally:
        box.close()


# -- reading a message -------------------------------------------------------------------------------------------------
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


def _text(message: Message, depth: int = 0) -> str:
    """The text of a message and its parts; of alternatives the plain text, unless it is empty."""
    if message.is_multipart():
        if depth > MOST_NESTED:
            return ""
        parts = [part for part in message.get_payload() if isinstance(part, Message)]
        if message.get_content_subtype() != "alternative":
            return "\n".join(text for part in parts if (text := _text(part, depth + 1)))
        ranked = sorted(parts, key=lambda part: part.get_content_type() != "text/plain")
        return next((text for part in ranked if (text := _text(part, depth + 1)).strip()), "")
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
            return data.decode(name or "utf-8")
        except (LookupError, ValueError):  # an unknown charset, or the wrong one
            continue
    return data.decode("latin-1")


def _clean(text: str) -> str:
    """Without surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


class _Visible(HTMLParser):
    """Collects the visible text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden += tag in HIDDEN
        if tag in PARAGRAPHS:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = max(0, self.hidden - (tag in HIDDEN))
        if tag in PARAGRAPHS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.text.append(data)


def html_text(page: str) -> str:
    r"""The visible text of a page.

    >>> html_text("<p>Fish &amp; chips</p><script>x</script><p>at <b>noon</b></p>")
    'Fish & chips\nat noon'
    """
    reader = _Visible()
    reader.feed(_clean(page))
    reader.close()
    return _LINES.sub("\n", _BLANKS.sub(" ", "".join(reader.text))).strip()


# -- a source of messages ----------------------------------------------------------------------------------------------
class MailSource(DocumentSource):
    """One row a message: of a file, an mbox, a Maildir or a folder of .eml files, or of a folder with one such a class.

    With classes there is a column `label`, and the messages of the classes alternate, so that the first rows hold every
    class.
    """

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False) -> None:
        super().__init__(path)
        self.skip_bad = skip_bad
        place = Path(path)
        if not place.exists():
            raise no_file(self.name)
        self.boxes = {} if is_mail(place) or not place.is_dir() else boxes_of(place)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*FIELDS, LABEL) if self.boxes else FIELDS

    def documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The fields of all messages."""
        for place, data, label in self._messages():
            self.read += len(data)
            yield place, fields_of(data) | ({} if label is None else {LABEL: label})

    def _messages(self) -> Iterator[tuple[str, bytes, str | None]]:
        if not self.boxes:
            yield from ((place, data, None) for place, data in raw_messages(self.name))
            return
        left = {label: raw_messages(box) for label, box in self.boxes.items()}
        while left:
            for label, box in list(left.items()):
                found = next(box, None)
                if found is None:
                    del left[label]
                else:
                    yield (*found, label)


def boxes_of(folder: Path) -> dict[str, Path]:
    """The mailbox of each class in a folder: its Maildirs, mbox files and sub-folders of .eml files, by name."""
    if not folder.is_dir() or is_maildir(folder):
        return {}
    found = {entry.stem: entry for entry in sorted(folder.iterdir()) if is_mail(entry)}
    return found if len(found) > 1 else {}
