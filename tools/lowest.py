"""Prints the lowest declared version of each dependency, as constraints for pip: `python tools/lowest.py web plots`.

Arguments are the extras whose dependencies are included. `make test-lowest` installs what this prints.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<version>[\w.]+)")


def lowest(extras: list[str]) -> list[str]:
    """Return `name==version` for each dependency of the package and of the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    unknown = [extra for extra in extras if extra not in optional]
    if unknown:
        raise SystemExit(f"no extra {', '.join(unknown)}; there are {', '.join(optional)}")
    pins = []
    for requirement in [*project["dependencies"], *(each for extra in extras for each in optional[extra])]:
        found = REQUIREMENT.fullmatch(requirement)
        if found is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} declares no lowest version (name>=version)")
        pins.append(f"{found['name']}=={found['version']}")
    return pins


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
