# make install  build everything into .venv and run nothing
# make gate   build everything and run the gate of every pull request on this machine
# make test   run every test
# make fuzz   run the fixed regression list and 150 random cells drawn from the commit (SEED=N: others)
# make lint   check style and types
# make clean  remove the environment, builds and reports
#
# PYTHON=python3.12 picks another Python; EXTRAS=opencl,cuda12 other runtimes than found here.

PYTHON ?= python3
VENV := .venv
comma := ,
# A GPU that is there must run, unless EXTRAS says what to install.
ifndef EXTRAS
CUDA := $(shell sh ci/cuda-extra.sh || echo failed)
ifeq ($(CUDA),failed)
$(error the GPU of this machine cannot be used as it is)
endif
EXTRAS := opencl,libvmaf$(addprefix $(comma),$(CUDA))
endif
REQUIRE := --require opencl:pocl $(if $(CUDA),--require cuda) \
           $(if $(findstring libvmaf,$(EXTRAS)),--require libvmaf)
SEED ?= $(shell printf '%d' "0x$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 0)")
# On a machine with several GPUs the first is the candidate.
export CUDA_VISIBLE_DEVICES ?= 0

PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt $(wildcard backends/*.?pp) \
           $(wildcard backends/features/*/reference/*)
# A mark stands for an environment that can do its part, made with this Python and these extras.
MARK := $(VENV)/$(subst /,_,$(PYTHON))-$(subst $(comma),-,$(EXTRAS))

.PHONY: install gate test fuzz lint clean
.NOTPARALLEL:

install: $(MARK)

gate: $(MARK)
	@$(VENV)/bin/parity-gate run matrices/pr.yaml $(REQUIRE)

fuzz: $(MARK)
	@$(VENV)/bin/parity-gate run matrices/regressions.yaml $(REQUIRE) --out out/regressions
	@$(VENV)/bin/parity-gate fuzz --cells 150 --seed=$(SEED) $(REQUIRE) \
	    $(patsubst --require,--candidate,$(REQUIRE)) --out out/fuzz

test: $(MARK)-test
	@$(VENV)/bin/python -m pytest -q

lint: $(MARK)-lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/clang-format --dry-run -Werror backends/*.?pp backends/dialect/*.h \
	    backends/features/*/reference/*.?pp backends/features/*/kernels/*.h
	sh ci/check-workflows.sh $(VENV)/bin

clean:
	rm -rf $(VENV) build out

# An editable install runs the checkout itself; only a change of SOURCES builds again.
$(MARK): $(SOURCES)
	@sh ci/check-tools.sh $(PYTHON)
	@echo "building the reference and installing $(EXTRAS) into $(VENV) (once)"
	@test -e $@ || rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[$(EXTRAS)]'
	@touch $@

$(MARK)-test: $(MARK)
	@$(PIP) -e '.[$(EXTRAS),dev]'
	@touch $@

$(MARK)-lint: $(MARK)-test
	@$(PIP) -e '.[$(EXTRAS),lint]'
	@touch $@
