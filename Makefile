# Every target sets up what it needs, in .venv, from the locked requirements. `make` alone lists them.
# PYTHON=/path/to/python chooses the interpreter; pip's own configuration (PIP_*, pip.conf) is honoured.

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
BENCH  := .venv-bench/bin/python
BENCH_STAMP := .venv-bench/.ready
DOCS_STAMP := .venv-docs/.ready
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
UV     := .venv-lock/bin/uv
LOCK_GROUP := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --custom-compile-command "make lock"
LOCK   := $(LOCK_GROUP) pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help setup python-found java-note java-env s3-env java demo test check thorough crash crash-writes crash-streams pairs histories year bench bench-reading bench-dataframes bench-formats bench-ranges bench-scale \
	bench-spark bench-java spark-versions install-extras bench-compaction bench-clustering bench-writing fuzz mutants lint format types imports docs wheel release lock clean

help:
	@echo 'make demo     make a small table, change, read and compact it: its files, its log blocks, what merging does'
	@echo 'make test     the tests (ARGS="-k name" passes arguments to pytest)'
	@echo 'make check    lint, types and the tests near what has changed, within two minutes'
	@echo 'make thorough the further variants of the longest tests, which make test leaves out'
	@echo 'make java-env what the tests beside Java Hudi need: PySpark 3.5 and the Hudi bundle (make test does it too)'
	@echo 'make s3-env   the S3 server of the tests that need one that checks credentials (make test does it too, where Go is)'
	@echo 'make crash    end compaction, rollback and clean at every storage call, in every way (ARGS="--share 0.1 --seed 7")'
	@echo 'make crash-streams kill and restart streams of Spark at every step of a micro-batch, 200 trials'
	@echo 'make crash-writes  the same for writes;  make histories  random operations against a model'
	@echo 'make pairs    every operation stopped in each of its windows while every other one runs (ARGS="--share 0.1 --seed 7")'
	@echo 'make year     thousands of small commits on one table with all services: cost, files, every read'
	@echo 'make java     all tests beside Java Hudi and Flink; make test runs a choice of them'
	@echo 'make spark-versions  the Spark tests on PySpark 4.0 to 4.3, classic and over Connect, some two hours (ARGS="4.0 --connect")'
	@echo 'make install-extras  the wheel with each extra on Python 3.11 to 3.13, in fresh environments, some two hours'
	@echo 'make bench    speed of reading, compaction and writing, some hours (ARGS="--groups 10 --rounds 5"); its parts:'
	@echo '              bench-reading     beside fastavro, hudi-rs and pyarrow;  bench-ranges   ranges of commits beside full scans'
	@echo '              bench-dataframes   polars, DuckDB and DataFusion beside our own scan'
	@echo '              bench-formats   what users do all day, beside deltalake, pyiceberg, pyarrow and polars'
	@echo '              bench-compaction, bench-clustering, bench-writing   beside Java Hudi, left out where Java or Maven is missing'
	@echo 'make bench-scale   how cost grows with files, partitions, commits and rows, some ten minutes (ARGS="--only upsert")'
	@echo 'make bench-spark   reading in Spark beside its own Parquet reader;  make bench-java  beside Java Hudi as well'
	@echo 'make fuzz     damaged and hostile files: every truncation and bit flip, then guided fuzzing (MINUTES=10 a parser)'
	@echo 'make mutants  plant faults in the modules that hold rules, and print what no test notices (ARGS="--minutes 60 --only clean")'
	@echo 'make lint     ruff check, ruff format --check, vulture;  make format mends what can be mended'
	@echo 'make types    mypy --strict'
	@echo 'make imports  the layer rules'
	@echo 'make docs     build the pages of docs/ as a site in dist/site'
	@echo 'make wheel    build dist/*.whl'
	@echo 'make release  build and check all that a release needs, in dist/; publishes nothing (ARGS=--draft: no changelog yet)'
	@echo 'make lock     make requirements/*.txt anew from pyproject.toml'
	@echo 'make clean    remove environments, caches and builds'

setup: $(STAMP)

