# make demo    watch odfpy do its job, from nothing to a verified, shared dataset
# make quick   run the tests of what needs no engine and no server, in a minute or so
# make test    run the tests          make lint, make types   ruff, mypy
# make test-all  run the slow tests, too; before a release, and after changes of the engine
# make venv    only make .venv        make bench              print measurements
# make docs    build the documentation site into site/; open site/index.html in a browser
# make pictures make again what programs make of the documentation: the map, screenshots, the manual page
# make search  search for wrong answers of the engine for an hour (SECONDS=3600), into .search
# make attack  attack what parses others' bytes and what listens, for an hour (SECONDS=3600), into .attack
# make lowest  run the tests with the oldest versions that pyproject.toml allows
# make clean   remove all that make has made
#
# Needs make and Python 3.10 to 3.13, nothing else; pip brings the rest, Java too. Another Python: make PYTHON=python3.12 ...

PYTHON ?= $(firstword $(foreach python,python3 python3.11 python3.12 python3.13 python3.10,$(shell \
	$(python) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null && echo $(python))))

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --use-pep517 --constraint constraints.txt
TESTS ?= tests
# That many processes run the tests; each may have a Spark engine, of over a gigabyte.
PROCESSES ?= 2

# Bytecode that is not kept is made anew by each of the thousands of processes that tests start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo quick test test-all search attack lowest lint types docs pictures bench clean

help:
	@sed -n '1,/^$$/s/^# *//p' Makefile

# Two stamps, so that the demo need not wait for the tools of developers.
$(VENV)/runs: pyproject.toml constraints.txt setup.py odfpy/data/slices/_packing.c
	$(if $(PYTHON),,$(error No Python 3.10 to 3.13 found; name one with: make PYTHON=/path/to/python))
	@echo "Installing odfpy and what it needs into $(VENV), over half a gigabyte the first time ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/develops: $(VENV)/runs
	@echo "Installing the tools for tests and checks ..."
	@$(PIP) --editable '.[dev]'
	@touch $@

venv: $(VENV)/develops

demo: $(VENV)/runs
	@$(BIN)/python demo/demo.py

test-all: CHOSEN := -m 'not attack' --hypothesis-profile thorough
test test-all: $(VENV)/develops
	@.ci/packages || echo "Some programs are missing; the tests that need them will fail." >&2
	@export PYTHON=$(PYTHON); .ci/clients & clients=$$!; .ci/flight; flight=$$?; wait $$clients && exit $$flight
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) $(CHOSEN) $(TESTS)

# A few examples of each property; no Spark, no servers, no processes that are killed.
QUICK := $(addprefix tests/,chain codec data dataset ethereum http ingest provenance query security state test_architecture.py test_files.py)
quick: $(VENV)/develops
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) --hypothesis-profile quick \
		-m 'not spark and not attack and not slow and not processes' --ignore tests/ingest/read/test_fuzz_readers.py $(QUICK)

# Findings are manifests and rows in .search; `ARGS=--seed=N` repeats a search.
SECONDS ?= 3600
search: $(VENV)/develops
	PYTHONPATH=tests $(BIN)/python -m support.search --seconds $(SECONDS) --processes $(PROCESSES) $(ARGS)

# Guided by coverage; then the tests that take long, or measure memory and time.
attack: $(VENV)/develops
	@$(PIP) --editable '.[attack]'
	PYTHONPATH=tests $(BIN)/python -m support.attack --seconds $(SECONDS) --processes $(PROCESSES) $(ARGS)
	$(BIN)/python -m pytest -m attack $(TESTS)

# With the oldest versions that pyproject.toml allows, in an environment of its own; before a release.
lowest:
	@PYTHON=$(PYTHON) PROCESSES=$(PROCESSES) .ci/lowest $(TESTS)

lint: $(VENV)/develops
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/develops
	$(BIN)/mypy

# The variable stops an advertisement of the theme. Warnings are errors, links that lead nowhere among them; with
# --quiet they would not even be counted.
docs: $(VENV)/develops
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is in the folder site: open site/index.html."

pictures: $(VENV)/develops
	$(BIN)/python docs/builder/package_map.py
	$(BIN)/python docs/builder/screenshots.py
	$(BIN)/python docs/builder/page_screenshots.py
	$(BIN)/python docs/builder/man_page.py

bench: $(VENV)/develops
	@for program in benchmarks/*.py; do $(BIN)/python $$program || exit 1; done

clean:
	rm -rf $(VENV) .demo .attack .search .venv-lowest site build dist .venv-clients .venv-dagster .venv-airflow .venv-datalake .venv-flight *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
