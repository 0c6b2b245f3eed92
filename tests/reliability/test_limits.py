"""Input beyond a limit is refused early: no crash, no endless wait, no memory beyond three times the limit."""

import gzip
import json
import mailbox
import os
import socket
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from deciban import GenerativeClassifier
from deciban.cli.rows import GivenDocuments
from deciban.errors import DomainError, InputError
from deciban.read import json_files, text_files
from deciban.read.files import open_source
from deciban.read.json_files import block_nests_deeper, nests_deeper
from deciban.read.mail import HIDDEN, PARAGRAPHS, html_text, raw_messages
from deciban.read.paths import Limits, refuse_special_file
from deciban.read.texts import read_sentences
from limited import run_limited

READ = """
import sys
from deciban.errors import DomainError, InputError
from deciban.read.files import open_source
from deciban.read import text_files, mail

def outcome(path, **options):
    try:
        return f"{sum(map(len, open_source(path, **options).batches()))} rows"
    except InputError as error:
        return str(error)

def most_memory():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
"""


# -- the limits --------------------------------------------------------------------------------------------------------
def test_limits_are_read_from_the_environment(monkeypatch, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"x": [[[1]]], "label": "a"}\n' * 3)
    assert open_source(file).limits == Limits()
    monkeypatch.setenv("DECIBAN_LIMITS", "depth=3, seconds=1.5")
    assert Limits.from_environment() == Limits(depth=3, seconds=1.5)
    with pytest.raises(InputError, match=r"line 1: .*nested more than 3 deep"):
        open_source(file)
    assert open_source(file, limits=Limits(depth=4)).columns == ("x", "label")


@pytest.mark.parametrize("text", ["depth", "depth=many", "width=3", "depth=0", "depth=501", "seconds=-1", "parts=nan"])
def test_a_wrong_limit_is_named(text):
    with pytest.raises(InputError, match=text.partition("=")[0]):
        Limits.parse(text)


# -- nesting of JSON ---------------------------------------------------------------------------------------------------
def depth_of(text):
    """The depth of JSON, character by character."""
    depth = deepest = 0
    quoted = escaped = False
    for letter in text:
        if quoted:
            quoted, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        else:
            depth += (letter in "[{") - (letter in "]}")
            deepest = max(deepest, depth)
    return deepest


TEXTS = st.text('[]{}"\\a,:\n', max_size=6)
VALUES = st.recursive(
    TEXTS | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), min_size=1, max_size=4),
    st.integers(1, 6),
    st.sampled_from(["\n", "\r\n", " \n"]),
)
@settings(max_examples=60, deadline=None)
def test_depth_is_what_a_count_of_brackets_says(rows, depth, end):
    text = "".join(json.dumps(row) + end for row in rows)
    for chunk in (2**21, 5):
        json_files.EXAMINED, former = chunk, json_files.EXAMINED
        try:
            assert nests_deeper(text.encode(), depth) == (depth_of(text) > depth)
            assert block_nests_deeper(text.encode(), depth) == (depth_of(text) > depth)
        finally:
            json_files.EXAMINED = former


def test_nested_json_is_refused_in_every_line(tmp_path):
    good, nested = json.dumps({"x": 1, "label": "a", "text": "a" * 200}) + "\n", "[" * 10_000 + "]" * 10_000
    files = {
        "first.jsonl": f'{{"x": 1, "z": {nested}, "label": "a"}}\n' + good,
        "later.jsonl": good * 40_000 + f'{{"x": 1, "z": {nested}, "label": "a"}}\n' + good,
        "lines.jsonl": good + '{"x": 1, "z": ' + "[\n" * 10_000 + "]\n" * 10_000 + "}\n",
        "objects.jsonl": good + '{"z":\n' * 10_000 + "1" + "}\n" * 10_000,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code = """
limit(seconds=6, megabytes=1000)
for file in sys.argv[1:]:
    print(outcome(file))
    print(outcome(file, skip_bad=True))
"""
    printed = run_limited(READ + code, *(tmp_path / name for name in files)).splitlines()
    assert "first.jsonl, line 1: " in printed[0]
    assert printed[1] == "1 rows"
    assert "later.jsonl, line 40001: " in printed[2]
    assert printed[3] == "40001 rows"
    for line in printed[4], printed[6]:  # these lines are no objects
        assert ", line 2: " in line
    assert printed[5] == printed[7] == "1 rows"


def test_the_first_lines_are_parsed_once(tmp_path, monkeypatch):
    """Their rows, and the lines skipped among them, count once each time the file is read; a changed file is read."""
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"x": i, "label": "ab"[i % 2]}) for i in range(50)]
    lines[7] = '{"x": ' + "[" * 100 + "]" * 100 + "}"
    path.write_text("\n".join(lines) + "\n")
    parsed = []
    real = json_files.arrow_json.read_json
    monkeypatch.setattr(json_files.arrow_json, "read_json", lambda *given: parsed.append(1) or real(*given))
    source = open_source(path, skip_bad=True)
    for times in (1, 2):
        assert sum(len(batch) for batch in source.batches()) == 49
        assert source.skipped.rows == 1
        assert len(parsed) == times
    source = open_source(path, skip_bad=True)
    path.write_text("\n".join(lines[:7]))
    assert sum(len(batch) for batch in source.batches()) == 7
    assert source.skipped.rows == 0


