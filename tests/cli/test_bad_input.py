"""Whatever is wrong, there is one paragraph that says so, the right exit code, and nothing is lost."""

import os

import pytest

from deciban.cli import app, process

WRONG = {
    # what was typed: (exit code, what the paragraph says)
    "predict nothing.deciban new.csv": (2, "there is no file 'nothing.deciban'"),
    "predict tumour.deciban new.csv": (2, "Did you mean 'tumours.deciban'"),
    "predict tumours.deciban newer.csv": (2, "there is no file 'newer.csv'"),
    "predict nowhere/tumours.deciban new.csv": (2, "there is no such folder"),
    "predict . new.csv": (2, "is a folder"),
    "predict new.csv new.csv": (1, "new.csv"),
    "predict tumours.deciban tumours.deciban": (1, "cannot be told by its name"),
    "predict tumours.deciban empty.csv": (1, "empty.csv is empty"),
    "predict tumours.deciban binary.csv": (1, "binary.csv"),
    "predict tumours.deciban cut.csv": (2, "cut.csv has none of the columns of the model: 'radius'"),
    "learn tumours.deciban half.csv": (1, "the table has no column 'radius'"),
    "predict tumours.deciban words.csv": (1, "words.csv, line 3"),
    "predict tumours.deciban ragged.csv": (1, "ragged.csv, line 3: the row has 3 cells"),
    "predict tumours.deciban new.csv --prior malign=.5": (2, "no class 'malign' (did you mean 'malignant'?)"),
    "predict tumours.deciban new.csv --prior malignant": (2, "NAME=VALUE"),
    "predict tumours.deciban new.csv --prior malignant=much": (2, "'much' is not a number"),
    "predict tumours.deciban new.csv --prior malignant=2": (2, "probabilities lie between 0 and 1"),
    "predict tumours.deciban new.csv --cost malignant=3": (2, "TRUE:DECIDED=COST"),
    "predict tumours.deciban new.csv --cost malignant:benin=3": (2, "did you mean 'benign'?"),
    "predict tumours.deciban new.csv --cost malignant:benign=-3": (2, "finite and ≥ 0"),
    "predict tumours.deciban new.csv --unit dezibans": (2, "--unit 'dezibans' is not one of"),
    "predict tumours.deciban new.csv --unsure 9": (2, "no probability"),
    "predict tumours.deciban new.csv --coverage 9 --learnt tumours.csv": (2, "no probability"),
    "predict tumours.deciban new.csv --coverage .9": (2, "--learnt FILE"),
    "predict tumours.deciban new.csv --by-class": (2, "add --coverage"),
    "predict tumours.deciban new.csv --format xml": (2, "--format 'xml'"),
    "predict tumours.deciban new.csv -o answers.xml": (2, "Name the format with --format"),
    "predict tumours.deciban new.csv -o nowhere/a.csv": (1, "no such folder"),
    "predict tumours.deciban new.csv --read-as docx": (1, "docx"),
    "predict tumours.deciban new.csv --frobnicate": (2, "No such option"),
    "predict": (2, "Missing argument"),
    "predikt tumours.deciban": (2, "Did you mean 'predict'?"),
    "fit tumours.csv": (2, "which column of tumours.csv holds the class?"),
    "fit tumours.csv --label diagnoses": (2, "did you mean 'diagnosis'?"),
    "fit tumours.csv --label diagnosis": (2, "exists already"),
    "fit tumours.csv --label diagnosis -o x.deciban --column radios=gaussian": (2, "did you mean 'radius'"),
    "fit tumours.csv --label diagnosis -o x.deciban --column radius=gausian": (2, "'gausian'"),
    "fit tumours.csv --label diagnosis -o x.deciban --column radius": (2, "NAME=VALUE"),
    "fit tumours.csv --label diagnosis -o x.deciban --block radius,texture=round": (2, "'round'"),
    "fit tumours.csv --label diagnosis -o x.deciban --text radius --column radius=gaussian": (2, "Name it once"),
    "fit tumours.csv --label diagnosis -o x.deciban --no-ledger --key-file key": (2, "contradict each other"),
    "fit tumours.csv --label diagnosis -o x.deciban --rule best": (2, "'best'"),
    "fit tumours.csv --label diagnosis -o .": (1, "That is a folder"),
    "evaluate": (2, "MODEL and ROWS are missing, or --scores"),
    "evaluate tumours.deciban new.csv": (2, "no column 'diagnosis'"),
    "evaluate tumours.deciban tumours.csv --groups patient": (2, "add --learnt"),
    "evaluate tumours.deciban stranger.csv --leave-one-out": (1, "never learnt"),
    "evaluate tumours.deciban tumours.csv --plots new.csv": (2, "is a file"),
    "evaluate tumours.deciban --scores scores.csv": (2, "contradict each other"),
    "evaluate --scores scores.csv": (2, "--llr and --target"),
    "evaluate --scores scores.csv --llr lr --target same": (2, "did you mean 'llr'?"),
    "evaluate --scores scores.csv --llr llr --target same --unit dB": (2, "--unit 'dB'"),
    "evaluate --scores scores.csv --llr llr --target llr": (1, "needs two"),
    "explain tumours.deciban new.csv --row 0": (2, "counted from 1"),
    "explain tumours.deciban new.csv --row 77": (2, "new.csv has 5 rows"),
    "explain tumours.deciban new.csv --against benign": (2, "--over"),
    "explain tumours.deciban new.csv --over malig": (2, "did you mean 'malignant'"),
    "explain tumours.deciban new.csv --json --svg x.svg": (2, "contradict each other"),
    "inspect tumours.deciban --feature radis": (2, "did you mean 'radius'"),
    "unlearn tumours.deciban stranger.csv": (1, "Nothing was changed"),
    "learn tumours.deciban words.csv": (1, "words.csv"),
    "learn tumours.deciban ten.csv --label diagnosis --class benign": (2, "contradict each other"),
    "correct tumours.deciban ten.csv --was diagnosis": (2, "Missing option"),
    "correct tumours.deciban ten.csv --was diagnosed --now benign": (2, "did you mean 'diagnosis'"),
    "merge tumours.deciban -o x.deciban": (2, "two models or more"),
    "merge tumours.deciban coin.deciban -o x.deciban": (2, "holds a"),
    "predict coin.deciban new.csv": (2, "holds a"),
    "sample tumours.deciban -n 0": (2, "greater than or equal to 1"),
}


