"""A .txt file is one text a line, a table, or one text: what commands read, and what they say about it."""

import csv
import gzip
import io
import json

import pytest

SPAM = "free prize, claim your cash now"
HAM = "see you at lunch, later today"


def answers(done):
    assert done.code == 0, done.err
    return [row["prediction"] for row in csv.DictReader(io.StringIO(done.out))]


@pytest.fixture
def messages(tmp_path, monkeypatch, program_here):
    """A model of texts of one line, in a folder with a file of one text a line."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"label": name, "body": f"{text} {at}"} for at in range(12) for name, text in (("spam", SPAM), ("ham", HAM))
    ]
    (tmp_path / "sms.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert program_here("fit", "sms.jsonl", "--label", "label", "--text", "body").code == 0
    (tmp_path / "new.txt").write_text(f"{SPAM}\n\n{HAM}, and, so, on\r\nlunch\n")
    return tmp_path


def test_a_model_of_short_texts_reads_a_txt_file_line_by_line(messages, program_here):
    done = program_here("predict", "sms.deciban", "new.txt")
    assert answers(done) == ["spam", "ham", "ham"]
    assert "new.txt is read as one text a line (as one text: --read-as text)" in done.err
    assert len(answers(program_here("predict", "sms.deciban", "new.txt", "--read-as", "text"))) == 1
    shown = program_here("explain", "sms.deciban", "new.txt", "--row", "2").out
    assert "lunch" in shown
    assert "prize" not in shown
    appended = program_here("predict", "sms.deciban", "new.txt", "--append").out
    assert [row["body"] for row in csv.DictReader(io.StringIO(appended))] == [SPAM, f"{HAM}, and, so, on", "lunch"]
    (messages / "new.txt.gz").write_bytes(gzip.compress((messages / "new.txt").read_bytes()))
    assert answers(program_here("predict", "sms.deciban", "new.txt.gz")) == ["spam", "ham", "ham"]


def test_a_txt_file_with_the_column_of_the_model_is_a_table(messages, program_here):
    (messages / "table.txt").write_text(f'id;body\n1;"{HAM}"\n2;"{SPAM}"\n')
    done = program_here("predict", "sms.deciban", "table.txt")
    assert answers(done) == ["ham", "spam"]
    assert "note" not in done.err


def test_a_model_of_long_texts_reads_a_txt_file_as_one_text(messages, program_here):
    for name, text in {"spam": SPAM, "ham": HAM}.items():
        (messages / "mails" / name).mkdir(parents=True)
        for at in range(12):
            (messages / "mails" / name / f"{at}.txt").write_text(f"{text}\n\nnumber {at}\n")
    assert program_here("fit", "mails").code == 0
    (messages / "mail.txt").write_text(f"{HAM}\n{HAM}\nfree\n")
    assert answers(program_here("predict", "mails.deciban", "mail.txt")) == ["ham"]
    assert answers(program_here("predict", "mails.deciban", "mail.txt", "--read-as", "lines")) == ["ham", "ham", "spam"]


def test_learning_and_answering_read_the_same_rows(messages, program_here):
    done = program_here("learn", "sms.deciban", "new.txt", "--class", "ham", "--json")
    assert json.loads(done.out)["rows"] == 24 + 3
    assert json.loads(program_here("unlearn", "sms.deciban", "new.txt", "--class", "ham", "--json").out)["rows"] == 24


@pytest.fixture
def tales(tmp_path, monkeypatch):
    """Texts of two subjects, with a different number of commas in each line."""
    monkeypatch.chdir(tmp_path)
    sea, sky = ["boat", "wave", "sail", "fish"], ["cloud", "plane", "wing", "star"]
    texts = [(", " if at % 3 else " ").join([*words[at % 4 :], *words]) for at in range(40) for words in (sea, sky)]
    (tmp_path / "tales.txt").write_text("\n".join(texts) + "\n")
    return texts


def topics(done):
    assert done.code == 0, done.err
    told = json.loads(done.out)
    return told["rows"], sorted(sorted(topic["words"]) for topic in told["topics"])


def test_topics_of_a_txt_file_are_those_of_its_lines(tales, tmp_path, program_here):
    asked = ("-k", "2", "--words", "4", "--json")
    done = program_here("topics", "tales.txt", *asked, "-o", "tales.deciban")
    wanted = 80, [["boat", "fish", "sail", "wave"], ["cloud", "plane", "star", "wing"]]
    assert topics(done) == wanted
    assert "tales.txt is read as one text a line (as a table: --text COLUMN or --read-as csv)" in done.err
    (tmp_path / "table.txt").write_text("id\ttale\n" + "".join(f"{at}\t{text}\n" for at, text in enumerate(tales)))
    for options in ([], ["--read-as", "tsv"]):
        assert topics(program_here("topics", "table.txt", "--text", "tale", *options, *asked)) == wanted
    assert "Columns: id, tale" in program_here("topics", "table.txt").err
    (tmp_path / "folder").mkdir()
    for at, text in enumerate(tales):
        (tmp_path / "folder" / f"{at}.txt").write_text(text)
    assert topics(program_here("topics", "folder", *asked)) == wanted
    lines = program_here("predict", "tales.deciban", "tales.txt").out.splitlines()
    assert len(lines) == 81


def test_clusters_of_lines_of_text_are_refused_with_the_command_for_topics(tales, tmp_path, program_here):
    done = program_here("cluster", "tales.txt")
    assert done.code == 2
    assert "tales.txt is no table" in done.err
    assert "deciban topics tales.txt" in done.err
    (tmp_path / "numbers.txt").write_text("a;b\n" + "".join(f"{at};{at % 7}\n" for at in range(60)))
    assert program_here("cluster", "numbers.txt", "-k", "1").code == 0
    (tmp_path / "column.txt").write_text("a\n" + "".join(f"{at % 11}\n" for at in range(60)))
    assert program_here("cluster", "column.txt", "-k", "1").code == 0
