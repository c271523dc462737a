# memtrend: `make` lists what there is.
PYTHON ?= python3
EXTRAS ?=
ARGS ?=

INSTALL = $(PYTHON) scripts/install.py
# Everything that some test, check or figure needs.
WORKSHOP = apprise bench build isolated lint mem0 minilm postgres test
BENCHMARKS = $(filter-out benchmarks/measure.py, $(wildcard benchmarks/*.py))

.PHONY: help install up test test-backends lint lock bench mutants screenshots clean python

help: ## list the targets
	@echo 'make TARGET [EXTRAS="isolated mem0"] [ARGS="..."] [PYTHON=python3.12]'
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1\t/p' Makefile | expand -t 16

install: python ## make .venv from the lock, with EXTRAS
	@$(INSTALL) $(EXTRAS)

up: install ## run the suites, collect and serve the dashboard; ARGS go to memtrend up
	@exec .venv/bin/memtrend up $(ARGS)

test: python ## everything the tests need, then the tests; ARGS go to pytest
	@$(INSTALL) --browser $(WORKSHOP)
	@exec .venv/bin/pytest -n 3 --dist loadfile $(ARGS)

test-backends: python ## every real system in every release that is known, beside what `test` runs of them
	@$(INSTALL) $(WORKSHOP)
	@exec .venv/bin/pytest -n 2 --dist loadfile -m "" tests/collectors/backends $(ARGS)

lint: python ## style, types, layers, the Dockerfile, and whether the lock fits
	@$(INSTALL) $(WORKSHOP)
	@.venv/bin/ruff check --quiet
	@.venv/bin/ruff format --quiet --check
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/hadolint Dockerfile
	@$(PYTHON) scripts/lock.py --check

lock: python ## compile requirements.lock; ARGS=--upgrade moves it to the newest
	@$(INSTALL) lint
	@$(PYTHON) scripts/lock.py $(ARGS)

bench: python ## print the figures of benchmarks/; fails when a bar is missed
	@$(INSTALL) $(WORKSHOP)
	@failed=0; for script in $(BENCHMARKS); do echo "$$script" >&2; .venv/bin/python "$$script" $(ARGS) || failed=1; done; exit $$failed

mutants: python ## put every known fault into a backend: which do golden and contract notice?
	@$(INSTALL)
	@exec .venv/bin/memtrend mutants $(ARGS)

screenshots: python ## draw every page with Chromium
	@$(INSTALL) --browser $(WORKSHOP)
	@exec .venv/bin/python scripts/screenshots.py $(ARGS)

clean: ## remove .venv and what tools left; databases and suites stay
	@rm -rf .venv dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find store collectors dashboard tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

python:
	@command -v $(PYTHON) >/dev/null || { echo 'make: $(PYTHON) is missing: apt install python3 python3-venv' >&2; exit 1; }