@pytest.fixture
def spoilt(here):
    """Files that are wrong in one way each."""
    from deciban import Bernoulli, save

    save(Bernoulli().fit([1, 0, 1]), here / "coin.deciban")
    header = "patient,radius,texture,smoothness,concave,symmetric,diagnosis"
    (here / "empty.csv").write_text("")
    (here / "binary.csv").write_bytes(bytes(range(256)) * 40)
    (here / "cut.csv").write_text("patient,weight\n1,2\n")
    (here / "half.csv").write_text("patient,texture,diagnosis\n1,2,benign\n")
    (here / "words.csv").write_text(f"{header}\n1,2,3,4,none,yes,benign\n2,wide,3,4,none,yes,benign\n")
    (here / "ragged.csv").write_text(f"{header}\n1,2,3,4,none,yes,benign\n2,3,4\n")
    (here / "stranger.csv").write_text(f"{header}\n1,99,3,4,none,yes,benign\n")
    (here / "scores.csv").write_text("llr,same\n1.5,yes\n-2,no\n0.2,no\n")
    return here


@pytest.mark.parametrize("typed", WRONG)
def test_what_is_wrong_is_said_in_one_paragraph(typed, spoilt, said):
    before = {path.name: path.read_bytes() for path in spoilt.iterdir()}
    code, words = WRONG[typed]
    found = said(*typed.split())
    assert (found.code, words in found.err) == (code, True), found
    assert found.out == ""
    assert found.err.startswith("deciban: usage error: " if code == 2 else "deciban: ")
    assert found.err.count("\n") == 1
    assert "Traceback" not in found.err
    assert {path.name: path.read_bytes() for path in spoilt.iterdir() if path.is_file()} == before


def test_a_file_that_may_not_be_read_is_named(spoilt, said):
    os.chmod("new.csv", 0)
    if os.access("new.csv", os.R_OK):
        pytest.skip("an administrator may read everything")
    found = said("predict", "tumours.deciban", "new.csv")
    assert found.code == 1
    assert "no permission" in found.err


@pytest.mark.parametrize(
    "error", [MemoryError(), SystemError("error without exception set"), SyntaxError("invalid syntax")], ids=repr
)
def test_what_exhausted_memory_raises_is_no_bug_of_ours(monkeypatch, capsys, error):
    """Python's parser reports a failed allocation as a syntax error."""

    def fails(arguments):
        raise error

    monkeypatch.setattr(app, "invoke", fails)
    assert process.run(["predict"]) == 1
    said = capsys.readouterr().err
    assert "memory" in said
    assert "internal error" not in said
