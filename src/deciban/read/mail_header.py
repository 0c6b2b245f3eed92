"""The header that a mail filter adds to a message: the answer, in front of the other headers."""

from __future__ import annotations

import re
from typing import NamedTuple

from deciban.terminal import one_line

HEADER = "X-Deciban"
OWN = re.compile(rb"^x-deciban[ \t]*:", re.IGNORECASE)
UNREAD = "none; error; unsure=yes"  # value for a message that cannot be read


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
