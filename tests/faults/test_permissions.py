"""Files and folders that may not be read or written; as an ordinary user, also where the tests run as root."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from deciban.demo import write_table
from program import forked

NOBODY = 65534


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pristine")
    write_table(folder)
    assert forked(folder, "fit", "tumours.csv", "--label", "diagnosis", "-q").code == 0
    return folder


@pytest.fixture
def mine(pristine):
    """A folder of an ordinary user, with a model that the user may use."""
    folder = Path(tempfile.mkdtemp(prefix="deciban-permissions-"))
    shutil.copytree(pristine, folder, dirs_exist_ok=True)
    folder.chmod(0o700)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(folder)


def run(folder, *arguments, code):
    """Run the program as an ordinary user who owns the folder."""
    user = NOBODY if os.geteuid() == 0 else None
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)
    done = forked(folder, *arguments, user=user)
    assert done.code == code, done.err
    assert "internal error" not in done.err
    assert done.err.count("\n") == (code != 0)
    return done


LEARN = ("learn", "tumours.deciban", "ten.csv")
PREDICT = ("predict", "tumours.deciban", "new.csv")


def test_a_read_only_model_answers_and_is_not_replaced(mine):
    model = mine / "tumours.deciban"
    model.chmod(0o400)
    before = model.read_bytes()
    assert run(mine, *PREDICT, code=0).out.count("\n") == 6
    done = run(mine, *LEARN, code=1)
    assert "could not be written (the file is read-only). You may not write there" in done.err
    assert "The old file is still there, unchanged." in done.err
    assert model.read_bytes() == before
    run(mine, *LEARN, "-o", "other.deciban", code=0)
    run(mine, "fit", "tumours.csv", "--label", "diagnosis", "-o", "tumours.deciban", code=1)
    assert model.read_bytes() == before


def test_a_model_in_a_read_only_folder_answers_and_is_not_replaced(mine):
    before = (mine / "tumours.deciban").read_bytes()
    mine.chmod(0o500)
    assert run(mine, *PREDICT, code=0).out.count("\n") == 6
    for command in (LEARN, (*LEARN, "-o", "other.deciban"), (*PREDICT, "-o", "answers.csv")):
        assert "You may not write there" in run(mine, *command, code=1).err
    mine.chmod(0o700)
    assert (mine / "tumours.deciban").read_bytes() == before
    assert not list(mine.glob(".*.deciban-tmp"))
    assert not (mine / "answers.csv").exists()


@pytest.mark.parametrize(
    ("name", "command"), [("tumours.deciban", PREDICT), ("tumours.deciban", LEARN), ("new.csv", PREDICT)]
)
def test_a_file_that_may_not_be_read_is_named(mine, name, command):
    (mine / name).chmod(0)
    done = run(mine, *command, code=1)
    assert name in done.err
    assert "ermission" in done.err


def test_a_key_file_that_may_not_be_read_is_named(mine):
    (mine / "key").write_text("secret")
    (mine / "key").chmod(0)
    assert "key" in run(mine, *LEARN, "--key-file", "key", code=1).err
