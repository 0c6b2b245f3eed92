"""What CONTRIBUTING.md shows is what runs."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_family_in_contributing_is_the_one_that_gets_every_law():
    shown = (
        (ROOT / "CONTRIBUTING.md")
        .read_text()
        .split("<!-- toy family -->\n```python\n")[1]
        .split("```\n<!-- end -->")[0]
    )
    code = (ROOT / "tests" / "toy_family.py").read_text()
    written = code.split("# the family starts here\n")[1].split("# the family ends here")[0]
    assert shown.strip() == written.strip()
