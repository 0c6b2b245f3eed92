# Everything runs in .venv, made on first use; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := .venv/.installed
TOOLS := .venv/.tools
SITE := .venv/.site

FUZZ_SECONDS ?= 3600

.PHONY: demo test test-sklearn check mutants fuzz docs clean

demo: $(INSTALLED)
	$(BIN)/python -m deciban.demo

# one BLAS thread a worker: on two cores two workers with two threads each wait for each other
test: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# scikit-learn's own tests against the classes of deciban.sklearn
test-sklearn: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/peers/run_sklearn_tests.py

check: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/docstrings.py
	$(BIN)/python tools/package_map.py --check docs/architecture.md

# deliberate faults, one at a time, each of which a test must notice
mutants: $(TOOLS)
	$(BIN)/python tools/mutants.py

# model files that were changed: each must be refused, or be a model that can be used; the seed is printed
fuzz: $(TOOLS)
	$(BIN)/python tests/store/fuzz.py --seconds $(FUZZ_SECONDS)

# the documentation site, in docs/_build/html; a warning is an error
docs: $(SITE)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs docs/_build/html

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $(INSTALLED)

$(TOOLS): $(INSTALLED)
	$(PIP) --editable ".[dev]"
	touch $(TOOLS)

$(SITE): $(INSTALLED)
	$(PIP) --editable ".[docs,plots]"
	touch $(SITE)

clean:
	rm -rf .venv build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache docs/_build docs/gallery_pages docs/reference/generated
