# On a fresh machine with git, make and Python 3.11 or newer: `make plan`, then `make test`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCK   := $(BIN)/pip-compile --quiet --no-header --no-annotate --strip-extras \
          --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options $(LOCK_ARGS)

# A start is measured, and felt, with compiled bytecode: never ask Python to do without it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help plan test test-fast coverage check format lint types layers deps facts schemas docs \
        docs-fresh pages bench dev fmt lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- run it

plan: $(VENV)/.base ## plan the LoRA fine-tune of examples/lora-7b.toml on the bundled data
	@$(BIN)/rackrate plan examples/lora-7b.toml

test: $(VENV)/.measure ## run the tests (the first time it installs PyTorch; `make test-fast` does without)
	@$(BIN)/python -m pytest

test-fast: $(VENV)/.dev ## run the tests that need no PyTorch
	@$(BIN)/python -m pytest

coverage: $(VENV)/.measure ## run the tests and show which branches none of them takes
	@$(BIN)/python -m pytest --cov --cov-report=term-missing

bench: $(VENV)/.measure ## measure starts, plans over long price lists, estimates and simulations, and write docs/performance.md
	@$(BIN)/python bench/page.py

# ---------------------------------------------------------------- check it

check: format lint types layers deps facts schemas docs ## everything but the tests
	@echo "check: all good"

format: $(VENV)/.dev
	@echo "== format"; $(BIN)/ruff format --check --quiet . || \
	  { $(BIN)/ruff format --check . ; echo "run: make fmt"; exit 1; }

lint: $(VENV)/.dev
	@echo "== lint"; $(BIN)/ruff check .

types: $(VENV)/.dev
	@echo "== types"; $(BIN)/mypy

layers: $(VENV)/.dev
	@echo "== layers"; $(BIN)/lint-imports --no-logo

deps: $(VENV)/.dev
	@echo "== dependencies"; $(BIN)/deptry --no-ansi src

facts: $(VENV)/.dev
	@echo "== facts"; $(BIN)/python tools/check_facts.py && $(BIN)/python tools/build_hosted.py --check

schemas: $(VENV)/.dev
	@echo "== schemas"; $(BIN)/python tools/build_schemas.py --check

docs-fresh: $(VENV)/.dev
	@echo "== generated pages"; $(BIN)/python tools/build_docs.py --check

pages: $(VENV)/.dev ## write the generated pages and schemas anew
	$(BIN)/python tools/build_schemas.py
	$(BIN)/python tools/build_docs.py

docs: docs-fresh ## build the documentation into build/docs, warnings as errors
	@echo "== docs"; $(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet \
	  --doctree-dir build/doctrees -b html docs build/docs

# ---------------------------------------------------------------- change it

dev: $(VENV)/.dev ## build .venv with everything that working on rackrate takes
	@:

fmt: $(VENV)/.dev ## format, and mend what the linter can mend by itself
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

# The pins of one purpose bind the next. The local label of a torch build ("+cpu") is dropped.
lock: $(VENV)/.dev ## pin requirements/*.txt again; LOCK_ARGS=--upgrade takes newer releases
	$(LOCK) -o requirements/base.txt pyproject.toml
	$(LOCK) --extra dev -c requirements/base.txt -o requirements/dev.txt pyproject.toml
	$(LOCK) --extra docs -c requirements/dev.txt -o requirements/docs.txt pyproject.toml
	$(LOCK) --extra measure -c requirements/docs.txt -o requirements/measure.txt pyproject.toml
	$(LOCK) --extra hub -c requirements/dev.txt -o requirements/hub.txt pyproject.toml
	sed -i.bak -E 's/^(torch==[0-9.]+)\+.*/\1/' requirements/measure.txt
	rm -f requirements/measure.txt.bak

clean: ## remove everything that make made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache \
	  .hypothesis .coverage htmlcov
	find src tests tools bench docs -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------- the environment

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("rackrate needs Python 3.11 \
	or newer, and $(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: requirements/base.txt pyproject.toml | $(BIN)/python
	$(PIP) install -r requirements/base.txt
	$(PIP) install --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/docs.txt $(VENV)/.base
	$(PIP) install -r requirements/dev.txt -r requirements/docs.txt
	@touch $@

# PyTorch by plain version: from a machine's own index, whatever build it has (decision 0004).
$(VENV)/.measure: requirements/measure.txt $(VENV)/.dev
	$(PIP) install -r requirements/measure.txt
	@touch $@
