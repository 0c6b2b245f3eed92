"""Model files: safe to open, whole or not there, and readable for ever."""

from deciban.store.models import describe, load, release, save

__all__ = ["describe", "load", "release", "save"]
