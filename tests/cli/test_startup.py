"""The start-up of the command line: stand-ins for heavy modules, and nothing of it in the library."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deciban
from deciban.cli.app import COMMANDS
from deciban.cli.process import Deferred, ImportFinder

PACKAGE = Path(deciban.__file__).parent


@pytest.fixture
def imports(monkeypatch):
    """Imports with stand-ins for some modules of the standard library, which are not loaded yet."""
    names = ("colorsys", "xml.sax", "no_such_module", "no_such_package.module")
    monkeypatch.setattr(sys, "meta_path", [ImportFinder(names, absent="tabnanny"), *sys.meta_path])
    loaded = {name: module for name, module in sys.modules.items() if name.startswith(("colorsys", "xml.sax"))}
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in [name for name in sys.modules if name.startswith(("colorsys", "xml.sax"))]:
        del sys.modules[name]
    sys.modules.update(loaded)


@pytest.mark.usefixtures("imports")
def test_a_stand_in_imports_its_module_when_an_attribute_is_used():
    first = importlib.import_module("colorsys")
    assert isinstance(first, Deferred)
    assert importlib.import_module("colorsys") is first
    assert first.rgb_to_hsv(0, 0, 1) == (2 / 3, 1.0, 1)
    module = importlib.import_module("colorsys")
    assert not isinstance(module, Deferred)
    assert first.rgb_to_hls is module.rgb_to_hls


@pytest.mark.usefixtures("imports")
def test_a_name_imported_from_a_stand_in_is_the_modules_own():
    from colorsys import rgb_to_hls

    assert not isinstance(sys.modules["colorsys"], Deferred)
    assert rgb_to_hls is sys.modules["colorsys"].rgb_to_hls


@pytest.mark.usefixtures("imports")
def test_a_module_inside_a_package_has_a_stand_in_and_its_submodules_are_found():
    import xml.sax

    first = xml.sax
    assert isinstance(first, Deferred)
    import xml.sax.handler

    assert not isinstance(xml.sax, Deferred)
    assert xml.sax.handler is first.handler


@pytest.mark.usefixtures("imports")
@pytest.mark.parametrize("name", ["no_such_module", "no_such_package.module", "tabnanny"])
def test_modules_that_are_absent_or_not_installed_are_not_found(name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


@pytest.mark.usefixtures("imports")
def test_a_stand_in_lacks_what_its_module_lacks():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module("colorsys").nothing  # noqa: B018


def test_the_program_sets_the_process_up():
    code = """
import gc, sys
from deciban.cli.app import COMMANDS
from deciban.cli.process import Deferred, ImportFinder, prepare_process
before = gc.get_threshold()
prepare_process()
import numpy.testing, sklearn.base
print(isinstance(sys.meta_path[0], ImportFinder), gc.get_threshold() > before, isinstance(numpy.testing, Deferred),
      isinstance(sys.modules["scipy.stats"], Deferred), "pandas" in sys.modules)
import scipy.stats, numpy.polynomial.hermite, narwhals.stable.v2, pydoc
print(scipy.stats.norm.cdf(0), numpy.testing.assert_equal(1, 1))
print(numpy.polynomial.hermite.hermval(1, [0, 1]), numpy.polynomial.Polynomial([1, 2])(1), pydoc.plain("plain"))
print(type(narwhals.stable.v2.from_dict({"x": [1]}, backend="pyarrow")).__name__)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    of_stand_ins = ["2.0", "3.0", "plain", "DataFrame"]
    assert done.stdout.split() == ["True", "True", "True", "True", "False", "0.5", "None", *of_stand_ins]


def test_a_calibrated_model_of_a_table_loads_without_hidden_variables_and_topics(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "n": rng.poisson(3, 200), "c": rng.choice(["a", "b"], 200)})
    labels = np.where(frame["x"] + rng.normal(size=200) > 0, "yes", "no")
    clf = deciban.GenerativeClassifier().fit(frame, labels)
    assert clf.model_.calibration is not None
    clf.save(tmp_path / "table.deciban")
    code = "import sys, deciban; deciban.load(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "table.deciban")], capture_output=True, text=True, check=True
    )
    assert "deciban.model.calibration" in done.stdout.split()
    assert not [name for name in done.stdout.split() if name.startswith(("deciban.latent.", "deciban.topics"))]


def test_a_command_does_not_import_the_other_commands():
    code = """
import sys
from deciban.cli.app import COMMANDS, invoke
assert invoke([sys.argv[1], "--help"]) == 0
print({name for name in COMMANDS.values() if f"deciban.cli.{name}" in sys.modules} - {"app"})
"""
    for name in ("predict", "unlearn", "demo"):
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
        assert f"Usage: deciban {name} " in done.stdout
        assert done.stdout.splitlines()[-1] == str({COMMANDS[name]} - {"app"})


def test_no_other_module_touches_imports_garbage_collection_or_freed_memory():
    touched = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            changed = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            if (
                "gc" in imported
                or (isinstance(node, ast.Attribute) and node.attr in ("meta_path", "malloc_trim", "release_unused"))
                or (changed and ast.unparse(node.value) == "sys.modules")
            ):
                touched.append(path.relative_to(PACKAGE).as_posix())
    assert set(touched) == {"cli/process.py"}


@pytest.mark.parametrize("arguments", [["no-such-command"], ["predict"], ["fit", "a.csv", "--no-such-option"]])
def test_typer_raises_the_exception_that_is_reported_as_a_usage_error(arguments):
    from deciban.cli.app import UsageException, invoke, usage_text

    with pytest.raises(UsageException) as raised:
        invoke(arguments)
    assert usage_text(raised.value).endswith("--help")
    assert raised.value.ctx.command_path.startswith("deciban")
