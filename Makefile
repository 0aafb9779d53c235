# Everything runs in .venv, made on first use and refreshed when pyproject.toml or constraints.txt change.
#   make test PYTHON=python3.12    choose the interpreter (3.11 or newer; otherwise the first found)
#   make test V=1                  show what pip does
#   make test TRAIN=               leave out torch and what else trains models; their tests are skipped

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; exit; }; \
	done; echo python3)
V ?=
ARGS ?=
TRAIN ?= ,train

BIN := .venv/bin
QUIET := $(if $(V),,-qq)
# pip 25.3 and newer take the build backend's pin from PIP_BUILD_CONSTRAINT, older ones from PIP_CONSTRAINT. Both
# split at spaces, so the path is a relative one.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/python -m pip
PINNED := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo lint test docs frameworks format wheel release pins clean

help: ## show this list
	@echo "crosswind: make TARGET [PYTHON=python3.12] [V=1]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: .venv/.local ## install, then see what crosswind does in three minutes (ARGS="..." is passed on)
	@echo "==> crosswind demo"
	@$(BIN)/crosswind demo $(ARGS)

lint: .venv/.dev ## lint and check types
	@echo "==> ruff check"
	@$(BIN)/ruff check --quiet .
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check . || { echo "to fix this: make format" >&2; exit 1; }
	@echo "==> mypy"
	@$(BIN)/mypy

test: lint ## lint, check types and run the tests (ARGS="..." goes to pytest)
	@echo "==> pytest"
	@command -v chromium >/dev/null || echo "no chromium here: the tests that open reports in a browser are skipped"
	@$(BIN)/pytest -n auto --dist worksteal $(ARGS)

docs: .venv/.docs ## build the documentation site into site (open site/index.html)
	@echo "==> mkdocs build"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open site/index.html"

frameworks: .venv/.core ## evaluate agents of three frameworks over MCP (ARGS="..." goes to crosswind run)
	@for recipe in openai_agents pydantic_ai langgraph; do CROSSWIND=$(BIN)/crosswind PYTHON=$(BIN)/python \
		examples/evaluate $$recipe runs/$$recipe $(ARGS) || exit; done

format: .venv/.dev ## put imports and layout in order
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format .

wheel: .venv/.python ## build the wheel into dist
	@echo "==> building the wheel"
	@rm -f dist/crosswind-*.whl
	@$(PIP) wheel $(QUIET) --no-deps --wheel-dir dist .
	@ls dist/crosswind-*.whl

release: .venv/.python ## build wheel and sdist into dist and try each in a fresh environment
	@PYTHON=$(BIN)/python .ci/release

pins: .venv/.python ## print the newest releases of core and dev packages, for constraints.txt
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && $(BIN)/python -m venv "$$fresh" && \
		"$$fresh/bin/pip" install -qq ".[dev]" editables hatchling && \
		"$$fresh/bin/pip" freeze --exclude crosswind

clean: ## remove .venv, builds and caches
	@rm -rf .venv build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A sound .venv is kept, with whatever else was installed in it; a broken or too old one is replaced.
.venv/.python: $(PINNED)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "crosswind needs Python 3.11 or newer; '$(PYTHON)' is not: try make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments: install its venv package (Debian: python3-venv)" >&2; exit 1; }
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "==> making .venv with $$("$(PYTHON)" --version)"; "$(PYTHON)" -m venv --clear .venv; }
	@touch $@

.venv/.core: .venv/.python
	@echo "==> installing crosswind and its dependencies into .venv"
	@$(PIP) install $(QUIET) -c constraints.txt -e ".[http]"
	@touch $@

.venv/.local: .venv/.python
	@echo "==> installing crosswind and what runs a small model in process into .venv"
	@$(PIP) install $(QUIET) -c constraints.txt -e ".[local,http]"
	@touch $@ .venv/.core

.venv/.docs: .venv/.python
	@echo "==> installing what builds the documentation into .venv"
	@$(PIP) install $(QUIET) -c constraints.txt -e ".[docs]"
	@touch $@ .venv/.core

.venv/.dev: .venv/.python
	@echo "==> installing crosswind, its development tools$(if $(TRAIN), and what trains models,) into .venv"
	@$(PIP) install $(QUIET) -c constraints.txt -e ".[dev,http,mcp$(TRAIN)]"
	@touch .venv/.core $@
