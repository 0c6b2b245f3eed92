"""Draws the packages of src/deciban and the imports between them, as a Mermaid diagram made from the code.

    python tools/package_map.py                                  print the diagram
    python tools/package_map.py --write docs/architecture.md     put it into a file, between its two marks
    python tools/package_map.py --check docs/architecture.md     exit code 1 if the file holds another diagram

An arrow points from a package to one that it imports, at module level or inside a function; imports for type checkers
alone (`if TYPE_CHECKING`) do not count. An arrow that a longer path implies is left out: `a → c` where there is
`a → b → c`. Modules at the top of the package stand for themselves; `errors.py` and `__init__.py`, which
everything may import, are left out. The marks in the file are HTML comments: `<!-- package map -->` and
`<!-- end of package map -->`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "deciban"
sys.path.insert(0, str(SOURCE))
BEGIN, END = "<!-- package map -->", "<!-- end of package map -->"
EVERYWHERE = {"__init__", "__main__", "errors"}


def place(module: str) -> str | None:
    """The package, or module at the top, that a module belongs to.

    >>> place("deciban.families.poisson"), place("deciban.errors"), place("numpy"), place("deciban.Poisson")
    ('families', None, None, 'families')
    """
    parts = module.split(".")
    if parts[0] != "deciban" or len(parts) < 2 or parts[1] in EVERYWHERE:
        return None
    if len(parts) == 2 and not (PACKAGE / parts[1]).is_dir() and not (PACKAGE / f"{parts[1]}.py").exists():
        home = getattr(getattr(importlib.import_module("deciban"), parts[1]), "__module__", "")  # a public name
        return place(home) if home.count(".") else None
    return parts[1]


def imported(tree: ast.AST, module: str, package: bool) -> Iterator[str]:
    """The modules that a module imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")
            base = above[: len(above) - node.level + package] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{full}.{name.name}" for name in node.names)
        yield from imported(node, module, package)


def arrows() -> dict[str, set[str]]:
    """Package → packages that it imports."""
    found: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        inside = file.relative_to(SOURCE).with_suffix("")
        names = inside.parts[:-1] if inside.name == "__init__" else inside.parts
        module = ".".join(names)
        own = place(module)
        if own is None:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        others = {place(name) for name in imported(tree, module, inside.name == "__init__")}
        found.setdefault(own, set()).update(other for other in others if other not in (None, own))
    known = set(found)
    return {name: found[name] & known for name in sorted(found)}


def essential(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without arrows that a longer path implies.

    >>> essential({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    {'a': {'b'}, 'b': {'c'}, 'c': set()}
    """

    def reached(start: str) -> set[str]:
        met: set[str] = set()
        ahead = [start]
        while ahead:
            for name in graph[ahead.pop()] - met:
                met.add(name)
                ahead.append(name)
        return met

    far = {name: reached(name) for name in graph}
    return {
        name: {
            other
            for other in targets
            # packages of an import cycle keep their arrows, so that the cycle is visible
            if not any(other in far[via] and name not in far[via] for via in targets - {other})
        }
        for name, targets in graph.items()
    }


def layers(graph: dict[str, set[str]]) -> list[list[str]]:
    """Packages from the top down, each below all that import it; packages in an import cycle share a layer."""
    left, found = dict(graph), []
    while left:
        above = {name for name in left if not any(name in targets for other, targets in left.items() if other != name)}
        if not above:  # an import cycle
            above = set(left)
        found.append(sorted(above))
        left = {name: targets for name, targets in left.items() if name not in above}
    return found


def summary(name: str) -> str:
    """The first line of a package's or module's docstring."""
    file = PACKAGE / name / "__init__.py"
    file = file if file.exists() else PACKAGE / f"{name}.py"
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return said.split("\n")[0].rstrip(".:")


def diagram() -> str:
    """The diagram as a block of Markdown."""
    graph = arrows()
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {_id(name)}["{name}"]' for layer in layers(graph) for name in layer]
    lines += [f"    {_id(name)} --> {_id(other)}" for name, ways in essential(graph).items() for other in sorted(ways)]
    table = ["| package | holds | modules |", "|---|---|---:|"]
    for layer in layers(graph):
        for name in layer:
            modules = len(list((PACKAGE / name).rglob("*.py"))) if (PACKAGE / name).is_dir() else 1
            table.append(f"| `{name}` | {summary(name)} | {modules} |")
    return "\n".join([*lines, "```", "", *table])


def _id(name: str) -> str:
    """Node identifier; the prefix keeps clear of Mermaid's reserved words, such as `end`."""
    return f"p_{name}"


def drawn_in(text: str) -> tuple[str, str, str] | None:
    """A file's text before, between and after the marks."""
    before, begin, rest = text.partition(BEGIN)
    held, end, after = rest.partition(END)
    return (before, held.strip(), after) if begin and end else None


def main() -> int:
    """Print, write or check the diagram and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the diagram between the marks of a file")
    parser.add_argument("--check", type=Path, metavar="FILE", help="exit with 1 if the file holds another diagram")
    options = parser.parse_args()
    now, file = diagram(), options.write or options.check
    if file is None:
        print(now)
        return 0
    parts = drawn_in(file.read_text(encoding="utf-8"))
    if parts is None:
        print(f"{file} has no place for the diagram. Add the lines {BEGIN} and {END}.", file=sys.stderr)
        return 1
    if options.write:
        file.write_text(f"{parts[0]}{BEGIN}\n{now}\n{END}{parts[2]}", encoding="utf-8")
        return 0
    if parts[1] != now:
        print(f"{file}: the diagram is out of date. Run: python tools/package_map.py --write {file}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
