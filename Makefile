# What a newcomer types. Each target installs first when the lock file is newer than the environment.
#   make up                 the whole product; make up PORT=8080 UP=--no-demo
#   make test               what every change must pass
#   make test-all           everything, on PostgreSQL 18 and 16
#   make audit              known vulnerabilities of what is locked
#   make sbom               what it is made of, as CycloneDX

PORT ?= 8000
UP ?=
PYTEST ?=
BENCH ?=
PYTHON_IN_VENV := .venv/bin/python
RUN_TESTS := $(PYTHON_IN_VENV) -m pytest -n 2
# Settings make keys where there are none; a check must not make them where the product keeps its own.
CHECKED := KINDMEM_STATE_DIR=.venv/lint-state KINDMEM_BASE_URL=https://kindmem.example \
	KINDMEM_ALLOWED_HOSTS=kindmem.example

.PHONY: install install-dev up test test-all lint bench faults audit sbom browser pooler clean

install: .venv/runtime.stamp

install-dev: .venv/dev.stamp

.venv/runtime.stamp: requirements.lock .ci/install
	@.ci/install requirements.lock
	@touch $@

# The development lock holds all of the runtime's, in the same versions.
.venv/dev.stamp: requirements-dev.lock .ci/install
	@.ci/install requirements-dev.lock
	@touch .venv/runtime.stamp $@

up: install
	@$(PYTHON_IN_VENV) manage.py up --port $(PORT) $(UP)

lint: install-dev
	$(PYTHON_IN_VENV) -m ruff check .
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(PYTHON_IN_VENV) -m mypy
	$(CHECKED) $(PYTHON_IN_VENV) manage.py makemigrations --check --dry-run
	$(CHECKED) $(PYTHON_IN_VENV) manage.py check --deploy --fail-level WARNING

browser:
	@.ci/browser

pooler:
	@.ci/pgbouncer

test: install-dev browser
	$(RUN_TESTS) -m "not full" $(PYTEST)

# How a page looks in each theme, width and language is the same on every PostgreSQL: once is enough.
test-all: install-dev browser pooler
	KINDMEM_TEST_POSTGRES=16 $(RUN_TESTS) -m "not (browser and full)" $(PYTEST)
	KINDMEM_TEST_POSTGRES=18 $(RUN_TESTS) $(PYTEST)

# Alone on the machine: what is measured must not share it with other tests. make bench BENCH="append search",
# or BENCH="--sizes 1000 10000 100000 1000000" for those that measure at several sizes; BENCH=--quick only shows that all run.
bench: install-dev
	$(PYTHON_IN_VENV) -m tests.benchmarks $(BENCH)

faults: install-dev pooler
	$(PYTHON_IN_VENV) -m pytest -n 0 -m "faults or races" $(PYTEST)

# Known vulnerabilities of what is locked; says so where the service that knows them can't be asked.
audit: install-dev
	@.ci/audit

sbom: install
	@$(PYTHON_IN_VENV) .ci/sbom.py > sbom.cdx.json
	@echo "sbom.cdx.json"

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
