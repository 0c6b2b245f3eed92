"""Validates the docstrings of deciban's public names by numpydoc: the names in `deciban.__all__` and their methods.

    python tools/docstrings.py            one line for each finding, and their number; exit code 1 if there is any
    python tools/docstrings.py --count    their number by code alone

A method or property is public if its name does not begin with an underscore and it is defined in deciban. Where a
method has no docstring, Python shows that of the class it overrides; then that one is validated, once.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import ERROR_MSGS, validate

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

# code → why it is switched off
OFF = {
    "ES01": "a summary line is enough where it says everything",
    "SA01": "related names are linked in the guide; a section in every docstring would repeat it",
    "RT02": "a returned value may have a name, as in scikit-learn's docstrings",
}
# code → why it is switched off for methods and properties
OFF_FOR_METHODS = {"EX01": "a method is shown in the example of its class; classes and functions must have one"}
OWN = {"AT01": "The estimator has no Attributes section"}


class Public(NamedTuple):
    """A public name, and the object whose docstring it has."""

    name: str  # as it is imported by users: "Gaussian", "Gaussian.fit"
    path: str  # module and qualified name of the object
    value: Any
    method: bool


def public() -> Iterator[Public]:
    """Every public class, function, method and property; each object once."""
    deciban = importlib.import_module("deciban")
    met: set[str] = set()
    for name in deciban.__all__:
        value = getattr(deciban, name)
        if not callable(value):
            continue
        members = methods(name, value) if inspect.isclass(value) else ()
        for found in (Public(name, _path(value), value, False), *members):
            if found.path not in met:
                met.add(found.path)
                yield found


def methods(name: str, cls: type) -> Iterator[Public]:
    """The public methods and properties of a class."""
    for each in dir(cls):
        if each.startswith("_"):
            continue
        holders = [base for base in cls.__mro__ if each in vars(base)]
        own = [base for base in holders if base.__module__.startswith("deciban") and _is_member(vars(base)[each])]
        if not own or own[0] is not holders[0]:
            continue
        written = next((base for base in own if _plain(vars(base)[each]).__doc__), own[0])
        member = _plain(vars(written)[each])
        yield Public(f"{name}.{each}", f"{written.__module__}.{written.__qualname__}.{each}", member, True)


def _is_member(held: Any) -> bool:
    return inspect.isroutine(held) or isinstance(held, (property, classmethod, staticmethod)) or hasattr(held, "func")


def _plain(held: Any) -> Any:
    """The function behind a class or static method, or the property itself."""
    return held.__func__ if isinstance(held, (classmethod, staticmethod)) else held


def _path(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def findings(each: Public) -> Iterator[tuple[str, str]]:
    """(code, message) of what is wrong with a docstring."""
    off = OFF | OFF_FOR_METHODS if each.method else OFF
    for code, message in validate(each.path)["errors"]:
        if code not in off:
            yield code, message
    if inspect.isclass(each.value) and hasattr(each.value, "set_params"):
        written = inspect.cleandoc(each.value.__doc__ or "")
        if not NumpyDocString(written)["Attributes"]:
            yield "AT01", OWN["AT01"]


def main() -> int:
    """Print the findings and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="print the number of findings by code alone")
    count = parser.parse_args().count
    codes: Counter[str] = Counter()
    names = 0
    for each in public():
        names += 1
        for code, message in findings(each):
            codes[code] += 1
            if not count:
                print(f"{each.name}: {code} {message}")
    meanings = ERROR_MSGS | OWN
    for code, number in sorted(codes.items()):
        print(f"{number:>5}  {code}  {meanings.get(code, '')}")
    print(f"{codes.total():,} findings in {names:,} docstrings")
    return 1 if codes else 0


if __name__ == "__main__":
    sys.exit(main())
