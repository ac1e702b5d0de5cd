# `make demo` and `make test` set up .venv themselves; a stamp says what is already installed.
# Another interpreter beside the usual one: make VENV=.venv312 PYTHON=python3.12 test
VENV ?= .venv
BIN := $(VENV)/bin
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# The first of these that is new enough; python3 when none is, which the rule below then refuses.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $$p && exit; done; echo python3)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint types bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python -m rlmemory demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m asv_bench.ratios
	$(BIN)/python -m asv_bench.ratios_sampling
	$(BIN)/python -m asv_bench.ratios_trajectories
	$(BIN)/python -m asv_bench.ratios_matlab

# A .venv that was left half made, whose interpreter is gone or is too old, is made again; one that works is kept.
WORKS := $(shell $(BIN)/python -c 'import pip; $(NEW_ENOUGH)' 2>/dev/null && echo yes)
ifneq ($(WORKS),yes)
.PHONY: $(VENV)/.made
endif
$(VENV)/.made:
ifneq ($(WORKS),yes)
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "rlmemory needs Python 3.11 or newer, and $(PYTHON) is not;" \
	  "say which to take: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up $(VENV): a minute or two, once"
	@$(PYTHON) -m venv --clear $(VENV)
endif
	@touch $@

# The demo needs only what a user needs; the tests need the tools as well.
$(VENV)/.demo: pyproject.toml $(VENV)/.made
	@$(INSTALL) -e '.[gym]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.made
	@$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .asv build dist
