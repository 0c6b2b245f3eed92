"""Models to serve: of texts, and of a table with numbers, categories and texts."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from deciban import GenerativeClassifier
from service.running import Running

SPAM = ["win a free prize now", "free entry win cash", "claim your free prize", "urgent cash prize call now"]
HAM = ["lunch at noon today", "see you at the meeting", "call me when you are home", "are we still on for lunch"]


def texts() -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(0)
    words = {"spam": " ".join(SPAM).split(), "ham": " ".join(HAM).split()}
    labels = ["spam", "ham", "ham"] * 100
    return [" ".join(rng.choice(words[label], 8)) for label in labels], labels


def animals(n: int = 300):
    import polars as pl

    rng = np.random.default_rng(1)
    kind = rng.choice(["cat", "dog", "owl"], n)
    mean = {"cat": 4.0, "dog": 20.0, "owl": 1.0}
    return pl.DataFrame(
        {
            "weight": [mean[k] * np.exp(rng.normal(0, 0.3)) for k in kind],
            "legs": [2 if k == "owl" else 4 for k in kind],
            "coat": [rng.choice(["grey", "brown", "black"] if k != "owl" else ["brown", "white"]) for k in kind],
            "kind": kind,
        }
    )


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    frame = animals()
    frame.write_csv(folder / "animals.csv")
    GenerativeClassifier(ledger=True).fit(folder / "animals.csv", "kind").save(folder / "animals.deciban")
    GenerativeClassifier(ledger=True).fit(*texts()).save(folder / "texts.deciban")
    return folder


@pytest.fixture
def texts_model(models, tmp_path) -> Path:
    return Path(shutil.copy(models / "texts.deciban", tmp_path / "texts.deciban"))


@pytest.fixture
def animals_model(models, tmp_path) -> Path:
    return Path(shutil.copy(models / "animals.deciban", tmp_path / "animals.deciban"))


@pytest.fixture(scope="session")
def running(models, tmp_path_factory):
    """A service of texts that tests of answers share; a test that changes it undoes the change."""
    path = shutil.copy(models / "texts.deciban", tmp_path_factory.mktemp("shared") / "texts.deciban")
    with Running(Path(path)) as service:
        yield service


@pytest.fixture(scope="session")
def table(models, tmp_path_factory):
    """A service of the table of animals."""
    path = shutil.copy(models / "animals.deciban", tmp_path_factory.mktemp("shared") / "animals.deciban")
    with Running(Path(path)) as service:
        yield service
