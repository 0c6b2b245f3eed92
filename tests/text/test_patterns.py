"""Patterns of words that take linear time."""

import time

import pytest

from deciban import Text
from deciban.errors import HyperparameterError
from deciban.text.tokens import is_linear

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
    "(" * 300 + ")" * 300 + "\\",
    "".join(f"{chr(0x4E00 + i)}*" for i in range(300)),  # so many classes that comparing them takes long
]


@pytest.mark.parametrize("pattern", LINEAR)
def test_ordinary_patterns_are_linear(pattern):
    assert is_linear(pattern)


@pytest.mark.parametrize("pattern", OTHER)
def test_patterns_that_may_take_longer_are_not(pattern):
    assert not is_linear(pattern)


def test_patterns_of_many_repeats_are_judged_in_little_time():
    began = time.process_time()
    for pattern in ("".join(f"{chr(0x4E00 + i)}*" for i in range(30)), r"\w+(?:\W\w+)*" * 40, "(?:" * 200 + ")*" * 200):
        is_linear(pattern)
    assert time.process_time() - began < 2  # 20 s where each pair of repeats was searched for a common character


@pytest.mark.parametrize("pattern", ["(", "a\\", "(" * 5000 + ")" * 5000, "[b-a]"])
def test_a_pattern_that_does_not_compile_is_named(pattern):
    with pytest.raises(HyperparameterError, match="is not a regular expression") as error:
        Text(pattern=pattern)
    assert len(str(error.value)) < 600