def test_a_name_in_the_last_column_of_a_sheet_does_not_fill_the_memory(tmp_path):
    """Each row of a few bytes would take 16,384 cells."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(["label", *[None] * 16_382, "x"])
    for _ in range(9000):
        sheet.append(["a"])
    book.save(tmp_path / "wide.xlsx")
    assert (tmp_path / "wide.xlsx").stat().st_size < 100_000
    code = """
outcome(sys.argv[1], limits=Limits(cells=10))
limit(seconds=8, megabytes=700)
print(outcome(sys.argv[1]))
"""
    printed = run_limited(READ + "from deciban.read.paths import Limits" + code, tmp_path / "wide.xlsx")
    assert "wide.xlsx has more than 2,049 rows of 16,384 columns. Save the sheet as CSV, or raise the limit" in printed


def test_nested_json_of_sentences_is_refused(tmp_path):
    file = tmp_path / "sentences.jsonl"
    file.write_text('{"words": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(InputError, match="nested more than 64 deep"):
        read_sentences(str(file), tagged=False)


# -- keys and letters of JSON ------------------------------------------------------------------------------------------
def test_lines_with_ever_new_keys_are_refused(tmp_path):
    """A key of one line is a column of all lines: 20,000 such lines of .5 MB would take 3 GB."""
    rows = [{f"k{i}": 1, "label": "ab"[i % 2]} for i in range(2_000)]
    same = [{"x": i, "label": "ab"[i % 2]} for i in range(4_000)]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "late.jsonl").write_text("".join(json.dumps(row) + "\n" for row in same + rows))
    (tmp_path / "new.json").write_text(json.dumps(rows))
    for name in ("new.jsonl", "late.jsonl", "new.json"):
        with pytest.raises(InputError, match=rf"{name}: the first .* different keys.*DECIBAN_LIMITS=cells="):
            open_source(tmp_path / name, limits=Limits(cells=10**6))


def test_lines_are_read_in_parts_with_the_same_result(tmp_path, monkeypatch):
    """Keys that come late, numbers that become fractions, and texts that look like dates at first."""
    rows = [{"n": i, "when": "2026-01-01", "label": "ab"[i % 2]} for i in range(60)]
    rows += [{"n": i / 2, "late": i, "when": "2026-01-02", "label": "c"} for i in range(60)]
    mixed = [*rows, *({"n": 1, "when": "soon", "label": "d"} for _ in range(60))]
    for name, every in {"rows": rows, "mixed": mixed}.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in every))
        whole = [row for table in open_source(file).batches() for row in table.data.rows()]
        with monkeypatch.context() as patch:
            patch.setattr(json_files, "CHUNK", 64)
            for cells in (1_000, 5_000, 10**9):
                source = open_source(file, limits=Limits(cells=cells))
                assert [row for table in source.batches() for row in table.data.rows()] == whole
        assert len(whole) == len(every)


def test_many_lines_without_keys_after_many_columns_are_read_in_parts(tmp_path):
    first = json.dumps({f"k{i}": i for i in range(100)}) + "\n"
    (tmp_path / "rows.jsonl").write_text(first * 9000 + "{}\n" * 50_000)
    source = open_source(tmp_path / "rows.jsonl", limits=Limits(cells=10**6))
    sizes = [len(piece) for piece in source.pieces()]
    assert sum(sizes) == 59_000
    assert max(sizes) <= 10_000


@pytest.mark.parametrize(
    "line",
    [
        b'{"x": 1, "label": "\\ud800"}',
        b'{"x": 1, "la\\udfffbel": "a"}',
        b'{"x": 1, "label": "\xff\xfe"}',
        b'{"\xff": 1}',
    ],
)
def test_lines_that_are_no_unicode_are_named(tmp_path, line):
    good = b'{"x": 1.5, "label": "a"}\n'
    (tmp_path / "rows.jsonl").write_bytes(good * 3 + line + b"\n" + good)
    with pytest.raises(InputError, match=r"rows\.jsonl, line 4: the line does not fit the columns"):
        list(open_source(tmp_path / "rows.jsonl").batches())
    source = open_source(tmp_path / "rows.jsonl", skip_bad=True)
    assert sum(map(len, source.batches())) == 4
    assert source.skipped.rows == 1


# -- dates -------------------------------------------------------------------------------------------------------------
def test_dates_that_no_calendar_holds_are_refused(tmp_path):
    far = pa.array([2**35 * 86_400_000, 0, 86_400_000, 0] * 10, pa.date64())
    seconds = pa.array([2**62, 0, 86_400, 0] * 10, pa.timestamp("s"))
    for name, column in {"far": far, "seconds": seconds}.items():
        path = tmp_path / f"{name}.arrow"
        table = pa.table({"when": column, "label": ["a", "b"] * 20})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(DomainError, match="since 1970"):
            GenerativeClassifier().fit(str(path), "label")


# -- long rows ---------------------------------------------------------------------------------------------------------
def test_long_rows_are_refused_with_little_memory(tmp_path):
    letters = b"a" * 2**24
    member = gzip.compress(letters, 1)
    text, table = b'{"x": "b", "label": "a"}\n' * 100, b"x,label\n" + b"b,a\n" * 100
    (tmp_path / "line.jsonl.gz").write_bytes(gzip.compress(text + b'{"x": "') + member * 64 + gzip.compress(b'"}\n'))
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(table) + member * 64 + gzip.compress(b",a\n"))
    (tmp_path / "cell.csv").write_bytes(table + b'"' + (letters[:-1] + b"\n") * 6 + b'",a\n')
    code = """
