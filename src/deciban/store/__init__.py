"""Model files: safe to open, whole or not there, and readable for ever."""

from deciban.store.models import describe, load, save
from deciban.store.released import release

__all__ = ["describe", "load", "release", "save"]
