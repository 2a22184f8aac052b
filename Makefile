# `make demo` and `make test` are all a newcomer needs: they set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONTRACT := .venv-contract
DOCS := .venv-docs

.PHONY: help demo test properties check e2e e2e-platform contract times long-run bench bounds lab lab-docs site pictures screenshots chaos fuzz schemas reference requirements kubernetes-kinds clean

help:
	@echo "make demo    a GPU shortage, from burst to return, on this machine (demo-out/)"
	@echo "make test    all tests, with a part of the cases of the longest tables"
	@echo "make properties tries fifteen times as many examples of each property as make test, and all cases of its long tables"
	@echo "make check   ruff, mypy --strict, import-linter"
	@echo "make e2e     tests against real control planes, which it builds once where Go is"
	@echo "make e2e-platform tests against the controllers of a GPU platform, which it builds once where Go is"
	@echo "make contract tries a running daemon on its own OpenAPI, with schemathesis"
	@echo "make times   how long a burst takes over real control planes, step by step"
	@echo "make long-run hours of bursts and faults in one, over real control planes; NODES, PODS, BURSTS, MINUTES"
	@echo "make bench   the figures, one a line: name value bound"
	@echo "make bounds  measures each bound on an input, at it and beyond it, for docs/reference/bounds.md"
	@echo "make lab     the figures of the lab with the policy of init; TRACES=DIRECTORY has logs of real traffic"
	@echo "make lab-docs writes the figures of docs/how-to/policies.md and the pictures of docs/how-to/lab.md anew"
	@echo "make site    the documentation as a site in .site, with search; needs a package index once"
	@echo "make pictures draws the demo and the answers of commands in docs/pictures anew"
	@echo "make screenshots takes pictures of the site, the lab's page and the daemon's page in docs/pictures anew; needs chromium and its driver"
	@echo "make chaos   kills, cut transfers, signals, full disks, two daemons and thousands of passes; about two hours"
	@echo "make fuzz    half an hour of CPU on files, records, objects, answers and HTTP bodies that nobody foresaw"
	@echo "make schemas write repo-layout/schemas anew"
	@echo "make reference write the tables of docs/reference anew, from schemas, commands and kinds"
	@echo "make requirements write the hashes of the packages in the image anew"
	@echo "make kubernetes-kinds writes the kinds of Kubernetes anew, from a package that it downloads"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Overspill needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@git --version >/dev/null || { echo "Overspill needs git: apt-get install git"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Overspill needs Python's venv module: apt-get install python3-venv"; exit 1; }
	@echo "Installing into $(VENV), once; this takes a minute or two"
	$(RUN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(RUN)/overspill demo --out demo-out

# In a fresh checkout each worker of the tests would compile all of the package and all tests, which takes half of their
# time: it is done once before, in two halves. What is wrong with a test is told by the tests.
BYTECODE := $(VENV)/.compiled
COLLECT := env -u PYTHONDONTWRITEBYTECODE $(RUN)/pytest --collect-only -qq
$(BYTECODE): $(STAMP)
	@env -u PYTHONDONTWRITEBYTECODE $(RUN)/python -m compileall -q -j 0 reconciler
	@($(COLLECT) tests/[a-k]* & $(COLLECT) tests/[l-z]*; wait) >/dev/null 2>&1 || true
	@touch $@

# Many tests wait for a process or a clock: four more at a time than there are processors. Without bytecode each of them
# would compile all tests, wherever the environment says to keep none.
test: $(BYTECODE)
	env -u PYTHONDONTWRITEBYTECODE $(RUN)/pytest -n $$($(RUN)/python -c 'import os; print(4 + (os.cpu_count() or 1))') --dist worksteal -q

properties: $(STAMP)
	$(RUN)/pytest -m 'hypothesis or exhaustive' --hypothesis-profile=thorough -n $$($(RUN)/python -c 'import os; print(os.cpu_count() or 1)') --dist worksteal -q

check: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32 --package reconciler
	$(RUN)/lint-imports

# Control planes with their engines on two cores are late at times. What failed beside others is asked once more, by
# itself: what is wrong fails again, and what it said the first time stays to be read.
# WITH_PLATFORM=1 adds the tests of e2e-platform, with the programs that are built already.
E2E = $(RUN)/pytest tests/e2e $(if $(WITH_PLATFORM),,--ignore=tests/e2e/platform) -q
e2e: $(STAMP)
	@$(RUN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,ray,browser]'
	@$(RUN)/python -m tests.e2e.components
	$(E2E) -n 2 || $(E2E) --last-failed --last-failed-no-failures=none

# After `make e2e`, whose API servers and Flux it needs too. All its tests share two clusters.
PLATFORM := $(RUN)/pytest tests/e2e/platform -q
e2e-platform: $(STAMP)
	@$(RUN)/python -m tests.e2e.components e2e-platform
	$(PLATFORM) || $(PLATFORM) --last-failed --last-failed-no-failures=none

# schemathesis brings a plugin for pytest, which has no business among our tests: it lives apart.
$(CONTRACT)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(CONTRACT)
	$(CONTRACT)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt '.[contract]'
	@touch $@

contract: $(STAMP) $(CONTRACT)/.installed
	@$(RUN)/python -m tests.contract $(abspath $(CONTRACT))/bin/schemathesis

times: $(STAMP)
	@$(RUN)/python -m tests.e2e.times

# After `make e2e`, whose programs it needs. Variables of scale.py may be given, and JSON, a file for the figures.
long-run: $(STAMP)
	@$(RUN)/python -m tests.e2e.long_run $(if $(JSON),--json $(JSON))

# With bytecode, which pip leaves beside what it installs: else each start would compile all of the package.
bench: $(STAMP)
	@env -u PYTHONDONTWRITEBYTECODE $(RUN)/python -m tests.bench

TRACES ?= $(wildcard ../shared/traces)
lab: $(STAMP)
	@$(RUN)/python -m tests.bench.lab $(TRACES)

bounds: $(STAMP)
	@$(RUN)/python -m tests.bounds
	$(RUN)/python -m tests.docs.reference_tables

lab-docs: $(STAMP)
	$(RUN)/python -m tests.docs.policy_tables
	$(RUN)/overspill lab run owners --no-optimum --pictures docs/pictures

# MkDocs is of no use to the program or its tests: it lives apart.
$(DOCS)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt "$$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')"
	@touch $@

site: $(DOCS)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	@echo "Look at it, with search: python3 -m http.server --directory .site"

PICTURES := docs/pictures
pictures: $(STAMP)
	@mkdir -p $(PICTURES)
	@$(RUN)/python -m tests.pictures $(PICTURES)
	@$(RUN)/python -m tests.pictures.diagram_svg $(PICTURES)

screenshots: site $(STAMP)
	@$(RUN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,browser]'
	@$(RUN)/python -m tests.pictures.screenshots $(PICTURES)
	@$(RUN)/python -m tests.pictures.page_pictures $(PICTURES)

chaos: $(STAMP)
	@$(RUN)/python -m tests.chaos

fuzz: MINUTES ?= 30
fuzz: $(STAMP)
	@$(RUN)/python -m tests.fuzz --cpu-minutes $(MINUTES)

schemas: $(STAMP)
	$(RUN)/overspill schema --all --out repo-layout/schemas

reference: $(STAMP)
	$(RUN)/python -m tests.docs.reference_tables

# uv resolves for all platforms at once, and knows the hashes of all files of a release.
requirements: $(STAMP)
	@$(PYTHON) -m venv .venv-requirements
	.venv-requirements/bin/pip install --quiet --disable-pip-version-check uv
	for name in image build; do \
	  .venv-requirements/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --constraint constraints.txt \
	    --no-annotate --no-header --no-emit-index-url --output-file requirements/$$name.txt \
	    $$(if [ $$name = image ]; then echo --extra notify pyproject.toml; else echo requirements/build.in; fi); \
	done
	rm -r .venv-requirements

# A package of 22 MB, of which 85 kB are kept (docs/decisions/0018). Another version is another release of Kubernetes.
KINDS := .venv-kinds
KUBERNETES_VALIDATE := 1.37.0
kubernetes-kinds: $(STAMP)
	@$(PYTHON) -m venv $(KINDS)
	$(KINDS)/bin/pip install --quiet --disable-pip-version-check --no-deps kubernetes-validate==$(KUBERNETES_VALIDATE)
	$(RUN)/python -m tests.validation.write_kubernetes_kinds $(KINDS)/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema/v$(KUBERNETES_VALIDATE)-local/_definitions.json $(KUBERNETES_VALIDATE)

clean:
	rm -rf $(VENV) $(CONTRACT) $(DOCS) $(KINDS) .site .venv-requirements demo-out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
