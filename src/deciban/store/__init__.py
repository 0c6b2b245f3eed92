"""Model files: loading runs no code from the file, writing is atomic, and later versions read them."""

from deciban.store.models import describe, load, release, save

__all__ = ["describe", "load", "release", "save"]
