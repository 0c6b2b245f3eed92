"""Files to ask the program about, and the program in this process, where only its words matter."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from deciban.cli.process import run
from deciban.demo import write_table
from program import process


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """tumours.csv, ten.csv and new.csv of the demonstration, and a model of the first."""
    folder = tmp_path_factory.mktemp("tumours")
    write_table(folder)
    done = process(folder, "fit", "tumours.csv", "--label", "diagnosis")
    assert done.code == 0, done.err
    (folder / "report.txt").write_text(done.out)
    return folder


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A folder with the same files, which may be changed; we are in it."""
    for path in files.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program_here(capsys):
    """The program in this process and folder: what it says, and its exit code."""

    def call(*arguments: str):
        capsys.readouterr()
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


@pytest.fixture
def said(here, program_here):
    """The program in a folder with the files."""
    return program_here


@pytest.fixture
def said_alone(tmp_path, monkeypatch, program_here):
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return program_here
