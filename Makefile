# Everything a developer runs. `make` alone lists it.
PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help proto lint-proto

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

proto: ## Make the stubs package generated/a2a_stubs from the protos
	$(PYTHON) proto/generate.py

lint-proto: ## Check the protos with buf: style, and no breaking change
	$(PYTHON) proto/lint.py
