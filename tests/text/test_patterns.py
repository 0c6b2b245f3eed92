"""Patterns of words that take linear time."""

import pytest

from deciban.text.patterns import is_linear

LINEAR = [
    r"(?u)\b\w\w+\b",
    r"\b\w+\b",
    r"\S+",
    r"(\w+)",
    r"[^\s,;]+",
    r"(?i)[a-z]{2,}",
    r"\b[a-z]+\b",
    r"[a-z]+(?:-[a-z]+)*",
    r"\w+(?:'\w+)?",
    r"\d{4}|\w+",
    r"#?\w+",
    r"..",
]
OTHER = [
    r"((?:a+)+)\b!",
    r"(a|aa)+",
    r"(?:a|a)*b",
    r"\w+!",
    r"\w+\w+",
    r"\w*\d*!",
    r"a(?:a+b)?",
    r"[a-z]+\b",
    r"(\w)\1+",
    r"(?=a+b)a",
    r"\w+?!",
    r"(?:a{1,64}){1,64}b",
    r"a{0,60}a{0,60}a{0,60}b",
    r"(",
    "a" * 2000,
]


@pytest.mark.parametrize("pattern", LINEAR)
def test_ordinary_patterns_are_linear(pattern):
    assert is_linear(pattern)


@pytest.mark.parametrize("pattern", OTHER)
def test_patterns_that_may_take_longer_are_not(pattern):
    assert not is_linear(pattern)
