.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
BUILD := .venv/built
DEV := .venv/dev
SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml
DATA ?= benchmarks/data

.PHONY: help demo test lint format docs bench clean

help: ## show this
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

$(BIN)/maturin:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip maturin

$(BUILD): $(BIN)/maturin $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	@touch $@

$(DEV): $(BIN)/maturin pyproject.toml
	$(BIN)/pip install --quiet --group dev
	@touch $@

demo: $(BUILD) ## build into .venv, and train a tokenizer on Python's own standard library
	$(BIN)/python -m batchbpe.demo

test: $(BUILD) $(DEV) lint ## build, lint, and run every test
	cargo test --quiet --release
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(BUILD) $(DEV) ## check style and types of both languages
	cargo fmt --check
	cargo clippy --quiet --release --all-targets --all-features -- --deny warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV) ## put both languages in shape
	cargo fmt
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(BUILD) ## write docs/cli.md anew
	$(BIN)/python docs/make_cli.py

bench: $(BUILD) ## measure beside other tools, with DATA=folder (see benchmarks/README.md)
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m benchmarks $(DATA)

clean: ## remove what was built
	rm -rf .venv target
