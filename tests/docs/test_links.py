"""Links between the pages of the repository lead somewhere, to a heading too where they name one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ("_build", "gallery_pages", "generated", ".venv")
PAGES = [
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    if not any(part.startswith(BUILT) for part in page.relative_to(ROOT).parts)
]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
MADE = ("gallery_pages/", "docs/gallery_pages/")  # by `make docs`


def anchors(page):
    """The anchors of the headings of a page, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for found in LINK.findall(CODE.sub("", page.read_text())):
        target = found[0] or found[1]
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        if path.lstrip("./").startswith(MADE):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_there_are_pages():
    assert len(PAGES) > 80
