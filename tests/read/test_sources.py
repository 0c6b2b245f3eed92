"""Rows from anywhere: the same rows, whatever the format; and a clear error by line where they cannot be read."""

import gzip
import io
import json
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from deciban import GenerativeClassifier
from deciban.errors import InputError
from deciban.read.arrow import arrow_table
from deciban.read.files import open_source

ROWS = {"colour": ["red", "white", None, "red"], "size": [1.5, 2.0, 3.25, None]}
CSV = "colour,size\nred,1.5\nwhite,2.0\n?,3.25\nred,NA\n"


def rows(source, batch=65_536):
    return pa.concat_tables([arrow_table(table) for table in source.batches(batch)]).to_pydict()


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def write_as(ending, folder):
    table, path = pa.table(ROWS), folder / f"rows{ending}"
    if ending.startswith(".csv"):
        return write(path, gzip.compress(CSV.encode()) if ending.endswith("gz") else CSV)
    if ending.endswith(".zst"):
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(CSV.replace(",", "\t").encode())
    elif ending == ".jsonl":
        lines = [json.dumps(dict(zip(ROWS, row))) for row in zip(*ROWS.values())]
        write(path, "\n".join(lines))
    elif ending == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv.zst", ".jsonl", ".parquet", ".feather"])
def test_every_format_gives_the_same_rows(ending, tmp_path):
    source = open_source(write_as(ending, tmp_path))
    assert source.columns == ("colour", "size")
    found = rows(source)
    assert found["colour"] == ROWS["colour"]
    assert [None if v is None else float(v) for v in found["size"]] == ROWS["size"]
    assert rows(source) == found, "a source can be read again"


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_are_sources(frame):
    assert rows(open_source(frame(ROWS))) == ROWS


def test_batches_have_exactly_the_rows_asked_for(tmp_path):
    path = write(tmp_path / "n.csv", "n\n" + "\n".join(map(str, range(1000))))
    tables = list(open_source(path).batches(300))
    assert [len(table) for table in tables] == [300, 300, 300, 100]
    assert rows(open_source(path), 7)["n"] == [str(i) for i in range(1000)]


def test_a_folder_of_texts_takes_its_classes_in_turns(tmp_path):
    for label, count in (("ham", 4), ("spam", 2)):
        (tmp_path / label).mkdir()
        for i in range(count):
            write(tmp_path / label / f"{i}.txt", f"{label} {i}")
    source = open_source(tmp_path)
    found = rows(source)
    assert found["label"] == ["ham", "spam", "ham", "ham", "spam", "ham"]
    assert found["text"][1] == "spam 0"
    assert source.place(1)[0] == str(tmp_path / "spam" / "0.txt")


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    source = open_source("-", format="csv")
    assert rows(source)["colour"] == ROWS["colour"]
    with pytest.raises(InputError, match="only once"):
        rows(source)


def test_standard_input_needs_a_format():
    with pytest.raises(InputError, match="format of standard input"):
        open_source("-")


def test_a_row_is_found_by_its_line(tmp_path):
    path = write(tmp_path / "lines.csv", 'a,b\n1,"two\nlines"\n\n3,4\n5,6\n')
    source = open_source(path)
    assert source.place(1)[0] == f"{path}, line 5"
    assert source.place(2)[0] == f"{path}, line 6"


