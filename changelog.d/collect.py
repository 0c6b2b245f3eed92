"""Move the fragments of this folder into CHANGELOG.md, under a version.

usage: python changelog.d/collect.py 0.1.0
"""

import sys
from datetime import date
from pathlib import Path

KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}


def collect(version: str, root: Path) -> str:
    """The new section; the fragments are deleted."""
    lines = [f"## {version} ({date.today().isoformat()})", ""]
    for kind, title in KINDS.items():
        fragments = sorted((root / "changelog.d").glob(f"*.{kind}.md"))
        if fragments:
            lines += [f"### {title}", "", *(f"- {fragment.read_text().strip()}" for fragment in fragments), ""]
        for fragment in fragments:
            fragment.unlink()
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = Path(__file__).parent.parent
    changelog = root / "CHANGELOG.md"
    head, _, rest = changelog.read_text().partition("\n## ")
    section = collect(sys.argv[1], root)
    changelog.write_text(head.rstrip() + "\n\n" + section + ("\n## " + rest if rest else ""))
