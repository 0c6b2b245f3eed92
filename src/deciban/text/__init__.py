"""Text: documents as counts of words, read by any of the families of counts."""

from deciban.text.family import Text

__all__ = ["Text"]
