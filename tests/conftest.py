"""Cases whose rows hold absurd numbers on purpose may warn of them."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "limited-" in item.name or "absurd-numbers" in item.name:  # cases of tests/cases.py
            item.add_marker(pytest.mark.filterwarnings("ignore::deciban.errors.AbsurdNumbersWarning"))
