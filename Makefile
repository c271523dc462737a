PYTHON ?= python3
EXTRAS ?=

.PHONY: install
install:
	@$(PYTHON) scripts/install.py $(EXTRAS)
