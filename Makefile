# What a developer types. The work is in scripts/; each target sets up what it needs first.
#
#   make demo       build into .venv and run an example
#   make test       every test; ends in one line
#   make check      formatting, lint, layers, types
#   make bench      speed against plain python, with budgets
#   make sanitize   the C tests with address and undefined behaviour sanitizers
#   make fuzz       each fuzzer for ten minutes (SECONDS=60, FUZZ="ring notify"); needs clang
#   make test-real  every real program, under both policies
#   make test-oracle  random programs and policies against the oracle, and races, in full
#   make test-cpython   CPython's own tests, plainly and under sandpit (CPYTHON=3.12, MODULES="test_os ...")
#   make test-kernels   the confinement tests on Debian's kernels, in virtual machines
#   make format     lay out the C sources
#   make clean      remove what was built

PYTHON ?= python3
SETUP = $(PYTHON) scripts/setup.py
VENV = .venv/bin/python

.PHONY: demo test check format bench sanitize fuzz test-real test-oracle test-cpython test-kernels clean

demo:
	@$(SETUP) demo
	@$(VENV) examples/blocked_request.py

test:
	@$(PYTHON) scripts/run_tests.py

check:
	@$(PYTHON) scripts/run_checks.py

format:
	@$(PYTHON) scripts/run_checks.py --write

bench:
	@$(PYTHON) scripts/run_bench.py

sanitize:
	@$(PYTHON) scripts/run_tests.py --sanitize

fuzz:
	@$(PYTHON) scripts/run_fuzzers.py --seconds $(or $(SECONDS),600) $(FUZZ)

test-real:
	@$(PYTHON) scripts/run_tests.py --real

test-oracle:
	@$(PYTHON) scripts/run_tests.py --oracle

test-cpython:
	@$(SETUP) test
	@$(VENV) tests/cpython/run_suite.py --program $(CURDIR)/.venv/bin/sandpit --python "$(CPYTHON)" $(MODULES)

test-kernels:
	@$(SETUP) test
	@$(VENV) tests/kernels/run_matrix.py

clean:
	rm -rf build .venv
