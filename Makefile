.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
BUILD := .venv/built
DEV := .venv/dev
TOOLS := .venv/tools
SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml
DATA ?= benchmarks/data

SECONDS ?= 60
FUZZ := split count encode ranks csv

.PHONY: help demo test lint format docs bench bench-instructions fuzz coverage clean

help: ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 28

$(BIN)/maturin:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip maturin

$(BUILD): $(BIN)/maturin $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	@touch $@

$(DEV): $(BIN)/maturin pyproject.toml
	@# The Rust tests are compiled at the same time: both take about a minute, on one core each.
	cargo test --quiet --profile checked --no-run & $(BIN)/pip install --quiet --group dev && wait
	@touch $@

# The tests of Spark need Java, and those of the viewer a browser. Without them, these tests are skipped.
$(TOOLS): $(BIN)/maturin
	@for tool in java:default-jre-headless chromium:chromium; do \
		command -v $${tool%:*} > /dev/null || missing="$$missing $${tool#*:}"; \
	done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get -qq update && apt-get -qq install --no-install-recommends $$missing > /dev/null; \
	fi || true
	@touch $@

demo: $(BUILD) ## build into .venv and train a tokenizer on Python's standard library
	$(BIN)/python examples/demo.py

test: $(BUILD) $(DEV) $(TOOLS) lint ## build, lint and run all tests
	cargo test --quiet --profile checked
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(BUILD) $(DEV) ## check style and types in both languages
	cargo fmt --check
	cargo clippy --quiet --profile checked --all-targets --all-features -- --deny warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/stubtest --ignore-disjoint-bases batchbpe._core

format: $(DEV) ## format the code in both languages
	cargo fmt
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(BUILD) ## generate docs/cli.md
	$(BIN)/python docs/make_cli.py

bench: $(BUILD) ## compare with other tools on DATA=folder, ONLY=jobs, QUICK=1 (see benchmarks/README.md)
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m benchmarks --data $(DATA) $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

bench-instructions: ## compare the instructions of hot loops with a committed file (needs valgrind); UPDATE=1 writes it
	$(PYTHON) benchmarks/instructions/compare.py $(if $(UPDATE),--update)

fuzz: $(BUILD) $(DEV) ## fuzz each target for SECONDS=60, with mutants and kills (needs nightly Rust)
	command -v cargo-fuzz > /dev/null || cargo install --quiet cargo-fuzz
	@# LeakSanitizer reports threads that are just ending.
	for target in $(FUZZ); do \
		ASAN_OPTIONS=detect_leaks=0 cargo +nightly fuzz run $$target -- -max_total_time=$(SECONDS) -max_len=2048 || exit 1; \
	done
	BATCHBPE_FUZZ_MUTANTS=$$((20 * $(SECONDS))) BATCHBPE_FUZZ_KILLS=$(SECONDS) BATCHBPE_FUZZ_FORKS=$$((20 * $(SECONDS))) \
		$(BIN)/python -m pytest --numprocesses auto tests/fuzz tests/test_reliability.py

coverage: $(BUILD) $(DEV) $(TOOLS) ## measure which lines of Python the tests execute
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --cov --cov-report term-missing:skip-covered

clean: ## remove build outputs
	rm -rf .venv target fuzz/target benchmarks/instructions/target
