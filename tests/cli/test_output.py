"""Output is complete or an error is reported; names cannot send commands to a terminal or formulas to a spreadsheet."""

import ast
import json
import os
import re
import resource
import subprocess
import tempfile
from pathlib import Path

import pytest

import deciban.cli
from cli.terminals import OnTerminal
from deciban import load
from deciban.cli.output import CompleteFile
from deciban.cli.tables import NUMBER
from deciban.store.files import create_locked, unlock
from deciban.terminal import one_line
from program import PROGRAM, environment, forked

NASTY = "a\x1b]0;owned\x07\x9b2J\rb"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")  # a terminal that shows colours gets \x1b, too


# -- complete writes ---------------------------------------------------------------------------------------------------
@pytest.fixture
def many(here):
    """1,000 rows to classify, whose answers take about 50 KB."""
    lines = (here / "new.csv").read_text().splitlines()
    (here / "many.csv").write_text("\n".join([lines[0], *lines[1:] * 200]) + "\n")
    return here


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("output", ["csv", "jsonl", "parquet"])
def test_a_stdout_that_takes_only_a_part_is_an_error(many, unbuffered, output):
    command = ["predict", "tumours.deciban", "many.csv", "--format", output]
    with open("answers", "wb") as out:
        done = forked(many, *command, stdout=out.fileno(), limit=1000, unbuffered=unbuffered)
    assert done.code == 1
    assert re.fullmatch(r"deciban: File too large\. .*\n", done.err)


