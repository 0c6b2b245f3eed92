"""Settings of all tests: an empty DECIBAN_DATA counts as unset; cases with absurd numbers may warn of them."""

import os

import pytest

if not os.environ.get("DECIBAN_DATA"):
    os.environ.pop("DECIBAN_DATA", None)  # before test modules look for it


def pytest_collection_modifyitems(items):
    for item in items:
        if "limited-" in item.name or "absurd-numbers" in item.name:  # cases of tests/cases.py
            item.add_marker(pytest.mark.filterwarnings("ignore::deciban.errors.AbsurdNumbersWarning"))
