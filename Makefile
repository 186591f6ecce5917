# make demo   set everything up, generate datasets, train GIN, GT and pairs, write a report (about six minutes, 2 cores)
# make setup  create .venv with the package and everything for its tests, nothing else; all other targets do so first
# make test   set everything up, run linters, type checks, import contracts and tests (2 cores: 13 to 19 minutes the first time, then at most 11)
# make docs   build the documentation; make docs-check opens every page in headless Chromium (apt-get install chromium)
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
HTML   := docs/_build/html
TESTS  ?= not slow and not thorough
FAST   = -m '$(TESTS)' -n 2 --dist loadscope --no-loadscope-reorder  # files in the order of their names: the longest test is not the last

DEMO        ?= demo
DEMO_STEPS  ?= 400
DEMO_TRAIN  ?= 1000000
DEMO_TEST   ?= 50
DEMO_SEEDS  ?= 0

.PHONY: setup demo test test-all bounds lint docs docs-check browser bench package-check lowest licences clean

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("graphbench needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

setup: $(STAMP)

demo: $(STAMP)
	@$(BIN)/graphbench list algoreas_easy --root $(DEMO)/data
	@echo "graphbench list, without a name, shows all datasets."
	$(BIN)/graphbench generate mst_easy --root $(DEMO)/data --limit $(DEMO_TRAIN)
	$(BIN)/graphbench verify mst_easy --root $(DEMO)/data --samples 50
	@for dataset in mst_easy topological_sort_easy; do for model in gin_small gt_small pairs; do \
	  for seed in $(DEMO_SEEDS); do set -e; \
	    $(BIN)/graphbench train $$dataset --model $$model --seed $$seed --steps $(DEMO_STEPS) --root $(DEMO)/data \
	      --limit $(DEMO_TRAIN) --eval-limit $(DEMO_TEST) --evaluate val,test,n192,n256 \
	      --output $(DEMO)/runs/$$dataset-$$model-$$seed --records $(DEMO)/records; \
	  done; done; done
	$(BIN)/graphbench report --records $(DEMO)/records --output $(DEMO)/report --title 'graphbench demo'
	@echo
	@echo "Open $(DEMO)/report/report.html (or read $(DEMO)/report/report.md)."

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_NUM_WORKERS=2 $(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/python -m pytest $(FAST) -q

test-all: lint docs browser bounds
	GRAPHBENCH_DOCS=$(HTML) $(BIN)/python -m pytest -q

# the tests that run kernels, compiled with checks of array bounds, in a cache of their own (6 minutes on 2 fast cores)
bounds: TESTS = not slow
bounds: $(STAMP)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath build/bounds) $(BIN)/python -m pytest $(FAST) \
	  --timeout 1800 -q tests/data tests/domains tests/models tests/tasks tests/training

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs,sat,chip]'
	@touch $(DOCS_STAMP)

docs: $(DOCS_STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -j 2 -b html docs $(HTML)
	@echo "Open $(HTML)/index.html"

docs-check: docs browser
	GRAPHBENCH_DOCS=$(HTML) $(BIN)/python -m pytest -q tests/docs

browser: $(DOCS_STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[browser]'

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run

# every way to install the package: three Pythons, wheel and sdist, extras alone (about an hour, 20 GB of packages)
package-check: $(STAMP)
	$(BIN)/python tests/packaging/matrix.py $(PACKAGE_CHECK)

# the lowest versions of the dependencies that pyproject.toml allows (about 20 minutes)
lowest: $(STAMP)
	$(BIN)/python tests/packaging/lowest.py

# THIRD_PARTY.md, from the metadata of what the extras install
licences: $(STAMP)
	$(BIN)/python tests/packaging/licences.py

clean:
	rm -rf $(VENV) $(DEMO) docs/_build build dist
