# The help of a target stands after its ##. `make demo` and `make test` need only Python, make and git.

PYTHON   ?= python3
NAMES    ?=
ACCEL    ?=
REGISTRY ?=
ARGS     ?=
SEED     ?=
JOBS     ?= 4

SETUP   := $(PYTHON) tools/setup.py
BIN     := .venv/bin
MPIBOOT := $(BIN)/mpiboot

.DEFAULT_GOAL := help
.PHONY: help setup engine runtimes demo images test chaos kills systems check cluster cluster-down manifests
.PHONY: reference bench clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Run an MPI program on two workers: everything from nothing
	@$(SETUP) venv ssh engine
	@$(BIN)/python tools/demo.py

setup: ## Make the Python environment; root also gets OpenSSH and a Docker engine
	@$(SETUP) venv ssh engine

engine: ## Make sure that a Docker engine answers
	@$(SETUP) engine

runtimes: ## Fetch the MPI runtimes that tests use outside containers
	@$(SETUP) runtimes

images: ## Build the images: all CPU ones and openmpi-cuda; NAMES="openmpi mpich", ACCEL=cpu, REGISTRY=... to push
	@$(SETUP) venv engine
	@$(MPIBOOT) images build $(if $(ACCEL),--accel $(ACCEL)) $(NAMES)
	@$(if $(REGISTRY),$(MPIBOOT) images push --registry $(REGISTRY) $(if $(ACCEL),--accel $(ACCEL)) $(NAMES))

test: ## Check and test all that works on this machine, an API server included (built once, 5 minutes); ARGS="-k late"
	@$(SETUP) venv ssh engine runtimes
	@$(MAKE) --no-print-directory check
	@$(BIN)/python tools/test.py --jobs $(JOBS) -- $(ARGS)

chaos: ## Kill the operator after each of its writes, and run 300 seeds of faults; SEED=17 for one of them
	@$(SETUP) venv
	@MPIBOOT_CHAOS=1 MPIBOOT_CHAOS_SEED=$(SEED) $(BIN)/python -m pytest -q tests/chaos $(if $(SEED),-k should) $(ARGS)

systems: ## Test the promises to users of the five systems, on the node that `make cluster` starts
	@$(SETUP) venv
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/systems --every-promise -q $(ARGS)

kills: ## Kill ranks and workers at random for two minutes; the job's result must be that of an undisturbed run
	@$(SETUP) venv ssh runtimes
	@MPIBOOT_KILL_SECONDS=120 $(BIN)/python -m pytest -q tests/engines/test_random_kills.py $(ARGS)

check: ## Lint; check types, imports, unused code, the width of lines and plain words
	@$(SETUP) venv
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/mypy --no-error-summary tools
	@$(BIN)/mypy --no-error-summary bench
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/lint-imports --no-cache --config tools/checks/cycles.toml >/dev/null || \
		$(BIN)/lint-imports --no-cache --config tools/checks/cycles.toml
	@$(BIN)/vulture
	@$(BIN)/python tools/checks
	@echo "check: lint, types, imports and texts are in order"

cluster: ## Start a real Kubernetes node for tests: 8 s, and 11 minutes to build it once
	@$(SETUP) venv
	@$(BIN)/python tools/cluster up

manifests: ## Write deploy/ again: CRD, rights and operator, from the data in controller/
	@$(SETUP) venv
	@$(BIN)/python -m mpiboot.controller.install.manifests deploy

reference: ## Write docs/reference/ again: every message of mpiboot, from the code
	@$(SETUP) venv
	@$(BIN)/python tools/messages

cluster-down: ## End the node and remove all that it left on this machine
	@$(BIN)/python tools/cluster down

bench: ## Measure the speeds and sizes that the project promises; NAMES="images launch" for some
	@$(SETUP) venv ssh engine runtimes
	@$(BIN)/python bench/run.py $(NAMES)

clean: ## End what setup started and remove the environment
	@$(SETUP) clean
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache src/*.egg-info
