# Everything runs in .venv, made on first use; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := .venv/.installed
TOOLS := .venv/.tools

.PHONY: demo test check mutants kills load fuzz clean

demo: $(INSTALLED)
	$(BIN)/python -m deciban.demo

# one BLAS thread a worker: on two cores two workers with two threads each wait for each other
test: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

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

# a service that is taught and killed 1,000 times; about half an hour
kills: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/service/kills.py --kills 1000

# random requests of the kind that the OpenAPI description states
fuzz: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/service/fuzz.py --examples 200

# answers and lessons per second, and an hour of both
load: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/service_load.py --hours 1

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $(INSTALLED)

$(TOOLS): $(INSTALLED)
	$(PIP) --editable ".[dev]"
	touch $(TOOLS)

clean:
	rm -rf .venv build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
