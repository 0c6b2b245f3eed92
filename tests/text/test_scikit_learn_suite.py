"""scikit-learn's own tests of CountVectorizer, run against the drop-in: with kernels, and with the default code."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from unittest import mock

import pytest
import sklearn.feature_extraction.text

from deciban.kernels import forced
from deciban.sklearn import CountVectorizer

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs expect some, and give more

# Why a test of theirs does not apply to the drop-in.
EXCEPTIONS: dict[str, str] = {}


def their_tests():
    """Their module with our class under its name, also where parameters of tests hold it."""
    spec = importlib.util.find_spec("sklearn.feature_extraction.tests.test_text")
    if spec is None:
        pytest.skip("this scikit-learn comes without its tests", allow_module_level=True)
    spec = importlib.util.spec_from_file_location("their_text_tests", spec.origin)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where pickle looks for what the tests define
    with mock.patch.object(sklearn.feature_extraction.text, "CountVectorizer", CountVectorizer):
        spec.loader.exec_module(module)
    return module


theirs = their_tests()
concerned = {
    name: test
    for name, test in vars(theirs).items()
    if name.startswith("test_") and "CountVectorizer" in inspect.getsource(test) and name not in EXCEPTIONS
}
globals().update(concerned)


@pytest.fixture(autouse=True, params=["numba", None])
def body(request):
    if request.param is None:
        yield
    else:
        with forced(request.param):
            yield


def test_there_are_tests_and_they_hold_our_class():
    assert theirs.CountVectorizer is CountVectorizer
    assert len(concerned) > 30
