"""docs/maths/families.md states the mathematics that the files state.

`python tests/docs/test_maths.py` writes the texts of the files into the page.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "deciban"
PAGE = ROOT / "docs" / "maths" / "families.md"
PART = re.compile(r"<!-- (\S+\.py) -->\n(.*?)<!-- end -->", re.DOTALL)


BASE = re.compile(r"^class \w+\(\s*Family\[", re.MULTILINE)  # of a family


def stated(file):
    """The docstring of a file, with a link to it."""
    text = ast.get_docstring(ast.parse((SOURCE / file).read_text()))
    return f"[`{file}`](../../src/deciban/{file}): {text}\n"


def filled(page):
    return PART.sub(lambda found: f"<!-- {found[1]} -->\n{stated(found[1])}<!-- end -->", page)


def test_the_page_states_what_the_files_state():
    assert PAGE.read_text() == filled(PAGE.read_text())


def test_the_page_has_every_family():
    text = PAGE.read_text()
    files = {f"families/{path.name}" for path in (SOURCE / "families").glob("*.py") if BASE.search(path.read_text())}
    composed = {"families/fixed.py"}  # no models of their own
    assert len(files) > len(composed) + 5
    assert {file for file in files - composed if f"<!-- {file} -->" not in text} == set()


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
