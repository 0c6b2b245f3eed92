"""Counts the code lines of src/deciban: without docstrings, comments and blank lines.

    python tools/code_lines.py                 by package, and in all
    python tools/code_lines.py --source DIR    of another tree, such as that of an older commit

A line counts if a token of code begins, goes on or ends there. A docstring, or another string that stands alone as a
statement, is no code.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG = 500  # lines, with everything
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    r"""Number of lines of a module that hold code.

    >>> code_lines("'''Docstring.'''\n\n# comment\nx = (1,\n     2)  # two lines\n")
    2
    """
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=ROOT / "src" / "deciban", help="the folder of the package")
    package = parser.parse_args().source
    files = sorted(package.rglob("*.py"))
    by_package: dict[str, list[tuple[int, int]]] = defaultdict(list)
    long = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        inside = file.relative_to(package)
        size = len(text.splitlines())
        by_package[inside.parts[0] if len(inside.parts) > 1 else "(top)"].append((code_lines(text), size))
        if size > LONG:
            long.append((size, str(inside)))
    print(f"{'package':<14}{'modules':>8}{'code lines':>12}{'all lines':>11}")
    for name, held in sorted(by_package.items()):
        print(f"{name:<14}{len(held):>8}{sum(code for code, _ in held):>12,}{sum(size for _, size in held):>11,}")
    every = [each for held in by_package.values() for each in held]
    print(f"{'all':<14}{len(every):>8}{sum(code for code, _ in every):>12,}{sum(size for _, size in every):>11,}")
    print(f"median lines of a module: {statistics.median(size for _, size in every):g}")
    print(f"modules over {LONG} lines: {len(long)}")
    for size, name in sorted(long, reverse=True):
        print(f"  {size:>5}  {name}")


if __name__ == "__main__":
    main()
