"""What the README and the pages show is what comes out."""

import re
from pathlib import Path

import pytest

from pages import examples

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = ("sequences.md", "text.md", "topics.md")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in SLOW else [])
        for page in PAGES
        if ">>>" in page.read_text()
    ],
)
def test_what_a_page_shows_is_what_comes_out(page):
    count, differs = examples(page)
    assert count
    assert not differs, differs


@pytest.mark.slow
def test_the_blocks_of_the_page_on_other_libraries_run(capsys):
    page = ROOT / "docs/howto/migration.md"
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out.startswith("True")
