# Everything a person runs. `make demo` and `make test` need Python 3.11, Java 17 and make, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup programs demo test test-wide test-long check lint bench fuzz differential soak docs pictures lock audit clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Kelpie needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# What tests use and pip does not have: a browser, promtool, kcat, zsh, fish. Where one cannot be had, the tests that
# need it are skipped, and say so.
programs: $(VENV)/.programs

$(VENV)/.programs: tests/programs.sh | $(READY)
	@sh tests/programs.sh $(BIN)
	@touch $@

# make demo SERVE=0 ends after the report, without pages; TABLES=0 leaves Spark out.
SERVE ?= 1
TABLES ?= 1
demo: $(READY)
	@$(BIN)/python -m demo $(if $(filter 0,$(SERVE)),--no-pages) $(if $(filter 0,$(TABLES)),--no-tables)

# Three processes for two cores: one has Spark, and the others often wait for brokers. Who goes first, and who goes
# together, is in tests/conftest.py. WORKERS=0 runs one test after the other.
# Tests start Python some hundred times: what it has compiled is kept, whatever the environment says.
WORKERS ?= 3
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
test: $(READY) programs
	$(PYTEST) -m "not long and not wide"

# The same tests on the releases between the oldest and the newest one, and on further recordings; what clients see
# on real Kafka, which their tests on the lab are measured by; what goes from end to end, as the tutorial does.
test-wide: $(READY)
	$(PYTEST) -m "wide and not long"

# What takes minutes: an incident recorded on real Kafka, a real Spark cluster, a stream that is killed.
test-long: $(READY)
	$(BIN)/python -m pytest -m long

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test test-wide

# make bench ONLY=codec runs one benchmark.
bench: $(READY)
	$(BIN)/python -m bench $(ONLY)

# make differential N=5000 compares more random group histories, lab against real Kafka 4. With N=200 RECORD=1 it
# keeps what real Kafka said: make test compares the lab with that, and asks real Kafka for some of them only.
N ?= 1000
differential: $(READY)
	$(BIN)/python -m tests.lab.differential $(N) $(if $(RECORD),--record)

# Broken frames for the decoder, surveys of brokers that lie, broken files of every kind, broken requests to the lab's
# control API and to pages, then new random examples for every property that tests state; make fuzz FRAMES=5000000
# SURVEYS=1000000 FILES=5000000 goes on longer, and KELPIE_FUZZ_FIRST=200001 make fuzz goes on where another run ended.
FRAMES ?= 1000000
SURVEYS ?= 200000
FILES ?= 1000000
REQUESTS ?= 100000
PAGES ?= 20000
fuzz: $(READY)
	KELPIE_FUZZ_FRAMES=$(FRAMES) $(BIN)/python -m pytest tests/wire/test_fuzz.py -s
	KELPIE_FUZZ_SURVEYS=$(SURVEYS) $(BIN)/python -m pytest tests/fuzzing/test_surveys.py -s
	KELPIE_FUZZ_FILES=$(FILES) $(BIN)/python -m pytest tests/fuzzing/test_files.py -s
	KELPIE_FUZZ_REQUESTS=$(REQUESTS) $(BIN)/python -m pytest tests/fuzzing/test_requests.py -s
	KELPIE_FUZZ_PAGES=$(PAGES) $(BIN)/python -m pytest tests/fuzzing/test_pages.py -s
	KELPIE_EXAMPLES=fuzz $(BIN)/python -m pytest -m hypothesis --ignore tests/wire/test_fuzz.py

# A stream over a live lab, killed at random moments; make soak SECONDS=600 KILLS=20 SEED=7.
SECONDS ?= 180
KILLS ?= 5
SEED ?= 1
soak: $(READY)
	$(BIN)/python -m tests.pipeline.soak --seconds $(SECONDS) --kills $(KILLS) --seed $(SEED)

# The documentation as a site in build/site. Works offline; a warning or a broken link fails it.
docs: $(READY)
	$(BIN)/python -m website

# Pictures of pages in docs/, taken in a real browser.
pictures: $(READY) programs
	KELPIE_PICTURES=docs $(BIN)/python -m pytest tests/web/test_browser.py -k pictures -q

# Pins every dependency anew. The lock file holds names, versions and hashes, and no address.
lock:
	uvx --version >/dev/null 2>&1 || { echo "make lock needs uv: pip install uv"; exit 1; }
	uv pip compile pyproject.toml --extra mcp --extra otlp --extra pipeline --extra plots --extra web --extra zookeeper --group dev --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --upgrade -o requirements.lock

# Asks an advisory service for every pinned version. make check needs none: tests/test_dependencies.py holds
# requirements.audit, where what was found is written down, to the lock file.
audit:
	uvx --version >/dev/null 2>&1 || { echo "make audit needs uv: pip install uv"; exit 1; }
	uvx pip-audit --disable-pip --require-hashes --requirement requirements.lock

clean:
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
