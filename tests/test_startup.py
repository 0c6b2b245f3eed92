"""What a new process loads, and that it needs no place to write; nothing here is timed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deciban

FIT = """
import sys
import numpy as np, scipy.sparse as sp
from deciban import {names}, GenerativeClassifier
rng = np.random.default_rng(0)
y = rng.integers(0, 3, {rows})
X = {table}
print(GenerativeClassifier({family}).fit(X, y).predict(X)[:20].tolist(), "numba" in sys.modules)
"""
TABLES = {
    "Gaussian('diagonal')": "rng.normal(size=({rows}, 20)) + y[:, None]",
    "Gaussian('tied')": "rng.normal(size=({rows}, 20)) + y[:, None]",
    "Categorical()": "np.minimum(rng.poisson(1 + y[:, None], size=({rows}, 20)), 9)",
    "Multinomial()": "sp.csr_array(rng.poisson(1 + y[:, None] * np.arange(20) / 20, size=({rows}, 20)))",
}


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def fit(family: str, rows: int) -> str:
    table = TABLES[family].format(rows=rows)
    return FIT.format(names=family.partition("(")[0], family=family, rows=rows, table=table)


@pytest.fixture
def nowhere(tmp_path):
    """A copy of the package with no place for compiled code: in it, at home, or where numba is told to."""
    place = tmp_path / "deciban"
    shutil.copytree(Path(deciban.__file__).parent, place, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [place, *(path for path in place.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()  # a file where a folder is wanted stops even an administrator
    unusable = str(place / "__pycache__" / "deeper")
    return {
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": unusable,
        "HOME": unusable,
        "XDG_CACHE_HOME": unusable,
    }


def test_importing_deciban_loads_nothing_heavy():
    heavy = ["numpy", "numba", "scipy", "scipy.stats", "pandas", "sklearn", "rich", "narwhals"]
    assert run(f"import deciban, sys; print([name for name in {heavy} if name in sys.modules])").strip() == "[]"


def test_importing_the_classifier_loads_no_compiler():
    code = "from deciban import GenerativeClassifier, Gaussian, Categorical, Multinomial, Text; import sys"
    unused = ["numba", "matplotlib", "rich"]
    assert run(f"{code}; print([name for name in {unused} if name in sys.modules])").strip() == "[]"


def test_a_gaussian_fit_imports_no_text_no_files_and_no_other_family():
    code = fit("Gaussian('tied')", 150).replace("np, scipy.sparse as sp", "np")
    unused = [
        "text",
        "store",
        "evaluate.report",
        "families.bernoulli",
        "families.binned",
        "read.text_files",
        "read.mail",
    ]
    found = run(f"{code}\nprint([name for name in {unused} if f'deciban.{{name}}' in sys.modules])").splitlines()[-1]
    assert found == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 40_000])
def test_only_many_texts_load_the_compiler(n):
    code = f"""
import sys
from deciban import GenerativeClassifier
texts = ["the same few words " + str(i % 50) for i in range({n})]
GenerativeClassifier().fit(texts, [i % 2 for i in range({n})]).predict(texts)
print("numba" in sys.modules)
"""
    assert run(code).strip() == str(n > 12)


def test_the_library_leaves_imports_and_garbage_collection_as_they_are():
    code = """
import gc, sys, types
def state():
    return list(sys.meta_path), list(sys.path_hooks), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
before = state()
import deciban
names = {name: getattr(deciban, name) for name in deciban.__all__}
texts = ["the same few words " + str(i % 50) for i in range(40_000)]
deciban.GenerativeClassifier().fit(texts, [i % 2 for i in range(40_000)]).predict(texts)
assert state() == before
import numpy.testing, pandas, scipy.stats, sklearn.utils.fixes, sklearn.utils
for module in (numpy.testing, pandas, scipy.stats):
    assert type(module) is types.ModuleType and sys.modules[module.__name__] is module, module
assert sklearn.utils.fixes.pd is pandas
"""
    run(code)


@pytest.mark.parametrize("family", TABLES)
def test_a_small_table_does_not_wait_for_a_compiler(family):
    assert run(fit(family, 1000)).split()[-1] == "False"


@pytest.mark.parametrize("family", ["Gaussian('diagonal')", "Gaussian('tied')"])
def test_a_hundred_thousand_rows_of_numbers_do_not_wait_for_a_compiler(family):
    assert run(fit(family, 100_000)).split()[-1] == "False"


COMPILED = [pytest.param(family, marks=[pytest.mark.slow][:at]) for at, family in enumerate(TABLES)]


@pytest.mark.slow
@pytest.mark.parametrize("family", COMPILED)
def test_kernels_work_with_no_place_to_write(family, nowhere):
    code = fit(family, 250_000)
    answer, compiled = run(code, **nowhere).rsplit(maxsplit=1)
    assert compiled == "True"
    assert answer == run(code).rsplit(maxsplit=1)[0]
    assert not list(Path(nowhere["PYTHONPATH"]).rglob("*.nb?"))
