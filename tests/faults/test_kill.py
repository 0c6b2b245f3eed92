"""A short run of the campaign of kills; `make kill` kills a thousand real commands."""

from collections import Counter

import pytest

from faults.kill import campaign

pytestmark = pytest.mark.slow


def test_nothing_is_lost_when_commands_are_killed():
    seen = Counter()
    for seed in range(8):  # until some were killed while they wrote, some before and some after
        seen += campaign(12, 1, fork=True, seed=seed)
        assert seen["killed"] == 12 * (seed + 1)
        if seen["temporary file left"] and _ended(seen, "new") and _ended(seen, "old"):
            return
    pytest.fail(f"all kills hit the same moment: {dict(seen)}")


def _ended(seen, state):
    return sum(number for name, number in seen.items() if name.endswith(state))
