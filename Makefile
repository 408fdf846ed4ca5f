# The project's commands, one line each; `make help` lists them. Needs: Debian 12 (or the same packages by other means), Python 3.10+.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BUILD ?= build
PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
# A file with torch's headers takes 1.3 GB to compile: as many jobs as cores and memory allow.
JOBS ?= $(shell cores=$$(nproc); room=$$(awk '/MemAvailable/ {print int($$2 / 1600000)}' /proc/meminfo); \
  n=$$((cores < room ? cores : room)); echo $$((n > 0 ? n : 1)))

.PHONY: help setup build test test-lit test-cpp test-python demo asan bench format clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install what is missing: Debian packages (apt-get, as root or by sudo) and .venv (pinned in python/requirements.txt)
	@PYTHON=$(PYTHON) .ci/setup

build: setup  ## compile everything into build/ (Release)
	@.ci/build $(BUILD) release $(JOBS)

test: build  ## run every test: lit, C++ unit tests, Python; fails if any part fails
	@.ci/test $(BUILD) all

test-lit: build  ## run the lit tests alone
	@.ci/test $(BUILD) lit

test-cpp: build  ## run the C++ unit tests alone
	@.ci/test $(BUILD) cpp

test-python: build  ## run the Python tests alone
	@.ci/test $(BUILD) python

demo: build  ## fine-tune MiniLM at half of eager's peak, planned beside eager, and print the comparison
	@$(VENV_PYTHON) examples/python/demo.py

asan: setup  ## run the C++ unit tests under AddressSanitizer and UBSan (build-asan/)
	@.ci/build build-asan asan $(JOBS)
	@.ci/test build-asan cpp

bench: build  ## measure a planned step beside eager and torch.utils.checkpoint on this machine (benchmarks/results/)
	@$(VENV_PYTHON) benchmarks/cpu_step.py

format:  ## format the C++ sources in place (clang-format)
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

clean:  ## remove build/ and build-asan/ (.venv stays)
	rm -rf build build-asan
