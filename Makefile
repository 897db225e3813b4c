# make book   set everything up, build the site
# make test   set everything up, check everything
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SITE := _build/html/index.html
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# The processes work side by side, so each keeps to one thread.
TEXTS := *.md book benchmarks ncdlib
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.PHONY: help setup book test quick lint unit site lab bench reproduce audit lock clean
.NOTPARALLEL:

help:
	@echo "make book       build the site (installs all it needs into $(VENV) first)"
	@echo "make test       lint, unit tests, doctests, every chapter, the site in a browser"
	@echo "make quick      lint and the fast tests"
	@echo "make lab        open the chapters in JupyterLab"
	@echo "make bench      measure the speed of the package"
	@echo "make reproduce  measure what results/ does not hold yet"
	@echo "make audit      ask PyPI for known faults of everything in requirements.lock"
	@echo "make lock       write requirements.lock from what $(VENV) holds"
	@echo "make clean      remove the site and all caches; $(VENV) stays"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \
	    'ncdlib needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ...')"
	@echo "Installing into $(VENV): once, a few minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

book: $(READY)
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "Open $(CURDIR)/$(SITE)"

test: lint unit book site

quick: lint
	$(PYTEST) -m "not slow" --doctest-modules ncdlib tests

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/codespell $(TEXTS)
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive ncdlib

unit: $(READY)
	$(PYTEST) --doctest-modules ncdlib tests --ignore tests/test_site.py

# The build has executed every chapter; these tests read what it made.
site: $(READY)
	$(PYTEST) tests/test_site.py

# Once the book is built, book/filled_in has the chapters as the site shows them, beside their sources.
lab: $(READY)
	ln -sfn ../_build/html/notebooks book/filled_in
	$(BIN)/jupyter lab book

bench: $(READY)
	$(BIN)/ncd bench

reproduce: $(READY)
	$(BIN)/ncd reproduce

# Needs PyPI's list of advisories, which a mirror of its files may not have.
audit: $(READY)
	$(BIN)/pip-audit --requirement requirements.lock --no-deps --disable-pip --strict

# A local build tag (torch's "+cpu") names a file of one machine, not a release.
lock: $(READY)
	{ echo "# Every distribution the project is developed and tested with, exactly. Written by: make lock"; \
	  $(PIP) freeze --all --exclude pip --exclude-editable | sed 's/+.*//' | LC_ALL=C sort --ignore-case; } > requirements.lock
	touch $(READY)

clean:
	rm -rf _build build dist .pytest_cache .hypothesis *.egg-info
	find . -path ./$(VENV) -prune -o \( -name __pycache__ -o -name .ruff_cache \) -prune -exec rm -rf {} +
