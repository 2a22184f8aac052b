# `make demo` and `make test` are all a newcomer needs: they set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONTRACT := .venv-contract

.PHONY: help demo test check e2e contract times bench schemas clean

help:
	@echo "make demo    a GPU shortage, from burst to return, on this machine (demo-out/)"
	@echo "make test    all tests"
	@echo "make check   ruff, mypy --strict, import-linter"
	@echo "make e2e     tests against real control planes, which it builds once where Go is"
	@echo "make contract tries a running daemon on its own OpenAPI, with schemathesis"
	@echo "make times   how long a burst takes over real control planes, step by step"
	@echo "make bench   the figures, one a line: name value bound"
	@echo "make schemas write repo-layout/schemas anew"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Overspill needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@git --version >/dev/null || { echo "Overspill needs git: apt-get install git"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Overspill needs Python's venv module: apt-get install python3-venv"; exit 1; }
	@echo "Installing into $(VENV), once; this takes a minute or two"
	$(RUN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(RUN)/overspill demo --out demo-out

# Many tests wait for a process or a clock: two more at a time than there are processors. Without bytecode each of them
# would compile all tests, wherever the environment says to keep none.
test: $(STAMP)
	env -u PYTHONDONTWRITEBYTECODE $(RUN)/pytest -n $$($(RUN)/python -c 'import os; print(2 + (os.cpu_count() or 1))') --dist worksteal -q

check: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports

# Six control planes with their engines on two cores are late at times. What failed beside others is asked once more, by
# itself: what is wrong fails again, and what it said the first time stays to be read.
e2e: $(STAMP)
	@$(RUN)/python -m tests.e2e.components
	$(RUN)/pytest tests/e2e -q -n 2 --dist loadgroup || $(RUN)/pytest tests/e2e -q --last-failed --last-failed-no-failures=none

# schemathesis brings a plugin for pytest, which has no business among our tests: it lives apart.
$(CONTRACT)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(CONTRACT)
	$(CONTRACT)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt '.[contract]'
	@touch $@

contract: $(STAMP) $(CONTRACT)/.installed
	@$(RUN)/python -m tests.contract $(abspath $(CONTRACT))/bin/schemathesis

times: $(STAMP)
	@$(RUN)/python -m tests.e2e.times

bench: $(STAMP)
	@$(RUN)/python -m tests.bench

schemas: $(STAMP)
	$(RUN)/overspill schema --all --out repo-layout/schemas

clean:
	rm -rf $(VENV) $(CONTRACT) demo-out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
