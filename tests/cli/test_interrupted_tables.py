"""Tables whose writing is interrupted."""

import gc
import io
import sys

import pyarrow as pa
import pytest

from deciban.cli.tables import WRITERS


@pytest.mark.parametrize("kind", WRITERS)
def test_an_interruption_is_passed_on_and_nothing_else_is_printed(kind, monkeypatch):
    def tables():
        yield pa.table({"prediction": ["a", "b"]})
        raise KeyboardInterrupt

    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with pytest.raises(KeyboardInterrupt), io.BytesIO() as stream:
        WRITERS[kind](stream, tables())
    gc.collect()
    assert not ignored