before = most_memory()
limit(seconds=10, megabytes=1000)
for file in sys.argv[1:]:
    print(outcome(file))
print((most_memory() - before) / 2**26)
"""
    names = ("line.jsonl.gz", "line.csv.gz", "cell.csv")
    *printed, growth = run_limited(READ + code, *(tmp_path / name for name in names)).splitlines()
    assert "line 101: the line is longer than 67,108,864 bytes" in printed[0]
    for line in printed[1:]:
        assert "row 101 is longer than 67,108,864 bytes. Is a quote left open?" in line
    assert float(growth) < 3


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_rows_within_the_limit_are_read_whatever_their_length(tmp_path, ending, encoding):
    cells = ["é", 'a "quote"', "two\nlines", "x" * 3_000_000, "y" * 50, 'five"', "z,\n" * 900_000, "end"]
    quoted = ['"' + cell.replace('"', '""') + '"' if cell != 'five"' else cell for cell in cells]
    text = "body,label" + ending + "".join(f"{cell},a{ending}" for cell in quoted)
    (tmp_path / "rows.csv").write_bytes(text.encode(encoding))
    given_encoding = {} if encoding.startswith("utf") else {"encoding": encoding}
    source = open_source(tmp_path / "rows.csv", **given_encoding)
    found = [row for table in source.batches() for row in table.data.rows()]
    assert found == [(cell, "a") for cell in cells]


def test_rows_of_a_wrong_length_are_counted_once_beside_long_rows(tmp_path):
    rows = ["b,a", "b,a,c", "b,a"] * 5_000
    (tmp_path / "rows.csv").write_text("\n".join(["body,label", *rows, "x" * 5_000_000 + ",a", "1,2,3", "end,a"]))
    source = open_source(tmp_path / "rows.csv", skip_bad=True)
    assert sum(map(len, source.batches())) == 10_002
    assert source.skipped.rows == 5_001


def test_small_limits_hold_too(tmp_path):
    (tmp_path / "rows.csv").write_text("body,label\n" + "b,a\n" * 10 + "x" * 50_000 + ",a\n")
    (tmp_path / "rows.jsonl").write_text('{"x": "b"}\n' * 10 + json.dumps({"x": "b" * 50_000}) + '\n{"x": "c"}\n')
    small = Limits(record_bytes=10_000)
    for name in ("rows.csv", "rows.jsonl"):
        assert sum(map(len, open_source(tmp_path / name).batches())) > 10
        with pytest.raises(InputError, match="is longer than 10,") as refused:
            list(open_source(tmp_path / name, limits=small).batches())
        assert refused.value.row == 11
        assert "DECIBAN_LIMITS=record_bytes=20000" in str(refused.value.remedy)
    source = open_source(tmp_path / "rows.jsonl", skip_bad=True, limits=small)
    assert sum(map(len, source.batches())) == 11
    assert source.skipped.rows == 1


def test_a_header_that_does_not_end_is_refused(tmp_path):
    for name, text in {"cell.csv": "a" * 2_000_000, "cells.csv": "".join(f"c{i}," for i in range(400_000))}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=f"{name} has (no header|a header of more)"):
            open_source(tmp_path / name)


@pytest.mark.parametrize("name", ["rows.csv.zst", "rows.jsonl.zst", "rows.arrow.zst"])
def test_a_compression_ratio_beyond_the_limit_is_refused(tmp_path, name):
    line = {
        "c": b"x,label\n" + (b"b" * 60 + b",a\n") * 2**19,
        "j": b'{"x": "b", "label": "a"}\n' * 2**20,
        "a": bytes(2**25),
    }
    content = line[name[5]]
    (tmp_path / name).write_bytes(pa.compress(content, "zstd", asbytes=True))
    with pytest.raises(InputError, match=r"compressed bytes, a ratio above 1,500\. Decompress it first"):
        list(open_source(tmp_path / name).batches())


def test_a_compressed_table_is_unpacked_up_to_the_limit(tmp_path):
    (tmp_path / "rows.arrow.gz").write_bytes(gzip.compress(os.urandom(2**20)))
    with pytest.raises(InputError, match=r"holds more than 1,000 bytes when it is decompressed"):
        open_source(tmp_path / "rows.arrow.gz", limits=Limits(unpacked_bytes=1000))


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_a_row_of_an_arrow_file_may_be_too_long(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    words = pa.array(["a", "b" * 100, "c", "d"])
    table = pa.table(
        {
            "text": words.dictionary_encode() if ending == "arrow" else words,
            "x": [1, 2, 3, 4],
            "parts": [[1], [2], [3] * 30, [4]],
        }
    )
    if ending == "parquet":
        parquet.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(InputError, match=rf"rows\.{ending}, row 2: the row is longer than 90 bytes"):
        list(open_source(path, limits=Limits(record_bytes=90)).batches())
    source = open_source(path, limits=Limits(record_bytes=90), skip_bad=True)
    (rows,) = source.batches()
    assert len(rows) == 2
    assert source.skipped.rows == 2
    assert [source.place(row)[1] for row in range(2)] == [1, 4]


# -- mail --------------------------------------------------------------------------------------------------------------
GOOD = b"Subject: lunch\nFrom: ada@example.org\n\nAt noon?\n"
BAD = {
    "messages within messages": b"Content-Type: message/rfc822\n\n" * 1000 + b"\nlunch\n",
    "parts within parts": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(400)
    ),
    "encoded words": b"Subject: " + b" ".join([b"=?utf-8?q?a?="] * 100_000) + b"\n\nlunch\n",
    "parameters": b"Content-Type: multipart/mixed" + b";" * 1_000_000 + b"\n\nlunch\n",
    "parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nlunch\n" * 100_000,
}
PAGES = ["<a ", "<!--", "<?", "</", "<a b='>\"", "<script>", "<a =\"' ", "&#9", "<p><", "\n ", "<title><"]


def test_pages_and_charsets_take_linear_time(tmp_path):
    code = f"""
