# make gate   build everything and run the gate of every pull request on this machine
# make test   run every test
# make lint   check style and types
# make clean  remove the environment, builds and reports
#
# PYTHON=python3.12 picks another Python; EXTRAS=opencl,cuda12 other runtimes than found here.

PYTHON ?= python3
VENV := .venv
CUDA := $(shell sh ci/cuda-extra.sh)
EXTRAS ?= opencl$(addprefix $(comma),$(CUDA))
comma := ,
SOURCES := pyproject.toml CMakeLists.txt $(wildcard backends/*.cpp) \
           $(wildcard backends/features/*/reference/*)

.PHONY: gate test lint clean

gate: $(VENV)/gate
	@$(VENV)/bin/parity-gate run matrices/pr.yaml --require opencl:pocl $(if $(CUDA),--require cuda)

test: $(VENV)/test
	@$(VENV)/bin/python -m pytest -q

lint: $(VENV)/lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/clang-format --dry-run -Werror backends/*.cpp backends/dialect/*.h \
	    backends/features/*/reference/*.?pp backends/features/*/kernels/*.h

clean:
	rm -rf $(VENV) build out

# Each mark is an environment that can do its part; an editable install runs the checkout itself.
$(VENV)/gate: $(SOURCES)
	@sh ci/check-tools.sh $(PYTHON)
	@echo "building the reference and installing $(EXTRAS) into $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

$(VENV)/test: $(VENV)/gate
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS),dev]'
	@touch $@

$(VENV)/lint: $(VENV)/test
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS),lint]'
	@touch $@
