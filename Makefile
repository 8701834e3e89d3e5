# Two ways in, each from nothing but python3, make and git:
#   make demo                    the main job on the sample data, then the dashboard
#   make demo ARGS=--no-serve    the same, ending after the report
#   make test                    all that CI checks

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=

.PHONY: demo test fast format bench clean
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n 's/^#  *\(make .*\)/  \1/p' Makefile

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/.runtime: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing gpupolicy into .venv (about a minute the first time) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

.venv/.dev: .venv/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: .venv/.runtime
	$(BIN)/gpupolicy demo $(ARGS)

test: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(ARGS)

fast: .venv/.dev
	$(BIN)/python -m pytest -m "not slow and not browser and not slurm" $(ARGS)

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.dev
	$(BIN)/python tests/benchmarks/run.py $(ARGS)

clean:
	rm -rf .venv data/demo
