# Every target makes the virtual environment it needs, from nothing but Python.
PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ifeq ($(VERSION),)
$(error $(PYTHON) does not run. Name a Python of 3.10 or later: make PYTHON=python3.12 ...)
endif
VENV := .venv-$(VERSION)
OLDEST := .venv-oldest-$(VERSION)
PACKAGE := .venv-package-$(VERSION)
ECOSYSTEM := .venv-ecosystem-$(VERSION)
PEERS := .venv-peers-$(VERSION)
# Two workers suit a laptop as well as a small CI machine; TensorFlow has threads of
# its own.
WORKERS ?= 2
# setuptools warns of every editable installation; that is what is asked for.
PIP = PYTHONWARNINGS=ignore $(1)/bin/python -m pip install --quiet
# `make test-all COVERAGE=95` counts lines and branches and wants 95 % of them;
# `make test COVERAGE=0` only counts, for `make test-rest COVERAGE=95` to report.
COVERED = $(if $(COVERAGE),--coverage $(COVERAGE))
RUN = -m tests.running --workers $(WORKERS)
export TF_CPP_MIN_LOG_LEVEL ?= 3

# All benchmarks one after the other, into benchmarks/RESULTS.md, on an idle machine,
# and what the checks cost from there into the README and the guide;
# ONLY="checks losses" names some, QUICK=1 is a trial. The checks of torch and JAX,
# `peers`, run in an environment of their own.
BENCHMARK = -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) \
  --peers $(PEERS)/bin/python

.PHONY: bench demo test test-all test-rest test-oldest test-matrix test-keras test-field test-ecosystem mutate docs picture lint package release clean

demo: $(VENV)/examples
	$(VENV)/bin/python -m tfsafe demo

# Tier one: every test, every public name in every mode, but not every combination.
test: $(VENV)/dev
	$(VENV)/bin/python $(RUN) --tier one --limit 2 $(COVERED)

# Both tiers.
test-all: $(VENV)/dev
	$(VENV)/bin/python $(RUN) --tier all --limit 4 $(COVERED)

# What `make test` leaves out; PART=1/4 is a quarter of it.
test-rest: $(VENV)/dev
	$(VENV)/bin/python $(RUN) --tier two --limit 4 $(if $(PART),--part=$(PART)) $(COVERED)

# Tier one on the oldest TensorFlow and Keras that setup.cfg admits.
test-oldest: $(OLDEST)/dev
	$(OLDEST)/bin/python $(RUN) --tier one --limit 2

# Tier one on each Python that is installed, with the oldest and the newest TensorFlow.
test-matrix:
	$(PYTHON) tests/running/matrix.py

# Changes the package in N places drawn by SEED, one at a time, and runs the tests of
# each place: a change that no test notices is a gap.
SEED ?= 0
N ?= 20
mutate: $(VENV)/dev
	$(VENV)/bin/python -m tests.mutation --seed $(SEED) --count $(N)

# Keras' own tests with our classes: a short run, or FILES=--all, or FILES=layers/rnn/.
test-keras: $(VENV)/dev
	$(VENV)/bin/python -m tests.keras_tests.run $(FILES)

# Small programs in the style of public guides, in nine ways each; PROGRAMS="vae gan"
# names some. Then broken ones: what is found in each.
test-field: $(VENV)/dev
	$(VENV)/bin/python -m tests.field $(PROGRAMS)
	$(VENV)/bin/python -m tests.field.findings

# Small programs with the newest gpflow, keras-hub, TensorFlow Probability and others, in
# an environment of its own; PROGRAMS="gpflow_models" names some. Then each layer in ONNX.
test-ecosystem: $(ECOSYSTEM)/dev
	$(ECOSYSTEM)/bin/python -m tests.ecosystem $(PROGRAMS)
	$(ECOSYSTEM)/bin/python -m tests.ecosystem.onnx

# The documentation, in build/docs; a warning is an error. Its code is run first.
docs: $(VENV)/docs
	$(VENV)/bin/python -m pytest -q tests/test_readme.py
	$(VENV)/bin/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(VENV)/bin/python docs/links.py build/docs
	@echo "open build/docs/index.html"

# The picture of the README, from a real run.
picture: $(VENV)/docs
	$(VENV)/bin/python docs/terminal.py

bench: $(VENV)/dev $(if $(filter peers,$(or $(ONLY),peers)),$(PEERS)/dev)
	$(VENV)/bin/python $(BENCHMARK)
	$(VENV)/bin/python docs/cost.py

lint: $(VENV)/dev
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy tfsafe
	$(VENV)/bin/python -m tests.typing
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python -m pytest -q tests/test_architecture.py tests/test_public_names.py

# Builds the wheel by way of the source archive, installs it where the checkout
# cannot be seen, and runs the demo from it.
package: $(VENV)/dev
	rm -rf dist $(PACKAGE)
	$(VENV)/bin/python -m build
	$(PYTHON) -m venv $(PACKAGE)
	$(call PIP,$(PACKAGE)) "$$(ls dist/*.whl)[examples]"
	cd $(PACKAGE) && bin/python -m tfsafe demo --epochs 1

# What is uploaded: both archives, checked, and the wheel imported by each Python that is
# installed; then the changelog has a dated section.
release: package
	$(VENV)/bin/twine check --strict dist/*
	$(VENV)/bin/python -m tests.running.release dist
	@echo "dist/ is ready for the upload"

clean:
	rm -rf .venv-* build dist *.egg-info htmlcov .coverage*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(call PIP,$(VENV)) --upgrade pip

$(VENV)/examples: $(VENV)/bin/python setup.cfg setup.py
	$(call PIP,$(VENV)) --editable ".[examples]"
	touch $@

$(VENV)/dev: $(VENV)/bin/python setup.cfg setup.py
	$(call PIP,$(VENV)) --editable ".[examples,test,dev]"
	touch $@ $(VENV)/examples

$(VENV)/docs: $(VENV)/dev
	$(call PIP,$(VENV)) --editable ".[examples,test,docs]"
	touch $@

$(ECOSYSTEM)/dev: setup.cfg setup.py tests/ecosystem/packages.txt
	$(PYTHON) -m venv $(ECOSYSTEM)
	$(call PIP,$(ECOSYSTEM)) --upgrade pip
	$(call PIP,$(ECOSYSTEM)) --editable ".[examples,test]"
	$(call PIP,$(ECOSYSTEM)) --no-deps --requirement tests/ecosystem/packages.txt
	touch $@

# The wheels of torch for the CPU have an index of their own, which is asked for nothing
# else; where it cannot be reached, pip takes torch from PyPI, and warns.
$(PEERS)/dev: benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(call PIP,$(PEERS)) --upgrade pip
	$(call PIP,$(PEERS)) --no-deps --constraint benchmarks/peers.txt \
	  --extra-index-url https://download.pytorch.org/whl/cpu torch
	$(call PIP,$(PEERS)) --requirement benchmarks/peers.txt
	touch $@

$(OLDEST)/dev: setup.cfg setup.py tests/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(call PIP,$(OLDEST)) --upgrade pip
	$(call PIP,$(OLDEST)) --constraint tests/oldest.txt \
	  --editable ".[examples,test]"
	touch $@
