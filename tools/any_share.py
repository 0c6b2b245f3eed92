"""Counts the parameters that are annotated `Any`.

    python tools/any_share.py               shares, inside and public
    python tools/any_share.py --limit 10    exit code 1 if either share is above 10 %
    python tools/any_share.py --list        the public ones, and the modules with most

All parameters of functions and methods count, nested ones too, but for `self` and `cls`; `*args` and `**kwargs` count.
A parameter without an annotation counts as `Any`, which is how a type checker reads it. `Any | None` and
`Optional[Any]` are `Any`; `dict[str, Any]` is not. Public parameters are those of the names in `deciban.__all__`: of
functions, of constructors, and of public methods, inherited ones too where they are defined in the package.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
PACKAGE = ROOT / "src" / "deciban"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_any(annotation: ast.expr | None) -> bool:
    """Whether an annotation is missing, `Any`, or a union with `Any`.

    >>> [is_any(ast.parse(text, mode="eval").body) for text in ("Any", "Any | None", "dict[str, Any]", "int")]
    [True, True, False, False]
    """
    if annotation is None:
        return True
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return is_any(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return is_any(annotation.left) or is_any(annotation.right)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).endswith("Optional"):
        return is_any(annotation.slice)
    return ast.unparse(annotation) in ("Any", "typing.Any")


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, method: bool) -> Iterator[ast.arg]:
    """The parameters of a function, without the first of a method."""
    given = function.args
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    every = [*given.posonlyargs, *given.args][1 if method and not static else 0 :]
    yield from [*every, *given.kwonlyargs, *(each for each in (given.vararg, given.kwarg) if each is not None)]


def functions(tree: ast.AST, method: bool = False) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """Every function of a module, and whether it is a method."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, DEFINITIONS):
            yield node, method
            yield from functions(node)
        else:
            yield from functions(node, isinstance(node, ast.ClassDef))


def inside() -> dict[str, tuple[int, int]]:
    """Module → parameters that are Any, and all."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        each = [is_any(one.annotation) for function, method in functions(tree) for one in parameters(function, method)]
        found[str(file.relative_to(PACKAGE))] = sum(each), len(each)
    return found


# -- public names ------------------------------------------------------------------------------------------------------
def public() -> dict[str, list[tuple[str, bool]]]:
    """Public function or method → its parameters, and whether each is Any."""
    deciban = importlib.import_module("deciban")
    found: dict[str, list[tuple[str, bool]]] = {}
    for name in deciban.__all__:
        value = getattr(deciban, name)
        if inspect.isclass(value):
            found |= {f"{name}.{each}": signature(made) for each, made in methods(value)}
        elif callable(value):
            found[name] = signature(value)
    return found


def methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The constructor and the public methods of a class that are defined in the package."""
    for name in dir(cls):
        if name.startswith("_") and name != "__init__":
            continue
        held = inspect.getattr_static(cls, name)
        made = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
        if inspect.isfunction(made) and made.__module__.startswith("deciban"):
            yield name, held


def signature(made: Any) -> list[tuple[str, bool]]:
    """The parameters of a function, and whether each is Any."""
    plain = made.__func__ if isinstance(made, (classmethod, staticmethod)) else made
    given = list(inspect.signature(inspect.unwrap(plain)).parameters.values())
    if "." in plain.__qualname__ and not isinstance(made, staticmethod):
        given = given[1:]
    return [(one.name, _is_any(one.annotation)) for one in given]


def _is_any(annotation: Any) -> bool:
    if annotation is inspect.Parameter.empty or annotation is Any:
        return True
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))
    return is_any(ast.parse(text, mode="eval").body)


def main() -> int:
    """Print the shares and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, metavar="PERCENT", help="exit with 1 if a share is above")
    parser.add_argument("--list", action="store_true", help="name what is Any")
    options = parser.parse_args()
    modules, names = inside(), public()
    counts = {
        "all parameters": tuple(map(sum, zip(*modules.values()))),
        "public parameters": (
            sum(one for each in names.values() for _, one in each),
            sum(len(each) for each in names.values()),
        ),
    }
    for name, (some, every) in counts.items():
        print(f"{name:<18} {some:>5,} of {every:>5,} are Any: {some / every:.1%}")
    if options.list:
        for name, each in names.items():
            if any(one for _, one in each):
                print(f"  {name}({', '.join(argument for argument, one in each if one)})")
        most = Counter({name: some for name, (some, _) in modules.items()})
        for name, some in most.most_common(20):
            print(f"  {some:>4} of {modules[name][1]:>4}  {name}")
    above = options.limit is not None and any(100 * some / every > options.limit for some, every in counts.values())
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
