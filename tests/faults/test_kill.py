"""A short run of the campaign of kills; `make kill` kills a thousand real commands."""

from faults.kill import campaign


def test_nothing_is_lost_when_commands_are_killed():
    seen = campaign(12, 1, fork=True)
    assert seen["killed"] == 12
    assert seen["temporary file left"] > 0  # some were killed while they wrote
    assert sum(number for name, number in seen.items() if name.endswith("new")) > 0
    assert sum(number for name, number in seen.items() if name.endswith("old")) > 0
