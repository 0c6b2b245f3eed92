# Everything runs in .venv, made on first use; a second run installs nothing.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALLED := .venv/.installed
TOOLS := .venv/.tools
SITE := .venv/.site

BENCH := .venv-bench/.installed
JOB ?= all
# of the rows: a fifth is enough for a quick look
SHARE ?= $(if $(filter quick,$(JOB)),0.2,1)
RESULTS ?= benchmarks/results/$(JOB).json

FUZZ_SECONDS ?= 3600
FUZZ_SEED ?=

# what `make test-lowest`, `test-python` and `test-numpy` run: everything that needs no other library
LOWEST := tests/laws tests/families tests/statistics tests/estimators tests/read tests/text tests/store tests/evidence tests/latent tests/topics
FOR_TESTS := pytest-xdist hypothesis pandas polars safetensors httpx
# warnings that older versions of dependencies give
OLDER := -W "ignore:deciban.sklearn was tested:UserWarning" -W "ignore:'click.utils:DeprecationWarning" \
	-W "ignore:'autocompletion':DeprecationWarning"
# scikit-learn 1.6 gives sparse rows to estimators that do not take them, and asks frames in a way that polars 1.40 deprecates
OLD := -k "not on_sparse_data"

.PHONY: demo test test-slow test-lowest test-python test-numpy test-sklearn gallery-sklearn test-dask test-spark check mutants fuzz faults kill docs dist bench serve-kill serve-fuzz serve-load clean

demo: $(INSTALLED)
	$(BIN)/python -m deciban.demo

# one BLAS thread a worker: on two cores two workers with two threads each wait for each other
test: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# pages, sessions and laws on real data that take long
test-slow: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# the tests of the library with the lowest declared version of every dependency, in an environment of its own
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tools/lowest.py plots web > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/lowest.txt --editable ".[plots,web]" "pytest<9" "polars<1.40" "pyparsing<3.3" $(FOR_TESTS)
	OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n 2 --dist worksteal $(OLDER) $(OLD) $(LOWEST)

# the same tests with another Python, in an environment of its own: `make test-python PYTHON=python3.13`
test-python:
	$(PYTHON) -m venv .venv-$(notdir $(PYTHON))
	.venv-$(notdir $(PYTHON))/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[plots,web]" pytest $(FOR_TESTS)
	OPENBLAS_NUM_THREADS=1 .venv-$(notdir $(PYTHON))/bin/python -m pytest -n 2 --dist worksteal $(LOWEST)

# the same tests without compiled loops
test-numpy: $(TOOLS)
	DECIBAN_KERNELS=numpy OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(LOWEST)

# scikit-learn's own tests against the classes of deciban.sklearn
test-sklearn: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/peers/run_sklearn_tests.py

# every example of scikit-learn's gallery that uses these classes, as it is and under the patch; downloads the examples
gallery-sklearn: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/peers/run_gallery.py

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
serve-kill: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/service/kills.py --kills 1000

# workers of a Dask cluster are killed during ten fits; each model must be the same to the bit
test-dask: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/engines/kills.py --kills 10

# the engine of Spark, in an environment of its own; needs Java 17, and installs 456 MB
test-spark:
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[spark]"
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 .venv-spark/bin/python tests/engines/spark.py

# random requests of the kind that the OpenAPI description states
serve-fuzz: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/service/fuzz.py --examples 200

# answers and lessons per second, and an hour of both
serve-load: $(TOOLS)
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/service_load.py --hours 1

# model files that were changed: each must be refused, or be a model that can be used; the seed is printed
fuzz: $(TOOLS)
	$(BIN)/python tests/store/fuzz.py --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

# the n-th read, write, fsync, rename or allocation fails, for every n, in every command that uses a model
faults: $(TOOLS)
	$(BIN)/python tests/faults/campaign.py --allocations 300

# a thousand commands are killed; no learnt row may be lost
kill: $(TOOLS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/faults/kill.py 1000

# wheel and source distribution in dist/: contents, and a first use in an empty environment
dist: $(TOOLS)
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/distribution.py

# both sides of every job in turns, the peers pinned, in an environment of its own: `make bench JOB=quick`
bench: $(BENCH)
	.venv-bench/bin/python benchmarks/run.py $(JOB) --share $(SHARE) --json $(RESULTS)
	.venv-bench/bin/python benchmarks/page.py $(RESULTS) -o docs/benchmarks.md

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

$(BENCH): benchmarks/requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable . --requirement benchmarks/requirements.txt
	touch $(BENCH)

$(SITE): $(INSTALLED)
	$(PIP) --editable ".[docs,plots]"
	touch $(SITE)

clean:
	rm -rf .venv .venv-bench .venv-lowest .venv-spark .venv-python* build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache docs/_build docs/gallery_pages docs/reference/generated
