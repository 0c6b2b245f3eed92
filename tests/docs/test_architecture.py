"""The files that docs/architecture.md names are there, and the contracts are as small as it says."""

import re
from pathlib import Path

import pytest

from deciban import Gaussian, GenerativeClassifier
from deciban.families.protocol import Family

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?)/?`", PAGE)))


def test_the_page_names_many_files():
    assert len(NAMED) > 40


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_the_page_names_is_there(name):
    assert (ROOT / "src" / "deciban" / name).exists() or (ROOT / name).exists()


@pytest.mark.parametrize("row", re.findall(r"^\| `?(\w+)`? \| `([a-z_/]+\.py)` \|", PAGE, re.MULTILINE), ids=str)
def test_a_name_is_defined_in_the_file_that_the_page_gives(row):
    name, file = row
    code = (ROOT / "src" / "deciban" / file).read_text()
    assert name == "abilities" or re.search(rf"^class {name}\b", code, re.MULTILINE)


def test_the_classifier_inherits_from_two_classes_of_ours():
    ours = [base for base in GenerativeClassifier.__mro__ if base.__module__.startswith("deciban")]
    assert len(ours) <= 3  # with itself


def test_a_family_has_nine_methods():
    methods = {name for name, value in vars(Family).items() if callable(value) and not name.startswith("_")}
    assert len(methods) == 9


def test_completion_of_a_family_shows_hyper_parameters_and_the_contract():
    shown = [name for name in dir(Gaussian()) if not name.startswith("_")]
    contract = {name for name in vars(Family) if not name.startswith("_")}
    assert len(shown) == len(set(shown))
    assert set(shown) == contract | {"get_params", "of"} | set(Gaussian().get_params(deep=False))