def test_a_part_is_an_error_with_pythonunbuffered(many):
    with open("answers", "wb") as out:
        done = subprocess.run(
            [*PROGRAM, "predict", "tumours.deciban", "many.csv"],
            cwd=many, env=environment(PYTHONUNBUFFERED="1"), stdout=out, stderr=subprocess.PIPE, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(rb"deciban: File too large\. .*\n", done.stderr)


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "tumours.deciban", "new.csv"],
        ["explain", "tumours.deciban", "new.csv"],
        ["inspect", "tumours.deciban", "--json"],
        ["--version"],
        ["--help"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_full_disk_behind_stdout_is_an_error(here, arguments, unbuffered):
    with open("/dev/full", "wb") as full:
        done = forked(here, *arguments, stdout=full.fileno(), unbuffered=unbuffered)
    assert done.code == 1
    assert done.err.startswith("deciban: No space left on device")


def rows_of(path):
    return load(path).stats_.rows.sum()


def test_a_model_that_was_saved_is_named_when_its_report_cannot_be_printed(here):
    with open("/dev/full", "wb") as full:
        done = forked(here, "learn", "tumours.deciban", "ten.csv", stdout=full.fileno())
    assert done.code == 1
    assert "note: tumours.deciban was saved; only the report on it is incomplete." in done.err
    assert rows_of("tumours.deciban") == 574


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_does_not_write_into_another_file(here, closed):
    """Without a stdout, the descriptor of the next file that is opened would be that of stdout."""
    done = forked(here, "learn", "tumours.deciban", "ten.csv", closed=closed)
    assert done.code == (1 if closed == 1 else 0), done.err
    assert rows_of("tumours.deciban") == 574


def test_a_stream_that_is_not_ready_is_waited_for():
    """A pipe that another process made non-blocking takes a part at a time."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    data = os.urandom(2**20)
    child = os.fork()
    if not child:
        os.close(reading)
        written = CompleteFile(writing, "w", closefd=False).write(data)
        os._exit(0 if written == len(data) else 1)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read() == data
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_other_module_of_the_command_line_writes():
    """Only cli/output.py may name print, sys.stdout, sys.stderr, open(…, "w") and the like.

    cli/mail_client.py runs before the command line is imported, and writes everything by itself.
    """
    found = []
    for path in sorted(Path(deciban.cli.__file__).parent.glob("*.py")):
        if path.name in ("output.py", "mail_client.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""
            if text in ("print", "sys.stdout", "sys.stderr", "os.write") or text.endswith((".write_text", ".savefig")):
                found.append(f"{path.name}: {text}")
    assert found == ["figures.py: figure.savefig"]  # into memory


# -- whole files -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["explain", "tumours.deciban", "new.csv", "--html", "why.html"], "why.html"),
        (["explain", "tumours.deciban", "new.csv", "--svg", "why.svg"], "why.svg"),
        (["inspect", "tumours.deciban", "-o", "parameters.csv"], "parameters.csv"),
        (["topics", "texts.csv", "-k", "2", "--text", "text", "--html", "topics.html"], "topics.html"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_pages_plots_and_tables_are_whole_or_not_there(here, arguments, target):
    (here / "texts.csv").write_text("text\n" + "the cat sat on a mat\nstocks fell and bonds rose\n" * 30)
    done = forked(here, *arguments, limit=400)
    assert done.code == 1, done.err
    assert f"deciban: {target} could not be written (File too large)" in done.err
    assert not (here / target).exists()
    assert not list(here.glob(".*.deciban-tmp"))


def test_files_of_killed_writers_go_when_the_next_command_starts(here):
    abandoned = here / f".tumours.deciban.{'0' * 16}.deciban-tmp"
    answers = here / f".answers.csv.{'0' * 16}.deciban-tmp"
    running = here / f".answers.csv.{'1' * 16}.deciban-tmp"
    for path in (abandoned, answers):
        path.write_bytes(b"half")
    descriptor, lock = create_locked(running, 0o600)
    assert forked(here, "learn", "tumours.deciban", "nothing.csv").code == 2
    assert forked(here, "predict", "tumours.deciban", "nothing.csv", "-o", "answers.csv").code == 2
    assert not abandoned.exists()
    assert not answers.exists()
    assert running.exists()
    os.close(descriptor)
    unlock(lock)


def test_a_copy_of_stdin_that_a_killed_command_left_is_removed(here, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    left = folder / f"deciban-stdin-{'0' * 16}.deciban-tmp"
    left.write_bytes(b"rows")
    assert forked(here, "predict", "tumours.deciban", "new.csv").code == 0
    assert not left.exists()


# -- names on terminals ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A table whose classes, columns, categories and file name hold control characters."""
    tmp_path = tmp_path_factory.mktemp("nasty")
    rows = [f'"{NASTY}",{i % 5},"{NASTY} {i % 2}"\n"other",{i % 7},"plain"\n' for i in range(40)]
    (tmp_path / f"{NASTY}.csv").write_text(f'label,"{NASTY} x","{NASTY} c"\n' + "".join(rows), newline="")
    done = forked(tmp_path, "fit", f"{NASTY}.csv", "--label", "label", "-o", f"{NASTY}.deciban")
    assert done.code == 0, done.err
    assert not CONTROL.search(done.out.replace("\n", ""))
    assert "\x1b" not in done.out
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", f"{NASTY}.deciban", f"{NASTY}.csv", "--append"],
        ["predict", f"{NASTY}.deciban", f"{NASTY}.csv", "--json"],
        ["explain", f"{NASTY}.deciban", f"{NASTY}.csv"],
        ["explain", f"{NASTY}.deciban", f"{NASTY}.csv", "--json"],
        ["evaluate", f"{NASTY}.deciban", f"{NASTY}.csv"],
        ["inspect", f"{NASTY}.deciban"],
        ["learn", f"{NASTY}.deciban", f"{NASTY}.csv"],
        ["sample", f"{NASTY}.deciban"],
        ["predict", f"{NASTY}.deciban", f"{NASTY}.tsv"],
        ["predict", f"{NASTY}.deciban", f"{NASTY}.csv", "--prior", f"{NASTY}?=.5"],
        ["predict", f"{NASTY}.csv", f"{NASTY}.csv", "--debug"],
        ["fit", f"{NASTY}.csv"],
    ],
    ids=lambda arguments: f"{arguments[0]}-{arguments[-1].split('.')[-1]}",
)
def test_control_characters_in_names_are_escaped_on_terminals(nasty, arguments):
    _, seen = OnTerminal(nasty, *arguments, fork=True, NO_COLOR="1").finish()
    shown = re.sub(r"\x1b\[[0-9;]*m|\r\n", "", seen)  # styles that rich writes
    assert not CONTROL.search(shown)
    assert "\x1b" not in shown
    assert r"\x1b]0;owned\x07" in shown or r"\u001b]0;owned\u0007" in shown


def test_tables_and_json_in_pipes_are_as_they_were_read(nasty):
    done = forked(nasty, "predict", f"{NASTY}.deciban", f"{NASTY}.csv")
    assert NASTY in done.raw.decode()
    done = forked(nasty, "predict", f"{NASTY}.deciban", f"{NASTY}.csv", "--json")
    assert json.loads(done.out.splitlines()[0])["prediction"] == NASTY


