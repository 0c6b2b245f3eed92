"""Real data sets, where the environment names a directory of them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        pytest.skip("DECIBAN_DATA names no directory of data sets")
    return Path(folder)
