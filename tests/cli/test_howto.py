"""docs/howto/command-line.md shows what really happens: every command is run as a process, in the page's order.

`PYTHONPATH=tests:tools python tests/cli/test_howto.py` writes the answers into the pages.
"""

import json
import re
import shlex
from concurrent.futures import Future
from pathlib import Path

import pytest
from typer.main import get_command

from deciban.cli.app import COMMANDS, EXAMPLES, program_with
from deciban.service.lessons import Lesson
from deciban.service.teacher import Teacher
from pages import BLOCK, commands, session, transcript
from program import process

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "command-line.md"
SERVICE_PAGE = PAGE.with_name("service.md")  # tests/service/test_howto.py runs it
PAGES = [
    pytest.param(PAGE, marks=pytest.mark.slow, id=PAGE.name),
    pytest.param(ROOT / "README.md", id="README.md"),
    pytest.param(ROOT / "docs" / "tutorial-mail.md", marks=pytest.mark.slow, id="tutorial-mail.md"),
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_happens(page, tmp_path):
    run = session(tmp_path, page)
    for command, shown in commands(page):
        assert run(command) == shown, f"$ {command}"


def test_the_page_shows_every_command():
    shown = " ".join(BLOCK.findall(PAGE.read_text() + SERVICE_PAGE.read_text()))
    assert [name for name in EXAMPLES if f"deciban {name} " not in shown and name != "demo"] == []


@pytest.fixture
def full(here):
    """Everything that the examples of --help name."""
    for name, texts in {
        "C": ["int main(void) { return 0; }", "static void f(char *p) { p++; }", "struct node { int next; };"],
        "Python": ["def main(): return None", "import sys; print(sys.argv)", "for x in range(3): print(x)"],
    }.items():
        (here / "languages" / name).mkdir(parents=True)
        for at, text in enumerate(texts * 8):
            (here / "languages" / name / f"{at}.txt").write_text(f"{text} {'word' * at}")
    (here / "mystery.txt").write_text("import this; print(this)")
    (here / "other.csv").write_text("score,same\n1.2,yes\n-0.3,no\n0.4,no\n2.1,yes\n")
    (here / "tagged.tsv").write_text("the\tDET\ndog\tNOUN\n\n" * 3)
    (here / "new.txt").write_text("the dog\n")
    line = "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
    for name in ("train.conllu", "test.conllu"):
        (here / name).write_text(line * 3)
    for name in ("paris", "oslo"):
        (here / f"{name}.deciban").write_bytes((here / "tumours.deciban").read_bytes())
    (here / "tumours.deciban").rename("t.deciban")
    return here


def write_receipt(folder):
    """Teach and undo a lesson, and keep the receipt."""
    teacher = Teacher(folder / "tumours.deciban")
    try:
        for lesson in (Lesson("learn", [{"radius": 14.2}], ["benign"]), Lesson("undo", undoes=1)):
            future = Future()
            teacher.submit(lesson, future)
            entry, _ = future.result(20)
    finally:
        teacher.close()
    (folder / "receipt.json").write_text(json.dumps(entry.receipt))


@pytest.mark.slow
def test_the_examples_of_every_help_work(full, said):
    program_with(None)
    for name in COMMANDS:
        assert EXAMPLES[name], name
        if name in ("recalibrate", "evaluate"):  # which want the rows as they were learnt, not as they were corrected
            (full / "tumours.deciban").write_bytes((full / "oslo.deciban").read_bytes())
        if name == "verify":
            write_receipt(full)
        for example in EXAMPLES[name]:
            words = shlex.split(example)
            assert words[:2] == ["deciban", name]
            if name == "demo":
                continue  # tests/test_demo.py runs it
            done = (
                process(full, *words[1 : words.index("<")], stdin=(full / words[-1]).read_text())
                if "<" in words
                else said(*words[1:])
            )
            assert done.code == 0, (example, done.err)


def test_help_shows_every_command_with_its_examples(here):
    text = process(here, "--help").out
    program = get_command(program_with(None))
    assert list(program.commands) == list(COMMANDS)
    assert [name for name in EXAMPLES if not re.search(rf"│ {name} ", text)] == []
    assert set(program.commands) == set(EXAMPLES)
    shown = " ".join(process(here, "predict", "--help").out.split())
    assert all(example in shown for example in EXAMPLES["predict"])


def rewrite(page, folder):
    """Write the answers into a page."""
    run = session(Path(folder), page)

    def answered(block):
        lines = [f"$ {command}\n{run(command)}" for command, _ in transcript(block[1])]
        return f"```console\n{''.join(lines)}```"

    page.write_text(BLOCK.sub(answered, page.read_text()))


if __name__ == "__main__":
    import tempfile

    for (page,) in (case.values for case in PAGES):
        with tempfile.TemporaryDirectory() as name:
            rewrite(page, name)