def test_json_on_a_terminal_means_the_same(nasty):
    _, seen = OnTerminal(
        nasty, "predict", f"{NASTY}.deciban", f"{NASTY}.csv", "--json", fork=True, NO_COLOR="1"
    ).finish()
    assert json.loads(seen.splitlines()[0])["prediction"] == NASTY


def test_errors_are_broken_between_words_on_a_terminal(tmp_path):
    names = [f"feature{number}" for number in range(30)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" * 30) + "\n")
    arguments = ("fit", "wide.csv", "--label", "nothing", "-o", "x.deciban")
    code, seen = OnTerminal(tmp_path, *arguments, fork=True, NO_COLOR="1", COLUMNS="80").finish()
    assert code == 2
    lines = seen.strip().split("\r\n")
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert all(f"'{name}'" in seen for name in names[:12])  # none is broken
    piped = forked(tmp_path, *arguments)
    assert piped.err.count("\n") == 1
    assert piped.err.split() == " ".join(lines).split()


def test_direction_marks_and_lone_surrogates_are_escaped():
    assert one_line("\u202eevil\u2066 \udcff ok é 漢") == "\\u202eevil\\u2066 \\udcff ok é 漢"


# -- spreadsheets ------------------------------------------------------------------------------------------------------
FORMULAS = ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tx", "\rx"]


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    """A table with formulas as categories, labels and a column name, and numbers below zero."""
    tmp_path = tmp_path_factory.mktemp("formulas")
    names = [*FORMULAS, "plain"]
    rows = [f'"{names[i % 7]}",{-i / 7:.3f},-{i}{"x" * (i % 2)},"{names[i % 7]}"\n' for i in range(140)]
    (tmp_path / "t.csv").write_text("label,z,w,@name\n" + "".join(rows), newline="")
    done = forked(tmp_path, "fit", "t.csv", "--label", "label", "--column", "w=ignore")
    assert done.code == 0, done.err
    return tmp_path


def cells(table):
    import csv
    import io

    return list(csv.reader(io.StringIO(table, newline="")))


def test_spreadsheet_safe_guards_texts_and_leaves_numbers(formulas):
    plain = cells(forked(formulas, "predict", "t.deciban", "t.csv", "--append").raw.decode())
    safe = cells(forked(formulas, "predict", "t.deciban", "t.csv", "--append", "--spreadsheet-safe").raw.decode())
    assert len(plain) == len(safe) == 141
    changed = set()
    for before, after in zip(plain, safe):
        for at, (one, other) in enumerate(zip(before, after)):
            if one != other:
                assert other == f"'{one}"
                changed.add((at, one))
    assert {one for at, one in changed if at == 0} == set(FORMULAS)
    assert {one for at, one in changed if at == 3} == {*FORMULAS, "@name"}
    assert {one for at, one in changed if at == 2} == {f"-{i}x" for i in range(1, 140, 2)}  # -2 is a number
    assert {at for at, _ in changed} <= {0, 2, 3, 4}  # never z, probability, evidence or P(class)
    begin = {cell[0] for row in safe for at, cell in enumerate(row) if cell and not re.search(NUMBER, cell)}
    assert not begin & set("=+-@\t\r")


def test_spreadsheet_safe_is_off_by_default_and_for_csv_only(formulas):
    assert "\n=1+1," in forked(formulas, "predict", "t.deciban", "t.csv").out
    for command in (["predict", "t.deciban", "t.csv"], ["sample", "t.deciban"]):
        done = forked(formulas, *command, "--json", "--spreadsheet-safe")
        assert done.code == 2
        assert "--spreadsheet-safe" in done.err


@pytest.mark.parametrize("command", [["sample", "t.deciban"], ["inspect", "t.deciban", "-o", "p.csv"]])
def test_other_tables_are_guarded_too(formulas, command):
    done = forked(formulas, *command, "--spreadsheet-safe")
    assert done.code == 0, done.err
    table = (formulas / "p.csv").read_text() if "-o" in command else done.raw.decode()
    assert any(cell.startswith("'") for row in cells(table) for cell in row)
    assert not any(re.match(r"[=@\t\r]", cell) for row in cells(table) for cell in row)


def test_numbers_are_recognised():
    for text in ("-1", "+1.5", "-.5e-3", "1.", "-inf", "NaN"):
        assert re.search(NUMBER, text)
    for text in ("-1-1", "+", "-", "=1", "-1\n=2", "1e", "@1", "-1 "):
        assert not re.search(NUMBER, text)
