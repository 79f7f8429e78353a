# One surface for every chore. `make help` lists them.
.PHONY: help setup setup-tests demo test test-faults faults check bench bench-s4 bench-imr bench-feeds docs pin clean
.DEFAULT_GOAL := help
PY := .venv/bin/python

help:  ## list the chores
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

setup:  ## make .venv and see that there is a Java
	@scripts/setup

setup-tests:
	@scripts/setup browser

demo: setup  ## the retail check-ins, live, with their page, until Ctrl-C
	@$(PY) -m examples.demo $(DEMO)

test: setup-tests  ## all tests
	@$(PY) -m pytest

test-faults: setup-tests  ## the fault runs as tests; SEEDS=2 for the quick part
	@MILLSTREAM_FAULT_SEEDS=$(or $(SEEDS),20) $(PY) -m pytest -m faults --override-ini=timeout=1800

faults: setup  ## the fault runs, for the table in docs/guarantees.md; SEEDS=2 ONLY="NAME ..." for some
	@$(PY) -m fault_runs $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ONLY),--only $(ONLY))

check: setup  ## format, lint and types
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy

bench: setup  ## all benchmarks; BENCH="keyed_updates latency" for some
	@$(PY) -m bench $(BENCH)

bench-s4: setup  ## the evaluation of S4 rebuilt, half an hour; QUICK=1 only to see that it works
	@$(PY) -m bench s4 $(if $(QUICK),--quick)
	@$(if $(QUICK),,$(PY) -m docs.build)

bench-imr: setup  ## the evaluation of iMR rebuilt, 25 minutes; ONLY="fig8 ..." for some, QUICK=1
	@$(PY) -m bench imr $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	@$(if $(QUICK),,$(PY) -m docs.build)

bench-feeds: setup  ## the evaluation of Feeding Frenzy rebuilt, over an hour; ONLY="fig4 ..." for some, QUICK=1
	@$(PY) -m bench feeds $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	@$(if $(QUICK),,$(PY) -m docs.build)

docs: setup  ## check that every link in the docs leads somewhere and draw the pictures anew
	@$(PY) -m docs.build

pin:  ## write requirements.txt from what is in .venv
	@{ echo "# What the tests and CI run with. Plain pins, made with: make pin"; $(PY) -m pip list --format=freeze --disable-pip-version-check | grep -v -i -E '^(pip|setuptools|millstream|py-spy)=='; } > requirements.txt

clean:  ## remove what was made
	@rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
