# make demo    install what a run for AVR needs, and run the main command
# make test    install all that is missing and run the tests, 3 to 6 minutes
# make test-ci   the others that .ci/run runs, 5 to 10 minutes;  make test-all  the slow ones, 70 minutes
# make check   a minute: the tests that what you changed can reach;  make check BASE=main  since main
# make bench   how fast a cached run, a cached sweep, planning and proofs are, and generated code on a Cortex-M4 and M7
# make lint    what .ci/run checks besides the tests
# make site    the documentation as pages, in .site/; links are checked
# make deps    bring params.yaml and docs/support.md up to date with code and config
# make models  fetch the networks of others that README's commands and many tests read, 0.9 MB, checked by hash
# make durations    keep what each test cost in the last runs of .ci/run: tests/durations.json

NEW_ENOUGH := import ensurepip, sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)
PACKAGES := gcc gcc-avr avr-libc binutils-avr libsimavr-dev libelf-dev pkg-config \
  $(if $(PYTHON),,python3-venv)
# For boards with a Cortex-M, synthetic speech, and all tests; what they recommend (C++, displays) would be 3 GB. Chromium, for the tests of
# pages, is a package on Debian alone; elsewhere they are skipped without one: .venv/bin/playwright install --with-deps chromium
# The Arduino core, for the tests of packages, is 0.2 MB; clang and its linker, for those of compilers, are 130 MB and left out.
LARGE_PACKAGES := gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm qemu-user espeak-ng arduino-core-avr \
  $(if $(shell grep -sx ID=debian /etc/os-release),chromium)
ifeq ($(MAKECMDGOALS),demo)
LARGE_PACKAGES :=
endif

# Two processes; one that has nothing left takes tests from the other.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
BASE ?= HEAD

# Images for containers set it; each process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup packages demo models check test test-ci test-all durations bench lint site deps

demo: packages .venv/run
	$(BIN)/python run.py hardware=arduino strategy=herringbone

check: setup
	@$(BIN)/python -m tests.affected $(BASE)

test: setup
	$(PYTEST)

test-ci: setup
	$(PYTEST) -m "ci and not slow" --check-durations

test-all: setup
	@date
	$(PYTEST) -m slow

durations: setup
	$(BIN)/python -m tests.durations

models: setup
	$(BIN)/python -m tests.public_models

bench: setup
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.strategies.zoo seconds
	$(BIN)/python -m tests.strategies.swap.bench
	$(BIN)/python -m tests.codegen.cortex_m.bench
	$(BIN)/python -m tests.codegen.cortex_m.bench_rows limit
	$(BIN)/python -m tests.codegen.cortex_m.bench_rows

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

deps: setup
	$(BIN)/python -m pipeline.runner.deps
	$(BIN)/python -m tests.support

setup: packages .venv/ready

# A fresh Ubuntu updates itself for some minutes, and holds apt's locks meanwhile. apt-get waits for
# that of dpkg alone (DPkg::Lock::Timeout), and fails at once for those of its lists and archives.
APT = apt() { \
  for round in $$(seq 120); do \
    said="$$($(SUDO) env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
      apt-get -qq -o DPkg::Lock::Timeout=600 "$$@" 2>&1)" && return; \
    case "$$said" in *"get lock"*) ;; *) break;; esac; \
    [ "$$round" -gt 1 ] || echo "Waiting up to 10 minutes for apt, which another program uses"; \
    sleep 5; \
  done; echo "$$said" >&2; return 1; }

# System packages: compilers and simulators. Installed if that needs no password.
packages:
	@missing=""; for p in $(PACKAGES); do \
	  dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	large=""; for p in $(LARGE_PACKAGES); do \
	  dpkg -s $$p >/dev/null 2>&1 || large="$$large $$p"; done; \
	[ -z "$$missing$$large" ] && exit 0; \
	if ! command -v apt-get >/dev/null; then \
	  for tool in gcc avr-gcc pkg-config; do command -v $$tool >/dev/null || lacks=1; done; \
	  [ -z "$$lacks" ] || echo "Please install the equivalents of:$$missing$$large"; \
	elif $(SUDO) true 2>/dev/null; then \
	  [ -z "$$missing" ] || echo "Installing system packages (about 300 MB):$$missing"; \
	  [ -z "$$large" ] || \
	    echo "Installing what boards with a Cortex-M and tests need (download up to 200 MB, on disk 1.2 GB):$$large"; \
	  $(APT); apt update && \
	  { [ -z "$$missing" ] || apt install -y $$missing; } && \
	  { [ -z "$$large" ] || apt install -y --no-install-recommends $$large; }; \
	else \
	  [ -z "$$missing" ] || echo "Please run: sudo apt-get install$$missing"; \
	  [ -z "$$large" ] || \
	    echo "Please run: sudo apt-get install --no-install-recommends$$large"; \
	  exit 1; \
	fi

# Python packages, at the versions of constraints.txt, in an environment of the project's own: those that a run
# imports, and on top of these what tests, types and clusters need.
REQUIRED = $(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*$(1), sep="\n")'
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r

.venv/run: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@[ -x $(BIN)/python ] || { echo "Making the Python environment .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing Python packages into .venv (PyTorch, DVC, MLflow and others, 1.8 GB on disk;"
	@echo "more where PyTorch comes with CUDA; a CPU build is enough)"
	@$(call REQUIRED,p["dependencies"]) > .venv/requirements.txt
	@$(INSTALL) .venv/requirements.txt
	@$(BIN)/python -c 'import torch; print("PyTorch", torch.__version__)'
	@touch $@

.venv/ready: .venv/run
	@echo "Installing what tests, types and clusters need into .venv (600 MB more)"
	@$(call REQUIRED,p["optional-dependencies"]["dev"]) > .venv/requirements-dev.txt
	@$(INSTALL) .venv/requirements-dev.txt
	@touch $@
