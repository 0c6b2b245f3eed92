"""Every call that can fail does, once; afterwards the model is the old one or the new one, and the error is clear.

Here `learn`, which opens, locks, reads and replaces a model; `make faults` runs all commands, with many more failed
allocations.
"""

import json

import pytest

from faults.campaign import KINDS, start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    done = start("--operations", "learn", "--allocations", "3")
    if done is None:
        pytest.skip("there is no C compiler here")
    return json.loads(done.stdout)


def test_the_model_is_the_old_or_the_new_one_and_the_error_is_clear(found):
    assert found["wrong"] == []


def test_every_kind_of_call_failed(found):
    kinds = {name.partition(": ")[2] for name in found["points"]}
    assert kinds >= {kind.name for kind in KINDS if kind.name not in ("map", "seek")}
    assert found["outcomes"]["error"] > 40
    assert found["outcomes"]["success"] > 0  # of half-written blocks, for example
