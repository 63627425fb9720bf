# Everything runs from here; each target builds what it needs. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# A file of tests stays with one worker, so that what its tests share is made once.
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --durations=15

# Bytecode is wanted (imports are slow without), and BLAS threads only get in each other's way.
unexport PYTHONDONTWRITEBYTECODE
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

BUILD_FILES := pyproject.toml CMakeLists.txt $(wildcard src/rejoint/kernels/*.cpp src/rejoint/kernels/*.hpp)
SKLEARN_CHECKS := tests/estimators -k scikit_learn
KERNEL_TESTS := $(wildcard tests/test_kernels*.py tests/test_marginals*.py)

.PHONY: demo test fuzz tables interrupts sklearn lint architecture browser bench bench-scripts bench-accuracy bench-classify bench-tables figures docs docs-check dist test-floor changelog screenshots paper paper-fast clean help

demo: $(VENV)/plots.stamp  ## recover the Asia network from incomplete records
	@$(BIN)/rejoint demo --output demo

test: lint browser  ## lint, types, tests and doctests, with compiled kernels and with NumPy's
	$(PYTEST)
	$(if $(KERNEL_TESTS),REJOINT_KERNELS=numpy $(PYTEST) $(KERNEL_TESTS))

lint: $(VENV)/test.stamp  ## ruff, mypy --strict, spelling, workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md changes docs examples src tools
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[bf]*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff

browser:  # Chromium, for the tests of the explorer; without it they are skipped
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium for the tests of the explorer ..."; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	      --no-install-recommends chromium >/dev/null 2>&1 || \
	      echo "Chromium could not be installed: the tests of the explorer are skipped."; \
	  else \
	    echo "There is no Chromium: the tests of the explorer are skipped (apt-get install chromium)."; \
	  fi; }

architecture: $(VENV)/test.stamp  ## figures of the source tree: files, import chains, names, single places
	@$(BIN)/python -m tools.architecture --trace

FUZZ_SECONDS ?= 600

fuzz: $(VENV)/test.stamp  ## mutated inputs for each of seven readers, FUZZ_SECONDS (600) each
	@for reader in text json tables models checkpoints questions arguments; do \
	  PYTHONPATH=tests $(BIN)/python -m fuzz $$reader --seconds $(FUZZ_SECONDS); done

tables: $(VENV)/test.stamp  ## published tables; real files are kept in the folder REJOINT_TABLE_FILES
	$(BIN)/pytest -q tests/tables tests/test_table_files.py

sklearn: $(VENV)/test.stamp  ## scikit-learn's checks on default estimators, at the oldest version and the newest
	REJOINT_SKLEARN_CHECKS=all $(BIN)/pytest -q -n $(WORKERS) $(SKLEARN_CHECKS)
	$(BIN)/python -m pip install -qq --no-deps --target build/sklearn-1.6 --upgrade 'scikit-learn==1.6.*'
	PYTHONPATH=build/sklearn-1.6 REJOINT_SKLEARN_CHECKS=all $(BIN)/pytest -q -n $(WORKERS) \
	  -W ignore::pytest.PytestRemovedIn10Warning $(SKLEARN_CHECKS)

interrupts: $(VENV)/test.stamp  ## Ctrl-C at 200 random moments; 1,050 kills of all that writes files
	@$(BIN)/python tests/interrupts.py
	REJOINT_KILLS=150 $(BIN)/pytest -q tests/test_atomic.py -k kills

bench: $(VENV)/bench.stamp  ## hot paths beside NumPy, peers and the machine's limits; how cost grows
	@$(BIN)/python -u -m benchmarks.speed

bench-scripts: $(VENV)/bench.stamp  ## the other benchmarks: each script prints its own table
	@set -- $$(ls benchmarks/[a-z]*.py | grep -v -e models.py -e figures.py); \
	[ $$# -gt 0 ] || { echo "There are no benchmarks yet (benchmarks/*.py)."; exit 0; }; \
	for script in "$$@"; do echo "== $$script"; $(BIN)/python "$$script"; done

bench-accuracy: $(VENV)/bench.stamp  ## errors of estimates from records, against peers and bounds
	@$(BIN)/python -m benchmarks.accuracy
	@$(BIN)/python -m benchmarks.accuracy --intervals
	@$(BIN)/python -m benchmarks.accuracy --ranks

bench-classify: $(VENV)/bench.stamp  ## the paper's seven sets against scikit-learn (hours; resumes); speed
	@$(BIN)/python -m benchmarks.classify
	@$(BIN)/python -m benchmarks.classify --speed
	@$(BIN)/python -m benchmarks.classify --agreement

bench-tables: $(VENV)/bench.stamp  ## joints from nothing but tables, against ipfn and mbi
	@$(BIN)/python -m benchmarks.tables_only

figures: $(VENV)/bench.stamp  ## one sheet of figures beside stored ones, worse ones marked (minutes)
	@$(BIN)/python benchmarks/figures.py

docs: $(VENV)/docs.stamp  ## the documentation, into docs/_build/html
	@rm -rf docs/reference/generated  # pages of names that are gone
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

docs-check: docs browser  ## overflow at 1440 pixels, and what searches find
	@$(BIN)/python -m tools.check_pages docs/_build/html

# Old packages use what newer ones have deprecated.
FLOOR_WARNINGS := -W ignore::DeprecationWarning -W ignore::FutureWarning -W ignore::pytest.PytestRemovedIn10Warning

test-floor:  ## the suite at the minimum versions that pyproject.toml names, in an environment of its own
	@mkdir -p build
	$(PYTHON) -m venv build/floor
	$(PYTHON) -m tools.floors > build/floors.txt
	build/floor/bin/python -m pip install -qq --disable-pip-version-check -c build/floors.txt -e '.[test]'
	build/floor/bin/python -m pip list --disable-pip-version-check | grep -i -e numpy -e scipy -e scikit-learn -e pandas
	build/floor/bin/python -m pytest -q -n $(WORKERS) --dist loadfile $(FLOOR_WARNINGS)

dist: $(VENV)/dist.stamp  ## sdist and wheel into dist/, each installed and tried, the sdist with and without compiler
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tools.try_dist dist

changelog:  ## what changes/ will add to CHANGELOG.md
	@$(PYTHON) -m tools.changelog

screenshots: $(VENV)/test.stamp browser  ## pictures of the explorer and sessions of the command line, for README and docs
	@$(BIN)/python docs/screenshots.py
	@$(BIN)/python docs/cli_sessions.py

paper: $(VENV)/paper.stamp  ## every table and figure of the paper, and the report in docs/paper (hours; resumes)
	@$(BIN)/python -m paper

paper-fast: $(VENV)/test.stamp  ## a small part of each, against expected values
	@$(BIN)/python -m paper --fast --results "$$(mktemp -d)"

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist demo docs/_build docs/gallery docs/reference/generated
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# One environment, three sizes; the larger ones contain the smallest.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rejoint needs Python 3.11 or later; say which: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

comma := ,

define install
	@echo "Installing rejoint[$(1)] into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[$(1)]'
	@$(BIN)/python -c 'from rejoint import kernels; print("Kernels:", kernels.backend)'
endef

$(VENV)/plots.stamp: $(BUILD_FILES) | $(VENV)/bin/python
	$(call install,plots)
	@touch $@

$(VENV)/test.stamp: $(BUILD_FILES) | $(VENV)/bin/python
	$(call install,test$(comma)lint)
	@touch $@ $(VENV)/plots.stamp

$(VENV)/bench.stamp: $(BUILD_FILES) | $(VENV)/bin/python
	$(call install,test$(comma)lint$(comma)bench)
	@touch $@ $(VENV)/test.stamp $(VENV)/plots.stamp

$(VENV)/paper.stamp: $(BUILD_FILES) | $(VENV)/bin/python
	$(call install,test$(comma)lint$(comma)paper)
	@touch $@ $(VENV)/test.stamp $(VENV)/plots.stamp

$(VENV)/dist.stamp: $(BUILD_FILES) | $(VENV)/bin/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check 'build>=1.2'
	@touch $@

$(VENV)/docs.stamp: $(BUILD_FILES) | $(VENV)/bin/python
	$(call install,docs$(comma)test)
	@touch $@ $(VENV)/plots.stamp
