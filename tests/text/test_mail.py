"""Mail files are read as rows of subject, sender and text, with the encodings and defects of real mail."""

import mailbox
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deciban import GenerativeClassifier, Text
from deciban.errors import InputError
from deciban.read.files import open_source
from deciban.read.mail import FIELDS, fields_of, html_text, read_mail


def message(subject="Lunch", body="At noon?", html=None, sender="Ada <ada@example.org>"):
    made = EmailMessage()
    made["Subject"], made["From"] = subject, sender
    made.set_content(body)
    if html is not None:
        made.add_alternative(html, subtype="html")
    return made


def test_parts_are_decoded_and_fields_stand_by_themselves():
    made = message("Déjà vu, encore", "Crème brûlée à 8 h")
    made.add_attachment(b"\x00\x01", maintype="image", subtype="png", filename="x.png")
    made.add_attachment("not for reading", filename="notes.txt")
    assert fields_of(bytes(made)) == {
        "subject": "Déjà vu, encore",
        "from": "Ada <ada@example.org>",
        "body": "Crème brûlée à 8 h",
    }


def test_of_alternatives_the_plain_text_is_read_unless_it_is_empty():
    page = "<html><head><title>T</title></head><body><p>Buy<br>now</p><style>p{}</style></body></html>"
    assert fields_of(bytes(message(body="plain words", html=page)))["body"] == "plain words"
    assert fields_of(bytes(message(body=" \n", html=page)))["body"] == "Buy\nnow"


def test_a_forwarded_message_is_read_too():
    outer = message(body="see below")
    outer.add_attachment(message("inner", "the inner words"))
    assert fields_of(bytes(outer))["body"].split("\n") == ["see below", "", "the inner words"]


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"Content-Type: text/plain; charset=latin-1\n\ncaf\xe9", "café"),
        (b"Content-Type: text/plain; charset=no-such-set\n\ncaf\xc3\xa9", "café"),
        (b"Content-Type: text/plain; charset=utf-8\n\ncaf\xe9", "café"),
        (b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nY2Fmw6k=", "café"),
        (b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nfirst\n--b--\n", "first"),
        (b"", ""),
        (b"no headers at all", "no headers at all"),
    ],
)
def test_odd_messages_are_read_as_well_as_can_be(raw, body):
    assert fields_of(raw)["body"] == body


def test_files_boxes_and_folders(tmp_path):
    mails = [message(f"number {i}", f"text {i}") for i in range(3)]
    for i, mail in enumerate(mails):
        (tmp_path / f"{i}.eml").write_bytes(bytes(mail))
    box = mailbox.mbox(tmp_path / "all.mbox")
    kept = mailbox.Maildir(tmp_path / "kept")
    for mail in mails:
        box.add(mail)
        kept.add(mail)
    box.close()
    wanted = [fields_of(bytes(mail)) for mail in mails]
    assert list(read_mail(tmp_path)) == wanted + wanted  # the .eml files, then the mbox
    assert list(read_mail(tmp_path / "all.mbox")) == wanted
    assert sorted(read_mail(tmp_path / "kept"), key=lambda row: row["subject"]) == wanted
    assert list(read_mail(tmp_path / "1.eml")) == wanted[1:2]


def test_a_folder_with_a_box_per_class_is_a_table_with_labels(tmp_path):
    words = {"spam": "free prize money", "ham": "lunch at noon"}
    for label, said in words.items():
        (tmp_path / label).mkdir()
        for i in range(10):
            (tmp_path / label / f"{i}.eml").write_bytes(bytes(message(said, said)))
    source = open_source(tmp_path)
    assert source.columns == (*FIELDS, "label")
    clf = GenerativeClassifier({"subject": Text(), "body": Text()}).fit(tmp_path, "label")
    assert clf.predict(tmp_path / "spam" / "3.eml").tolist() == ["spam"]


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.eml cannot be read"):
        list(read_mail(tmp_path / "nowhere.eml"))


@given(
    st.binary(max_size=400), st.sampled_from([b"", b"Content-Type: text/html\n\n", b"Subject: =?", b"From: =?utf-8?b?"])
)
@settings(max_examples=200, deadline=None)
def test_no_bytes_crash_it_and_every_field_is_text(raw, head):
    row = fields_of(head + raw)
    assert tuple(row) == FIELDS
    for text in row.values():
        text.encode()


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_page_crashes_the_reader(page):
    html_text(page)
