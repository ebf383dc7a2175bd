# make quickstart   set up .venv and run the main job in small (no GPU, no model key)
# make test         set up .venv and run lint, types, import contracts, banned words and all tests
# make check        the quick tier, about a minute: as make test, with the quick tests alone
# make coverage     the tests of make test, and which lines they run; fails below the floor in pyproject.toml
# make install      only set up .venv; does nothing where it is up to date
#
# PYTHON            the Python to build .venv from, 3.11 or later
# TORCH_INDEX_URL   package index to take torch from, such as that of PyTorch's CPU builds

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# four processes, on small machines one more than cores: many tests wait. Each file in one process.
SPREAD := -n $(shell c=$$(nproc); echo $$((c < 4 ? c + 1 : 4))) --dist loadfile --no-loadscope-reorder
# tests start hundreds of commands, each of which would compile the sources again
test check coverage: export PYTHONDONTWRITEBYTECODE :=
# tests run side by side: threads of one would wait for cores that another one has
test check coverage: export OMP_NUM_THREADS := 1
# pure packages of the agent side, and what starts no judge
QUICK = $(addprefix tests/,agent core prompts records report search settings synthesis view \
	test_architecture.py test_documentation.py test_documented_commands.py) \
	$(shell grep -rL --include='test_*.py' --exclude='test_recorded*' 'live import\|confined' tests/online_judge)
TORCH := $(shell grep '^torch==' requirements.txt)

.PHONY: quickstart test check coverage install lint format wheel clean
.DEFAULT_GOAL := test

quickstart: install
	env -u KERNELBENCH_ROOT $(BIN)/adaexplore run --config config/quickstart.yaml

test: lint
	$(BIN)/python -m pytest -m "not gpu and not live and not long" $(SPREAD)

check: lint
	$(BIN)/python -m pytest -m "not slow and not gpu and not live and not long" $(SPREAD) $(QUICK)

coverage: install
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -m "not gpu and not live and not long" $(SPREAD)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered

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

$(STAMP): requirements.txt requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || \
		{ echo "no $(PYTHON) found; install Python 3.11 or later, or name one: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$$($(PYTHON) --version) is too old; name Python 3.11 or later: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 2; }
	@echo "installing into $(VENV); the first time takes some minutes"
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX_URL),$(PIP) --index-url $(TORCH_INDEX_URL) $(TORCH))
	$(PIP) -r requirements.txt -c requirements.lock
	$(PIP) --no-deps -e .
	@touch $@

wheel: install
	$(BIN)/python -m tool_scripts.check_wheel --python $(PYTHON)

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