limit(seconds=4, megabytes=500)
for unit in {PAGES!r}:
    mail.html_text(unit * (250_000 // len(unit)))
mail.html_text("&#" + "9" * 250_000)
for charset in ("punycode", "idna"):
    body = mail.fields_of(f"Content-Type: text/plain; charset={{charset}}\\n\\n".encode() + b"a." * 500_000)["body"]
    assert len(body) == 1_000_000
print("done")
"""
    assert run_limited(READ + code) == "done\n"


def test_a_bad_mail_costs_one_mail(tmp_path):
    for label in ("ham", "spam"):
        mails = [GOOD, *BAD.values(), GOOD] if label == "spam" else [GOOD, GOOD]
        (tmp_path / f"{label}.mbox").write_bytes(b"".join(b"From x\n" + each + b"\n" for each in mails))
    code = """
limit(seconds=6, megabytes=500)
print(outcome(sys.argv[1]))
source = open_source(sys.argv[1], skip_bad=True)
print(sum(map(len, source.batches())), source.skipped.rows)
"""
    error, counts = run_limited(READ + code, tmp_path).splitlines()
    assert "spam.mbox, message 2: the message has more than 64 parts within one another. Remove the message" in error
    assert counts == f"4 {len(BAD)}"


@pytest.mark.parametrize("name", BAD)
def test_each_bad_mail_is_refused_with_its_place_in_every_kind_of_source(tmp_path, name):
    for folder, ending in (("a", "eml"), ("b", "eml"), ("texts/a", "txt"), ("given", "txt")):
        (tmp_path / folder).mkdir(parents=True)
        for number, data in enumerate([GOOD, BAD[name], GOOD]):
            start = b"From x\n" if folder.startswith("texts") else b""
            (tmp_path / folder / f"{number}.{ending}").write_bytes(start + data)
    sources = {
        "1.eml": lambda skip: open_source(tmp_path / "a", skip_bad=skip),
        "1.txt, message 1": lambda skip: open_source(tmp_path / "texts", format="folder", skip_bad=skip),
        "1.txt": lambda skip: GivenDocuments(str(tmp_path / "given"), ("subject", "from", "body"), skip),
    }
    for place, source in sources.items():
        with pytest.raises(InputError, match=rf"{place}: the (message|header) .* DECIBAN_LIMITS="):
            list(source(False).batches())
        skipping = source(True)
        assert sum(map(len, skipping.batches())) == 2
        assert skipping.skipped.rows == 1


def test_a_long_mail_and_a_slow_mail_cost_one_mail(tmp_path):
    mails = [GOOD, b"Subject: x\n\n" + b"word " * 4000 + b"\n", GOOD]
    (tmp_path / "all.mbox").write_bytes(b"".join(b"From x\n" + each + b"\n" for each in mails))
    for limits in (Limits(record_bytes=10_000), Limits(record_bytes=10_000, header_bytes=100)):
        source = open_source(tmp_path / "all.mbox", skip_bad=True, limits=limits)
        assert sum(map(len, source.batches())) == 2
        assert "message 2: the message is longer than 10,000 bytes" in str(source.skipped)
    with pytest.raises(InputError, match=r"takes more than 1e-09 seconds"):
        list(open_source(tmp_path / "all.mbox", limits=Limits(seconds=1e-9)).batches())


@given(st.lists(st.sampled_from([b"From x\n", b"\n", b"Subject: a\n", b"text", b">From y\n", b"\r\n"]), max_size=30))
@settings(max_examples=150, deadline=None)
def test_an_mbox_is_split_as_the_standard_library_does(tmp_path_factory, pieces):
    file = tmp_path_factory.mktemp("box") / "all.mbox"
    file.write_bytes(b"From x\nSubject: first\n" + b"".join(pieces))
    box = mailbox.mbox(file, factory=None, create=False)
    try:
        wanted = [box.get_bytes(key) for key in range(len(box))]
    finally:
        box.close()
    assert [message.data for message in raw_messages(file, Limits())] == wanted


class Visible(HTMLParser):
    """The visible text of a page by the parser of the standard library, which takes quadratic time."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in HIDDEN
        self.text += ["\n"] * (tag in PARAGRAPHS)

    def handle_endtag(self, tag):
        self.hidden = max(0, self.hidden - (tag in HIDDEN))
        self.text += ["\n"] * (tag in PARAGRAPHS)

    def handle_data(self, data):
        self.text += [data] * (not self.hidden)


WORDS = st.sampled_from(
    ["lunch ", "at noon", " 3 < 4 ", "&amp;", "&eacute;", "&#8364;", "&nothing;", "R&D", '"', "it's"]
)
ATTRIBUTES = st.sampled_from(["", ' href="x>y"', " class='a\"b'", " checked", "\nid=3 ", ' title="<b>"', " a = 'b'"])
TAGS = st.sampled_from(["p", "DIV", "b", "title", "li", "span", "br"])
PIECES = st.one_of(
    WORDS,
    st.sampled_from(["<!-- <p>no</p> -->", "<!DOCTYPE html>", "<br/>", "<script>if (a<b) '<p>'</script>", "<hr />"]),
    st.builds(lambda tag, given, text: f"<{tag}{given}>{text}</{tag}>", TAGS, ATTRIBUTES, WORDS),
    st.just("<STYLE>p { x: '</p>' }</STYLE>"),
)


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=200, deadline=None)
def test_the_text_of_a_page_is_that_of_the_standard_library(page):
    parser = Visible()
    parser.feed(page)
    parser.close()
    lines = [" ".join(line.split()) for line in "".join(parser.text).split("\n")]
    assert [" ".join(line.split()) for line in html_text(page).split("\n")] == (
        [line for line in lines if line] or [""]
    )


# -- what is not a file ------------------------------------------------------------------------------------------------
def test_pipes_sockets_and_devices_are_refused_and_not_waited_for(tmp_path):
    for folder in ("texts/a", "texts/b", "mail", "box/cur", "box/new", "box/tmp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "texts/b/1.txt").write_text("words")
    (tmp_path / "mail/2.eml").write_bytes(GOOD)
    (tmp_path / "box/cur/2").write_bytes(GOOD)
    pipes = ["rows.csv", "rows.jsonl", "rows.parquet", "one.eml", "texts/a/1.txt", "mail/1.eml", "box/cur/1"]
    for name in pipes:
        os.mkfifo(tmp_path / name)
    code = """
limit(seconds=5, megabytes=500)
for path in sys.argv[1:]:
    print(outcome(path), "|", outcome(path, skip_bad=True))
"""
    opened = ["rows.csv", "rows.jsonl", "rows.parquet", "one.eml", "texts", "mail", "box"]
    printed = run_limited(READ + code, *(tmp_path / name for name in opened)).splitlines()
    for line in printed:
        assert " is a named pipe, not a file. Save its contents to a file first" in line.partition("|")[0]
    assert [line.partition("| ")[2] for line in printed[4:]] == ["1 rows"] * 3


def test_a_socket_and_a_device_are_no_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("rows.csv")
        with pytest.raises(InputError, match=r"rows\.csv is a socket, not a file"):
            open_source("rows.csv")
    with pytest.raises(InputError, match="/dev/zero is a device, not a file"):
        open_source("/dev/zero", format="jsonl")
    with pytest.raises(InputError, match="/dev/zero is a device, not a file"):
        read_sentences("/dev/zero", tagged=False)
    refuse_special_file(tmp_path)
    refuse_special_file(tmp_path / "nothing")


def test_links_to_folders_above_are_not_followed(tmp_path):
    for label in ("a", "b"):
        (tmp_path / label / "more").mkdir(parents=True)
        (tmp_path / label / "more" / "1.txt").write_text("words")
        for name in ("up", "again"):
            (tmp_path / label / "more" / name).symlink_to(tmp_path / label)
    assert sum(map(len, open_source(tmp_path, format="folder").batches())) == 2


def test_long_rows_are_split_in_blocks_of_any_size():
    record = text_files.re.compile(rb"[^\n]*\n")
    text = b"".join(b"%d\n" % (10**size) for size in (1, 30, 2, 5, 90, 1, 1, 64))
    for size in (1, 2, 7, 50, 1000):
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        groups = list(text_files.split_records(pieces, record, 92))
        assert b"".join(groups) == text
        assert all(group.endswith(b"\n") for group in groups)
        pieces = (text[at : at + size] for at in range(0, len(text), size))
        with pytest.raises(OverflowError):
            list(text_files.split_records(pieces, record, 91))