python-found:
	@if ! '$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  echo "hoodie_py needs Python 3.11 or newer, and $(if $(PYTHON),$(PYTHON) is not,none was found)." >&2; \
	  echo "Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python)" >&2; \
	  echo "or say where it is: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; fi

java-note:
	@v=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1); \
	if [ "$${v:-0}" -lt 17 ]; then \
	  echo "Note: Spark needs Java 17 or newer, and $$([ -n "$$v" ] && echo "this is Java $$v" || echo "there is none here")." >&2; \
	  echo "      Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17)" >&2; \
	  echo "      and set JAVA_HOME if it is not on the PATH. What follows leaves out everything that needs Spark." >&2; fi

$(STAMP): requirements/dev.txt pyproject.toml | python-found
	'$(PYTHON)' -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# A Python with PySpark 3.5 and the jar of Java Hudi, which the tests in integration/java_hudi compare with.
java-env: $(STAMP)
	@$(BIN)/python -m integration.java_hudi.environment

# An S3 server that checks credentials, built where Go is.
s3-env: $(STAMP)
	@$(BIN)/python -m integration.versitygw

demo: $(STAMP) java-note
	$(BIN)/hoodie demo

test: $(STAMP) java-note java-env s3-env
	@$(BIN)/python -m tests $(ARGS)

check: lint types
	@$(BIN)/python -m tests.touched $(ARGS)

thorough: $(STAMP) java-note java-env s3-env
	$(BIN)/python -m pytest -m thorough $(ARGS)

# All points on a disk and a tenth of those on S3 (ARGS="--s3-share 1" for all, which takes hours); `make test` has a sample.
crash: $(STAMP)
	PYTHONPATH=.:storage $(BIN)/python -m integration.crash --json .bench/crash.json $(ARGS)

crash-writes: $(STAMP)
	PYTHONPATH=.:storage $(BIN)/python -m integration.crash.write_trials --json .bench/crash-writes.json $(ARGS)

# Streams from a table to a table, killed and started again (ARGS="--trials 20 --drivers 2 --seed 7").
crash-streams: $(STAMP) java-note
	PYTHONPATH=.:storage $(BIN)/python -m integration.crash.stream_trials --json .bench/crash-streams.json $(ARGS)

# Each operation in each of its windows beside each other one, once (ARGS="--kinds 12" on every kind of table, ARGS="--share 0.1" for some;
# ARGS="--after .bench/pairs.json" carries on); `make test` has a sample.
pairs: $(STAMP)
	HOODIE_PY_READ_THREADS=1 PYTHONPATH=.:storage $(BIN)/python -m integration.pairs --json .bench/pairs.json $(ARGS)

# Random operations on tables, compared with a model after each, and what ranges of commits changed: hours for all steps
# (ARGS="--steps 5000 --seed 3" for some).
histories: $(STAMP)
	HOODIE_PY_READ_THREADS=1 PYTHONPATH=.:storage $(BIN)/python -m integration.histories --steps 100000 --json .bench/histories.json $(ARGS)

# Thousands of small commits on one table with its services, and what they cost (ARGS="--commits 1000 --version 6"); --java needs java-env.
year: $(STAMP)
	HOODIE_PY_READ_THREADS=1 PYTHONPATH=.:storage $(BIN)/python -m integration.year --json .bench/year.json $(ARGS)

java: $(STAMP) java-env
	$(BIN)/python -m pytest -m java $(ARGS)

# An environment for each PySpark (.venv-spark-4.0 and so on), made where it is missing. CI has the oldest and the newest.
spark-versions: $(STAMP) java-note
	$(BIN)/python -m integration.spark_versions $(ARGS)

# The wheel with each extra on each Python that is found, in fresh environments (ARGS="--python 3.12 --extra polars").
install-extras: wheel java-note
	PYTHONPATH=.:storage $(BIN)/python -m integration.install_extras $(ARGS)

# Benchmarks have an environment of their own, with hudi-rs. BENCH_TABLES says where the packed tables are; grown ones and
# results are kept in BENCH_CACHE (.bench). Each writes docs/benchmarks anew from the results there are.
$(BENCH_STAMP): requirements/bench.txt pyproject.toml | python-found
	'$(PYTHON)' -m venv .venv-bench
	$(BENCH) -m pip install --quiet --require-hashes -r requirements/bench.txt
	$(BENCH) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

