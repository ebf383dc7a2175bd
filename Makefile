# make quickstart   set up .venv and run the main job in small (no GPU, no model key)
# make test         set up .venv and run lint, types, import contracts, style counts and all tests
# make check        the quick tier, about a minute: as make test, with the quick tests alone
# make install      only set up .venv; does nothing where it is up to date
#
# PYTHON            the Python to build .venv from, 3.11 or later
# TORCH_INDEX_URL   package index to take torch from, such as that of PyTorch's CPU builds

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# over the cores, each file in one process
SPREAD := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# pure packages of the agent side, and what starts no judge
QUICK = $(addprefix tests/,agent core prompts records report search settings synthesis view test_architecture.py) \
	$(shell grep -rL --include='test_*.py' --exclude='test_recorded*' 'live import\|confined' tests/online_judge)
TORCH := $(shell grep '^torch==' requirements.txt)

.PHONY: quickstart test check install lint format clean
.DEFAULT_GOAL := test

quickstart: install
	env -u KERNELBENCH_ROOT $(BIN)/adaexplore run --config config/quickstart.yaml

test: lint
	$(BIN)/python -m pytest -m "not gpu and not live and not long" $(SPREAD)

check: lint
	$(BIN)/python -m pytest -m "not slow and not gpu and not live and not long" $(SPREAD) $(QUICK)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tool_scripts.check_style

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(STAMP)

$(STAMP): requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "no $(PYTHON) found; install Python 3.11 or later, or name one: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$$($(PYTHON) --version) is too old; name Python 3.11 or later: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 2; }
	@echo "installing into $(VENV); the first time takes some minutes"
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX_URL),$(PIP) --index-url $(TORCH_INDEX_URL) $(TORCH))
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -e .
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
