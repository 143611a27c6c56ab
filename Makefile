# `make help` lists the targets. Every target sets up what it needs first; what is up to date takes no time.
.DEFAULT_GOAL := help
.PHONY: help setup demo run test bench-gateway bench-capture bench-data bench-train lint format web clean
SHELL := /bin/bash
BIN := .venv/bin
NODE := $(CURDIR)/.venv/node

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: ## install everything into this folder
	@bash .ci/setup.sh

demo: setup ## watch a small model learn a job and take it over (DEMO_EXIT=1 stops after the report)
	@exec $(BIN)/python -m demo

run: setup ## start everything, until Ctrl-C
	@exec $(BIN)/stepdown up

test: ## run the tests (ARGS="-k name" chooses)
	@bash .ci/setup.sh tests
	@exec $(BIN)/python -m pytest $(ARGS)

bench-gateway: setup ## measure the relay beside other gateways (needs wrk and nginx)
	@bash bench/gateway/setup.sh && exec $(BIN)/python -m bench.gateway

bench-capture: setup ## kill processes under load and count what is lost; measure storing
	@exec $(BIN)/python -m bench.capture

bench-data: setup ## measure the call list among a million calls (BENCH_CALLS)
	@exec $(BIN)/python -m bench.data

bench-train: setup ## measure training beside TRL's (installs TRL into .bench; ARGS="sft task" chooses parts)
	@bash bench/train/setup.sh && exec $(BIN)/python -m bench.train $(ARGS)

lint: setup ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -f web/package.json ]; then cd web && PATH="$(NODE):$$PATH" npm run --silent lint; fi

format: setup ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@if [ -f web/package.json ]; then cd web && PATH="$(NODE):$$PATH" npx --no-install prettier --write . ; fi

web: setup ## build the dashboard
	@ls web/dist/index.html

clean: ## remove what set-up made; data in .stepdown stays
	rm -rf .venv web/node_modules web/dist tests/gateway/clients/node/node_modules *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
