"""How threads take turns in tests of several threads."""

import sys

import pytest


@pytest.fixture
def often():
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
