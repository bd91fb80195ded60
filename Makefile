# Everything a developer runs. `make` alone lists it.
# PYTHON: the Python to make .venv with; default the newest of 3.13 to 3.10. ARGS: more arguments for the command.
BIN := .venv/bin
STAMP := .venv/.stamp
SOURCES := a2a_grpc examples proto scripts tests
ARGS ?=

-include .tools/env
export $(shell sed 's/=.*//' .tools/env 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup run test fuzz check format proto lint-proto requirements docs bench bench-full bench-stores soak interop-setup services services-stop clean release-check site

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## Make .venv with the package, editable, and what development needs

$(STAMP): pyproject.toml
	"$(or $(PYTHON),$(shell scripts/find-python))" -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@# Quiet in earnest: setuptools warns of every editable installation, which would be the first thing to be seen here.
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

run: setup ## Serve the demo agent on ports 50051 (gRPC) and 8080 (HTTP)
	$(BIN)/a2a-grpc serve $(ARGS)

test: setup ## Run all tests; those whose tools are missing are skipped (see interop-setup, services)
	$(BIN)/python -m pytest --numprocesses auto $(ARGS)

fuzz: setup ## Try the wires with bytes of all kinds, FUZZ times as long as the tests do (default 30)
	A2A_FUZZ=$(or $(FUZZ),30) $(BIN)/python -m pytest tests/fuzz tests/interop/test_openapi_fuzz.py $(ARGS)

check: setup ## Format, lint, types, the laws, the requirement ledger
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/rules tests/test_protos.py
	$(BIN)/python scripts/requirements.py --quiet
	@if [ -n "$(BUF)" ]; then $(BIN)/python proto/lint.py; else echo "protos not linted: run make interop-setup"; fi

format: setup ## Format the code and mend what ruff can mend
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

proto: setup ## Make the stubs package generated/a2a_stubs from the protos
	$(BIN)/python proto/generate.py

lint-proto: setup ## Check the protos with buf: style, and no breaking change
	$(BIN)/python proto/lint.py

requirements: setup ## Print every requirement with the tests that prove it
	$(BIN)/python scripts/requirements.py $(ARGS)

docs: setup ## Write the parts of the documentation that are made from the code
	$(BIN)/python scripts/docs_tables.py

bench: setup ## Measure; see tests/bench
	$(BIN)/python -m tests.bench $(ARGS)

bench-full: setup ## Measure everything, for a quarter of an hour or longer; ARGS=--page writes docs/performance.md
	$(BIN)/python -m tests.bench --full $(ARGS)

bench-stores: setup ## Measure stores, replicas and a million tasks, for some minutes; ARGS=--page writes docs/scaling.md
	$(BIN)/python -m tests.bench.stores $(ARGS)

soak: setup ## Let three replicas suffer hundreds of faults; ARGS="--rounds 100 --minutes 5 --seed 1 --fault kill"
	$(BIN)/python -m tests.faults.soak $(ARGS)

interop-setup: setup ## Install below .tools what the interoperability tests need; cheap when nothing changed
	$(BIN)/python scripts/interop_setup.py $(ARGS)

site: setup ## Build the site of the documentation below build/site; a link that leads nowhere fails
	$(BIN)/python -m pip install --quiet --group site
	$(BIN)/mkdocs build --strict --quiet

release-check: setup ## Build the archives and try the wheel in an empty environment
	$(BIN)/python scripts/release_check.py $(ARGS)

services: setup ## Start the PostgreSQL and NATS servers that tests use, on free loopback ports
	$(BIN)/python scripts/services.py start

services-stop: setup ## Stop them and remove what they kept
	$(BIN)/python scripts/services.py stop

clean: ## Remove everything that the other targets make
	rm -rf .venv .tools build *.egg-info tests/interop/*/node_modules
