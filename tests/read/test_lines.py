"""Files of one text a line."""

import pytest

import deciban.read.texts as texts
from deciban.errors import InputError
from deciban.read.files import open_source


def lines(source):
    return [value for table in source.batches() for value in table.data["text"].to_list()]


@pytest.mark.parametrize("size", [1, 7, 2**22])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_lines_are_rows_whatever_the_encoding_and_the_blocks(tmp_path, monkeypatch, size, encoding):
    monkeypatch.setattr(texts, "LINES_BLOCK", max(size, 2) if encoding == "utf-16" else size)
    path = tmp_path / "some.txt"
    path.write_bytes('\n"one", two\r\n\n  déjà vu \nlast; \u00fc'.encode(encoding))
    options = {"encoding": "latin-1"} if encoding == "latin-1" else {}
    source = open_source(path, format="lines", **options)
    for _ in range(2):
        assert lines(source) == ['"one", two', "  déjà vu", "last; ü"]


def test_lines_that_cannot_be_read_are_refused(tmp_path):
    for content, said in {
        b"caf\xe9\n": "not UTF-8.*latin-1",
        b"a\n\0\n": "zero bytes",
        b"a\n" + b"b" * 300 + b"\n": "line 2: the line is longer than 256 bytes",
        b"": "is empty",
        b"\n \n": "no rows",
    }.items():
        (tmp_path / "some.txt").write_bytes(content)
        with pytest.raises(InputError, match=said):
            lines(open_source(tmp_path / "some.txt", format="lines", limits=texts.Limits(record_bytes=256)))
