"""Topics as text."""

from __future__ import annotations

import shutil
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class TopicTable:
    """Topics with their share of all tokens and their first words, one a line.

    >>> TopicTable(((3, 0.62, ("lamb", "snow")), (0, 0.38, ("be", "not"))))
     topic  share
         3  62.0%  ████████████  lamb, snow
         0  38.0%  ███████▍      be, not
    """

    rows: tuple[tuple[int, float, tuple[str, ...]], ...]

    BAR = 12
    EIGHTHS = " ▏▎▍▌▋▊▉"

    def __repr__(self) -> str:
        width = max(shutil.get_terminal_size().columns, 60)
        most = max((share for _, share, _ in self.rows), default=1.0)
        lines = [" topic  share"]
        for topic, share, words in self.rows:
            line = f"{topic:6}  {share:5.1%}  {self._bar(share / most)}  {', '.join(words)}"
            lines.append(line if len(line) <= width else line[: width - 1] + "…")
        return "\n".join(lines)

    __str__ = __repr__

    def _bar(self, share: float) -> str:
        eighths = round(share * self.BAR * 8)
        whole, rest = divmod(eighths, 8)
        return ("█" * whole + (self.EIGHTHS[rest] if rest else "")).ljust(self.BAR)
