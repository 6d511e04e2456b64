# `make demo` and `make test` do all the set-up themselves; `make help` lists what else there is.
.DEFAULT_GOAL := help
.PHONY: help demo airflow test test-all nightly lint pages docs audit mutation clean lock kafka-libs
VENV ?= .venv
KAFKA_LIBS ?= $(CURDIR)/.kafka-libs
SCALE ?= 1
CHAOS_ENGINE ?= sail
PIP_AUDIT = 2.10.1
export VENV KAFKA_LIBS
unexport PYTHONDONTWRITEBYTECODE # uv compiles nothing: without bytecode each of many processes would compile all it imports
# CHAOS_ENGINE judges in tests: Sail takes a fifth of the processor time. Apache Spark judges a part of all cases again in the
# slow tier, drawn by the commit, and everything at night.
# WORKERS is the number of workers of pytest. Each imports every test of its tier; slow tests wait more.
RUN = PATH="$(CURDIR)/$(VENV)/bin:$$PATH"

help: ## list all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## run one whole experiment on real parts: three brokers, ZooKeeper, three faults, three verdicts and a report
	@./bootstrap.sh
	@$(RUN) chaos run smoke

airflow: ## start Airflow on this machine with the DAGs and the page of this repository; says address and password
	@./bootstrap.sh
	@exec "$(VENV)/bin/python" -m chaos_airflow.standalone

test: ## run lint, every fast test and one whole run; COVERAGE=1 adds the coverage
	@./bootstrap.sh requirements-dev.txt
	@mkdir -p artifacts; $(MAKE) --no-print-directory lint >artifacts/lint.txt 2>&1 & lint=$$!; trap 'kill $$lint' INT TERM; \
	$(RUN) CHAOS_ENGINE=$(CHAOS_ENGINE) pytest --numprocesses $(or $(WORKERS),2) -m fast --junitxml=artifacts/test.xml $(if $(COVERAGE),--cov=harness --cov-report=); tests=$$?; \
	[ -z "$(COVERAGE)" ] || echo "coverage of harness/ by fast tests: $$($(RUN) coverage report --format=total) % of lines"; \
	wait $$lint; lint=$$?; cat artifacts/lint.txt; exit $$((tests || lint))

test-all: ## run the slow tests: real clusters, containers, Airflow, a browser, Kafka's own tools, many whole histories
	@./bootstrap.sh requirements-dev.txt
	@export CHAOS_ENGINE=$(CHAOS_ENGINE); \
	$(RUN) pytest --numprocesses $(or $(WORKERS),4) -m slow --maxfail=0 --cache-clear --junitxml=artifacts/test-all.xml; tests=$$?; \
	[ $$tests = 1 ] || exit $$tests; $(RUN) python -m tools.rerun

nightly: ## run the long tests and write a summary page; SCALE=0.01 tries it small
	@./bootstrap.sh requirements-dev.txt
	@$(RUN) python -m tools.nightly --scale $(SCALE)

lint: ## run ruff, mypy --strict, import contracts, prose and spelling
	@./bootstrap.sh requirements-dev.txt
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy
	@$(RUN) lint-imports --cache-dir .import_linter_cache
	@$(RUN) python -m tools.prose

pages: ## write everything that is generated from code and data: pages of docs/, the picture of the rooms, the form of Airflow
	@./bootstrap.sh requirements-dev.txt
	@$(RUN) python -m tools.pages

docs: pages ## build the documentation as a site with search, in artifacts/site; it opens offline
	@$(RUN) NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict
	@echo "$(CURDIR)/artifacts/site/index.html"

audit: ## compare the locked packages with known vulnerabilities (osv.dev)
	@./bootstrap.sh requirements-dev.txt
	@for lock in requirements.txt requirements-dev.txt; do $(RUN) uv tool run --quiet --from pip-audit==$(PIP_AUDIT) pip-audit \
		--disable-pip --require-hashes --vulnerability-service osv -r $$lock || exit; done

mutation: ## negate or take out each guard of the checks, and see whether their tests notice (about 15 minutes)
	@./bootstrap.sh requirements-dev.txt
	@$(RUN) python -m tests.mutation $(MODULES)

lock: ## lock the newest releases that pyproject.toml allows and that go together
	@./bootstrap.sh requirements-dev.txt
	@$(RUN) uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --extra airflow --extra clients --extra docker --extra expectations --extra metrics --group build pyproject.toml -o requirements.txt
	@$(RUN) uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --group dev -c requirements.txt -o requirements-dev.txt
	@$(RUN) uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header -c requirements.txt --group postgres -o docker/requirements-postgres.txt
	@$(RUN) uv pip compile -q --upgrade --universal --no-deps --generate-hashes --no-header --group axe -o tests/locks/axe.txt
	@sed '/^python-dateutil==/,/[^\\]$$/d' requirements.txt >tests/locks/without.txt; trap 'rm tests/locks/without.txt' EXIT; \
	$(RUN) uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --group fab -c tests/locks/without.txt \
		$$(sed -n 's/^\([a-z0-9._-]*\).*==.*/--no-emit-package \1/p' tests/locks/without.txt) | sed '/^# The following/,$$d' >tests/locks/fab.txt

kafka-libs: ## fetch the jars of real Kafka 3.9 with Maven, for benchmarks and for the test that its own tools read our logs
	@[ -f .kafka-libs/.complete ] || { mvn -q -B -f tools/kafka/pom.xml dependency:copy-dependencies \
		-DoutputDirectory="$(CURDIR)/.kafka-libs" -DincludeScope=runtime && touch .kafka-libs/.complete; }

clean: ## remove the environment, caches and what tests left; runs/ stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis artifacts build .kafka-libs *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