bench: bench-reading bench-dataframes bench-formats bench-ranges bench-compaction bench-clustering bench-writing

bench-reading: $(BENCH_STAMP)
	$(BENCH) -m tests.benchmarks.merge_pairs
	$(BENCH) -m tests.benchmarks.decoder
	$(BENCH) -m tests.benchmarks.encoder
	$(BENCH) -m tests.benchmarks.in_process $(ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-dataframes: $(BENCH_STAMP)
	$(BENCH) -m tests.benchmarks.dataframes $(ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-formats: $(BENCH_STAMP)
	$(BENCH) -m tests.benchmarks.formats $(ARGS)
	$(BENCH) -m tests.benchmarks.formats_report

bench-ranges: $(BENCH_STAMP)
	$(BENCH) -m tests.benchmarks.ranges $(RANGE_ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-scale: $(BENCH_STAMP)
	$(BENCH) -m tests.benchmarks.scale $(ARGS)
	$(BENCH) -m tests.benchmarks.scale_report

bench-spark: $(BENCH_STAMP) java-note
	$(BENCH) -m tests.benchmarks.spark $(ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-compaction: $(BENCH_STAMP) java-note
	$(BENCH) -m tests.benchmarks.compaction --java $(ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-clustering: $(BENCH_STAMP) java-note
	$(BENCH) -m tests.benchmarks.clustering --java $(ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-writing: $(BENCH_STAMP) java-note
	$(BENCH) -m tests.benchmarks.writing --java $(ARGS)
	$(BENCH) -m tests.benchmarks.report

bench-java: $(BENCH_STAMP) java-note
	$(BENCH) -m tests.benchmarks.spark --java $(ARGS)
	$(BENCH) -m tests.benchmarks.report

# Every truncation and bit flip of a choice of files, then MINUTES of coverage-guided fuzzing for each parser (80 minutes in all).
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet 'atheris>=3.0'
	$(BIN)/python -m tests.fuzz.sweep
	$(BIN)/python -m tests.fuzz.run --minutes $(or $(MINUTES),10)

# Faults in the modules that hold rules, one at a time, and which of them no mirrored test notices.
mutants: $(STAMP)
	'$(PYTHON)' -m venv .venv-mutants
	.venv-mutants/bin/python -m pip install --quiet 'cosmic-ray>=8.4'
	.venv-mutants/bin/python -m tests.mutants $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	PYTHONPATH=.:storage $(BIN)/lint-imports --no-cache

# The pages of docs/ and every public name, as a site in dist/site; links and anchors are checked. No network.
docs: $(DOCS_STAMP)
	.venv-docs/bin/zensical build --strict

$(DOCS_STAMP): requirements/docs.txt | python-found
	'$(PYTHON)' -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

wheel: $(STAMP)
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -d dist

release: $(STAMP)
	PYTHON=$(BIN)/python .ci/release $(ARGS)

$(UV): | python-found
	'$(PYTHON)' -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet uv

lock: $(UV)
	$(LOCK) $(foreach extra,azure duckdb gcs glue hive lance otel pandas polars s3 spark testing,--extra $(extra)) --group dev --output-file requirements/dev.txt
	$(LOCK) $(foreach extra,hive lance s3 spark testing,--extra $(extra)) --group smoke --resolution lowest-direct \
	  --output-file requirements/minimum.txt
	$(LOCK) $(foreach extra,daft dask datafusion duckdb ibis polars ray testing,--extra $(extra)) --group smoke \
	  --output-file requirements/dataframes.txt
	$(LOCK) $(foreach extra,datafusion duckdb polars s3 spark testing,--extra $(extra)) --group bench --constraint requirements/dev.txt --output-file requirements/bench.txt
	$(LOCK_GROUP) --group pyproject.toml:docs --output-file requirements/docs.txt

clean:
	rm -rf $(VENV) .venv-* .versitygw .flink .bench dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
