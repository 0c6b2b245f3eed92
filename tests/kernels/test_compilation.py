"""When numba is imported, which of its private names are used, and compilation without a writable cache directory."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deciban
from deciban import kernels

PACKAGE = Path(deciban.__path__[0])

SMALL_TABLE = """
import sys
import numpy as np
from deciban import kernels

rng = np.random.default_rng(0)
X, codes, origin = rng.normal(size=(1000, 20)), rng.integers(0, 5, 1000), np.zeros(20)
kernels.encode_integers(codes)
kernels.class_moments(X, codes, None, origin, 5)
kernels.class_moments_with_gaps(X, codes, None, origin, 5)
kernels.class_scatter(X, codes, None, origin, 5)
parameters = rng.random((5, 20))
kernels.log_softmax(kernels.diagonal_scores(X, parameters, parameters, parameters))
kernels.softmax(kernels.whitened_distances(X, parameters, rng.normal(size=(5, 20, 20)), origin))
categories = rng.integers(0, 9, (1000, 20))
sizes, counts = kernels.category_counts_growing(categories, codes, None, 5)
kernels.category_scores(categories, counts.T.copy(), np.cumsum(sizes) - sizes, sizes, np.zeros((20, 5)))
assert "numba" not in sys.modules
"""

MOMENTS = """
import numpy as np
from deciban import kernels
from deciban.kernels.dense_compiled import add_moments

with kernels.forced("numba"):
    first, second = kernels.class_moments(np.ones((3, 2)), np.zeros(3, int), None, np.zeros(2), 1)
assert first.tolist() == second.tolist() == [[3.0, 3.0]]
assert not add_moments.cached
"""


MODULES_WITHOUT_NUMBA = """
import sys
import deciban.text.kernels.streams, deciban.text.vocabulary, deciban.topics.kernels
import deciban.kernels.latent, deciban.families.gaussian.densities

assert "numba" not in sys.modules
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_small_table_never_waits_for_the_compiler():
    run(SMALL_TABLE)


def test_modules_with_numpy_versions_do_not_import_numba():
    run(MODULES_WITHOUT_NUMBA)


def imports(file):
    """Modules that a source file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_numba_is_imported_in_one_module():
    users = [file for file in PACKAGE.rglob("*.py") if any(f"{name}.".startswith("numba.") for name in imports(file))]
    assert users == [PACKAGE / "kernels" / "jit.py"], "import numba's names from deciban.kernels.jit"


@pytest.mark.parametrize("package", ["text", "topics"])
def test_kernels_of_a_package_import_only_other_kernels(package):
    shared = {f"deciban.kernels.{name}" for name in ("choice", "dense", "intrinsics", "jit", "parallel", "rows")}
    files = [*(PACKAGE / package).glob("kernels*.py"), *(PACKAGE / package).glob("kernels/*.py")]
    assert files
    for file in files:
        ours = {name for name in imports(file) if name.startswith("deciban.")}
        assert {name for name in ours - shared if not name.startswith(f"deciban.{package}.kernels")} == set(), file


def test_the_private_names_of_numba_are_where_jit_expects_them():
    import numba
    from numba.core import cgutils
    from numba.core.base import BaseContext
    from numba.core.caching import FunctionCache
    from numba.core.runtime import rtsys

    from deciban.kernels import jit
    from deciban.kernels.dense_compiled import add_moments

    def check(owner, *names):
        missing = [name for name in names if not hasattr(owner, name)]
        assert not missing, (
            f"numba {numba.__version__} has no {missing} on {owner!r}. Only deciban/kernels/jit.py uses "
            "private names of numba: adapt it and this test, or require an older numba in pyproject.toml."
        )

    stored = FunctionCache(add_moments.function)
    check(stored, "_cache_file", "_guard_against_spurious_io_errors", "_load_overload", "load_overload")
    check(stored._cache_file, "_source_stamp")
    check(numba.njit(add_moments.function), "_cache", "_compilation_chain_init_hook", "stats")
    check(rtsys, "initialize")
    check(cgutils, "alloca_once_value", "for_range", "for_range_slice", "unpack_tuple")
    check(BaseContext, "cast", "get_data_type", "get_dummy_value", "get_value_type", "make_array", "make_tuple")
    # The stamp on disk is compared with this one, so that a change of any kernel source file invalidates machine code.
    assert jit.KernelCache(add_moments.function)._cache_file._source_stamp[0] == stored._cache_file._source_stamp
    assert isinstance(add_moments.run._cache, jit.KernelCache)


def test_kernels_work_where_nothing_can_be_written(tmp_path):
    # Root may write anywhere, so the places a cache could go to are made impossible instead: files, not directories.
    shutil.copytree(PACKAGE, tmp_path / "deciban", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "deciban" / "kernels" / "__pycache__").write_text("")
    nowhere = str(Path(os.devnull) / "nowhere")
    run(MOMENTS, PYTHONPATH=str(tmp_path), HOME=nowhere, XDG_CACHE_HOME=nowhere, NUMBA_CACHE_DIR=nowhere)


def test_kernels_work_when_the_disk_fills_up_after_they_were_loaded(tmp_path):
    full = "from numba.core.caching import IndexDataCacheFile\ndef save(*args): raise OSError(28, 'No space left')\n"
    run(full + "IndexDataCacheFile.save = save\n" + MOMENTS, NUMBA_CACHE_DIR=str(tmp_path))


def test_what_was_compiled_is_kept_until_any_part_of_it_changes(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "deciban", ignore=shutil.ignore_patterns("__pycache__"))
    kept = (
        MOMENTS.replace("not add_moments", "add_moments") + "assert sum(add_moments.run.stats.cache_hits.values()) == "
    )
    place = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run(kept + "0", **place)
    run(kept + "1", **place)
    with open(tmp_path / "deciban" / "kernels" / "intrinsics.py", "a") as part:
        part.write("# changed")
    run(kept + "0", **place)


def test_code_on_disk_is_loaded_without_what_compiling_needs(tmp_path):
    ready = 'import sys; assert ("numba.cpython.heapq" in sys.modules) is '
    for compiling in (True, False):
        run(MOMENTS.replace("not add_moments", "add_moments") + ready + str(compiling), NUMBA_CACHE_DIR=str(tmp_path))


def test_only_the_two_bodies_can_be_forced():
    with pytest.raises(ValueError, match="fortran"), kernels.forced("fortran"):
        pass


def test_the_choice_goes_by_the_amount_of_work():
    from deciban.kernels.choice import compiled

    assert not compiled(kernels.SMALL_WORK - 1)
    assert compiled(kernels.SMALL_WORK)
    with kernels.forced("numpy"):
        assert not compiled(np.inf)