BAD = {
    "ragged": (b"a,b\n1,2\n3\n4,5\n", "line 3: the row has 1 cell, but there are 2 columns"),
    "open quote": (b'a,b\n1,"2\n3,4\n5,6\n', "line 2: a quote is opened and never closed"),
    "no UTF-8": (b"a,b\n1,2\n1,caf\xe9\n3,4\n", "line 3, column 'b': b'caf.xe9' is not UTF-8"),
    "same names": (b"a,a\n1,2\n", "line 1: columns 1 and 2 are both called 'a'"),
    "no name": (b"a,\n1,2\n", "line 1, column 2: the column has no name"),
    "empty": (b"", "is empty"),
    "header only": (b"a,b\n", "holds no rows"),
    "zero bytes": (b"a,b\n1\x00,2\n", "is not text"),
    "blank": (b"\n\n\n", "has no header"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_by_line_and_column(case, tmp_path):
    data, says = BAD[case]
    path = write(tmp_path / "bad.csv", data)
    with pytest.raises(InputError, match=says) as error:
        rows(open_source(path))
    assert str(path) in str(error.value)


def test_an_open_quote_is_found_in_a_large_file_too(tmp_path):
    path = write(tmp_path / "large.csv", b"a,b\n" + b"1,2\n" * 1000 + b'1,"' + b"x\n" * 10**7)
    with pytest.raises(InputError, match="line 1002: a quote is opened"):
        rows(open_source(path))


def test_a_cell_of_a_million_characters_is_read(tmp_path):
    path = write(tmp_path / "long.csv", b"a,b\n1," + b"x" * 10**6 + b"\n2,y\n")
    assert [len(cell) for cell in rows(open_source(path))["b"]] == [10**6, 1]


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfa,b\n1,2\n", "a,b\n1,2\n".encode("utf-16"), b"a;b\r\n1;2\r\n"])
def test_marks_of_byte_order_and_other_delimiters_are_understood(data, tmp_path):
    assert rows(open_source(write(tmp_path / "x.csv", data))) == {"a": ["1"], "b": ["2"]}


def test_bad_rows_are_skipped_and_counted_on_request(tmp_path):
    source = open_source(write(tmp_path / "bad.csv", b"a,b\n1,2\n3\n4,5,6\n7,8\n"), skip_bad=True)
    assert rows(source) == {"a": ["1", "7"], "b": ["2", "8"]}
    assert source.skipped.rows == 2
    assert source.place(1)[0].endswith("line 5")


def test_a_line_of_json_that_does_not_fit_is_named(tmp_path):
    path = write(tmp_path / "x.jsonl", b'{"a":1}\n\n{"a":\n{"a":2.5}\n')
    with pytest.raises(InputError, match=r"x\.jsonl, line 3"):
        rows(open_source(path))
    assert rows(open_source(path, skip_bad=True)) == {"a": [1.0, 2.5]}


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.csv.gz", gzip.compress(b"a,b\n" + os.urandom(1000))[:-600]), ("x.parquet", b"PAR1xx"), ("x.arrow", b"zzz")],
    ids=["gzip", "parquet", "arrow"],
)
def test_a_file_that_is_not_whole_is_refused(name, data, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        rows(open_source(write(tmp_path / name, data)))


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path):
    path = write(tmp_path / "log.csv", "n\n" + "\n".join(map(str, range(100))))
    batches = open_source(path).batches(10)
    next(batches)
    with path.open("a") as file:
        file.write("\n1000")
    with pytest.raises(InputError, match="changed while it was read"):
        list(batches)


def test_a_place_that_does_not_exist_or_has_no_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        open_source(tmp_path / "none.csv")
    with pytest.raises(InputError, match="which format"):
        open_source(write(tmp_path / "x.docx", b"PK"))
    with pytest.raises(InputError, match="no sub-folders"):
        open_source(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_refused(tmp_path):
    (tmp_path / "spam").mkdir(mode=0)
    with pytest.raises(InputError, match="no permission"):
        open_source(tmp_path)


def test_a_column_of_mixed_types_is_refused():
    with pytest.raises(InputError, match="'x' mixes"):
        rows(open_source(pd.DataFrame({"x": np.array([1, "a"], dtype=object)})))


def test_subjects_of_mails_and_short_files_are_texts_also_where_they_repeat(tmp_path):
    for label, subject in (("ham", "lunch"), ("spam", "prize")):
        for at in range(12):
            (tmp_path / "mail" / label).mkdir(parents=True, exist_ok=True)
            (tmp_path / "mail" / label / f"{at}.eml").write_text(
                f"Subject: {subject}\nFrom: a@b.org\n\n{subject} {at}\n"
            )
            (tmp_path / "texts" / label).mkdir(parents=True, exist_ok=True)
            (tmp_path / "texts" / label / f"{at}.txt").write_text(subject)
    for name, texts in (("mail", ["subject", "body"]), ("texts", ["text"])):
        clf = GenerativeClassifier(calibrate=None).fit(tmp_path / name, "label")
        assert {key for key, kind in clf.schema_.kinds.items() if kind == "text"} == set(texts)


def test_a_folder_with_the_mails_of_one_class_is_mail(tmp_path):
    (tmp_path / "lessons" / "ham").mkdir(parents=True)
    (tmp_path / "lessons" / "ham" / "1.eml").write_text("Subject: lunch\n\nAt noon?\n")
    source = open_source(tmp_path / "lessons")
    assert source.columns == ("subject", "from", "body", "label")
    assert [row["label"] for _, row in source.documents()] == ["ham"]
