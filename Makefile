# Two commands do everything: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: demo test lint docs bench torture browser clean

demo: .venv/.installed
	$(BIN)/attnscope run lu2021.sen --figures png
	@echo
	@echo "Open the report above in a browser: one file, nothing is fetched. Then try"
	@echo "  $(BIN)/attnscope lab              training that answers a slider, and a page for data of your own"
	@echo "  $(BIN)/attnscope new mine.py      a theorem of your own, in forty lines"
	@echo "  $(BIN)/attnscope                  everything else, three doors of it"

test: .venv/.installed-dev browser lint
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

lint: .venv/.installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check --quiet src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The site, in docs/_build/html: tutorials are executed, and nothing is fetched. Open index.html.
docs: .venv/.installed-dev
	$(BIN)/python docs/make_reports.py docs/_reports
	$(BIN)/python -m sphinx -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: .venv/.installed
	$(BIN)/python benchmarks/run.py --out runs/bench.json

# Kills at file operations, several writers, damaged folders and files, strange commands, a full lab:
# docs/reliability.md. Below 30 minutes.
torture: .venv/.installed-dev
	$(BIN)/python -m tests.torture

.venv/.installed: pyproject.toml constraints.txt
	@echo "setting up .venv; the first time this takes a few minutes"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "attnscope needs Python 3.11 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[all]"
	@touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable ".[dev]"
	@touch $@

# The report is tested in a real browser. Where Chromium is neither there nor installable, those
# tests say so and are skipped.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null; } || \
	echo "chromium and chromium-driver are not installed: the browser tests will be skipped"

clean:
	rm -rf .venv build dist docs/_build docs/_reports .pytest_cache .mypy_cache .ruff_cache .hypothesis
