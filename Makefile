# One surface for every chore. `make help` lists them.
.PHONY: help setup setup-tests demo test test-faults test-services test-schema test-cluster test-wheel faults faults-cluster faults-services check bench bench-services bench-s4 bench-imr bench-feeds bench-peers docs pin clean
.DEFAULT_GOAL := help
PY := .venv/bin/python
SHAPE := $(addprefix tests/test_,architecture.py size_limits.py doctests.py docs.py docs_site.py element_examples.py)

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

test-wheel: setup  ## builds the wheel and tries it in clean environments, with each Python that is here
	@scripts/wheel-test

test-faults: setup-tests  ## the fault runs as tests; SEEDS=2 for the quick part
	@MILLSTREAM_FAULT_SEEDS=$(or $(SEEDS),20) $(PY) -m pytest -m faults --override-ini=timeout=1800

test-services: setup  ## tests against real servers (S3, Kafka, PostgreSQL, Cassandra), which are fetched the first time (minutes)
	@PYTHON=$(PY) scripts/s3-server install >/dev/null
	@PYTHON=$(PY) scripts/kafka-server install >/dev/null
	@PYTHON=$(PY) scripts/postgres-server install >/dev/null
	@PYTHON=$(PY) scripts/cassandra-server install >/dev/null
	@PYTHON=$(PY) $(PY) -m pytest -m services -n 0

test-schema: setup  ## requests made from the OpenAPI document, with schemathesis; EXAMPLES=50 for fewer
	@PYTHON=$(PY) scripts/schema-check

test-cluster: setup  ## a cluster of hosts in network namespaces, and its faults; as root; SEEDS=10 for more
	@scripts/setup hosts
	@PYTHON=$(PY) scripts/s3-server install >/dev/null
	@PYTHON=$(PY) MILLSTREAM_FAULT_SEEDS=$(or $(SEEDS),1) $(PY) -m pytest tests/cluster -m cluster -n 0 --override-ini=timeout=1800

faults: setup  ## the fault runs, for the table in docs/guarantees.md; SEEDS=2 ONLY="NAME ..." for some
	@$(PY) -m fault_runs $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ONLY),--only $(ONLY))

faults-cluster: setup  ## the fault runs on a cluster of hosts, as root; SEEDS, ONLY as above
	@scripts/setup hosts
	@PYTHON=$(PY) $(PY) -m fault_runs --cluster $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ONLY),--only $(ONLY))

faults-services: setup  ## the fault runs with real servers; SEEDS, ONLY as above
	@PYTHON=$(PY) scripts/kafka-server install >/dev/null
	@PYTHON=$(PY) scripts/postgres-server install >/dev/null
	@PYTHON=$(PY) scripts/cassandra-server install >/dev/null
	@PYTHON=$(PY) $(PY) -m fault_runs --services $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ONLY),--only $(ONLY))

check: setup  ## format, lint, types, and the tests of the whole tree's shape
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@$(PY) -m pytest -q -n 0 -m "not spark" $(SHAPE)

bench: setup  ## all benchmarks; BENCH="keyed_updates latency" for some
	@$(PY) -m bench $(BENCH)

bench-services: setup  ## benchmarks with real servers, which are fetched the first time; BENCH=tables for some
	@PYTHON=$(PY) scripts/postgres-server install >/dev/null
	@PYTHON=$(PY) scripts/cassandra-server install >/dev/null
	@PYTHON=$(PY) scripts/kafka-server install >/dev/null
	@$(PY) -m bench $(or $(BENCH),tables kafka) $(if $(QUICK),--quick)

bench-s4: setup  ## the evaluation of S4 rebuilt, half an hour; ONLY="files ..." for some, QUICK=1
	@$(PY) -m bench s4 $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	@$(if $(QUICK),,$(PY) -m docs.build)

bench-imr: setup  ## the evaluation of iMR rebuilt, 25 minutes; ONLY="fig8 ..." for some, QUICK=1
	@$(PY) -m bench imr $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	@$(if $(QUICK),,$(PY) -m docs.build)

bench-feeds: setup  ## the evaluation of Feeding Frenzy rebuilt, over an hour; ONLY="fig4 ..." for some, QUICK=1
	@$(PY) -m bench feeds $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	@$(if $(QUICK),,$(PY) -m docs.build)

bench-peers: setup  ## beside Bytewax, Pathway, Quix Streams, PyFlink and PySpark; ONLY="uniform q7 ..." for some, QUICK=1
	@PYTHON=$(PY) scripts/kafka-server install >/dev/null
	@$(PY) -m bench peers $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	@$(if $(QUICK),,$(PY) -m docs.build)

docs: setup  ## check every link in the docs, draw the pictures anew, and build the site in build/site
	@$(PY) -m docs.build
	@PYTHON=$(PY) scripts/site

pin:  ## write requirements.txt from what is in .venv
	@{ echo "# What the tests and CI run with. Plain pins, made with: make pin"; $(PY) -m pip list --format=freeze --disable-pip-version-check | grep -v -i -E '^(pip|setuptools|millstream|py-spy)=='; } > requirements.txt

clean:  ## remove what was made
	@rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
