# peakproof, from a fresh Debian to the result of the main job:
#
#   make demo        install what is missing, build, plan a shipped model, check the proof
#   make test        build with gcc and sanitizers, run all suites; last line "N passed, N failed"
#
# Everything made here lands in build/. The build itself is Meson's (meson.build).

SHELL = /bin/bash
BUILD = build
VENV = $(BUILD)/venv
PYTHON = $(VENV)/bin/python
MESON = $(VENV)/bin/meson
NINJA = $(VENV)/bin/ninja
prefix = /usr/local
, := ,
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: all build demo test format fuzz torture bench reproduce measure readme install clean
.DELETE_ON_ERROR:

all: build

# Debian packages and a virtual environment: .ci/setup WHAT installs what is missing, once.
$(VENV)/.ci: $(VENV)/.test
$(VENV)/.test: $(VENV)/.demo
$(VENV)/.demo: $(VENV)/.build
$(VENV)/.%: .ci/setup .ci/packages.txt .ci/requirements.txt
	.ci/setup $* $(VENV)
	@touch $@

# The Python package with its extension, beside torch, in an environment of its own.
$(BUILD)/venv-torch/.torch: .ci/setup .ci/packages.txt .ci/requirements.txt pyproject.toml
	.ci/setup torch $(BUILD)/venv-torch
	$(BUILD)/venv-torch/bin/pip install --quiet --disable-pip-version-check --no-deps .
	@touch $@

# One build directory a configuration. Where warnings are errors depends on who compiles: not for users.
configure = test -f $@ || TQDM_DISABLE=1 CC=$(or $(1),gcc) $(MESON) setup $(dir $@) $(2)
$(BUILD)/release/build.ninja: | $(VENV)/.build
	$(call configure,gcc,--buildtype=release -Dwerror=false -Dprefix=$(prefix) -Dlibdir=lib \
	  -Dtests=false)
$(BUILD)/bench/build.ninja: | $(VENV)/.build $(VENV)/.test
	$(call configure,gcc,--buildtype=release -Dwerror=false)
$(BUILD)/test/build.ninja: | $(VENV)/.build $(VENV)/.test
	$(call configure,gcc,--buildtype=debugoptimized)
$(BUILD)/sanitize/build.ninja: | $(VENV)/.build $(VENV)/.test
	$(call configure,gcc,--buildtype=debug --optimization=1 -Db_sanitize=address$(,)undefined)
$(BUILD)/clang/build.ninja: | $(VENV)/.build $(VENV)/.test
	$(call configure,clang,--buildtype=debugoptimized)
$(BUILD)/fuzz/build.ninja: | $(VENV)/.build $(VENV)/.test
	$(call configure,clang,--buildtype=debug --optimization=1 -Db_sanitize=address$(,)undefined \
	  -Db_lundef=false -Dfuzz=true)

build: $(BUILD)/release/build.ninja
	$(NINJA) --quiet -C $(BUILD)/release

build-%: $(BUILD)/%/build.ninja
	$(NINJA) --quiet -C $(BUILD)/$*

# PyTorch is large: TORCH=no leaves its half of the demo out.
demo: build $(VENV)/.demo $(if $(filter no,$(TORCH)),,$(BUILD)/venv-torch/.torch)
	@BUILD=$(BUILD) TORCH=$(TORCH) examples/demo.sh

# CI=1 (set by .ci/run) adds the suites that take minutes.
test: build build-test build-sanitize $(if $(CI),$(VENV)/.ci build-bench build-clang build-fuzz)
	@$(PYTHON) tests/run --build $(BUILD) $(if $(CI),--ci) $(SUITES)

format: $(VENV)/.test
	clang-format -i $$(git ls-files '*.c' '*.h')
	files=$$(git ls-files '*.py'; git grep -lE '^#!.*python' -- ':!*.py'); \
	  ruff format $$files && ruff check --fix $$files

# Half a minute for each fuzz target; SECONDS_EACH=3600 for an hour.
fuzz: build-fuzz
	tests/fuzz/run $(BUILD)/fuzz $(or $(SECONDS_EACH),30)

# Exhaustive attacks, resumable, hours; the last result is kept in the repository.
torture: build-sanitize build-fuzz
	for script in tests/*/torture; do $$script $(BUILD) || exit 1; done

bench: build-bench
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/speed

# doc/results.md and its pictures, from the raw lines kept in bench/results: seconds, nothing is
# built. MEASURE=1 first measures what is missing there: hours.
reproduce: $(if $(MEASURE),measure)
	@$(or $(wildcard $(PYTHON)),python3) bench/page.py

# What has a line already is skipped; AGAIN=--again measures anew what has none of this commit.
# TRACES: a folder of bench/trace_programs.py. TORCH_PYTHON: a Python with torch, ortools and the
# package (torchvision, timm and transformers for all models of the corpus); ONNX_PYTHON: one with
# onnx and onnxruntime. Without them their steps are left out.
measure: build-bench
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/scaling $(AGAIN)
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/certify $(AGAIN) $(TRACES:%=--traces %)
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/width $(AGAIN)
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/families $(AGAIN)
	@test -z "$(AGAIN)" -a -f bench/results/caching-speed.tsv || \
	  PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/caching
	@$(if $(ONNX_PYTHON),PP_BUILD=$(CURDIR)/$(BUILD) $(ONNX_PYTHON) bench/redimnet $(AGAIN))
	@$(if $(TORCH_PYTHON),PP_BUILD=$(CURDIR)/$(BUILD) $(TORCH_PYTHON) bench/peers.py $(AGAIN))
	@$(if $(TORCH_PYTHON),$(TORCH_PYTHON) bench/inductor_corpus.py run $(AGAIN))
	@$(if $(TORCH_PYTHON),$(TORCH_PYTHON) bench/inductor_corpus.py table)

# Every output that README.md shows, made again and compared.
readme: build build-bench $(VENV)/.demo
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/reproduce speed
	@PP_BUILD=$(CURDIR)/$(BUILD) $(PYTHON) bench/reproduce

install: build
	$(MESON) install -C $(BUILD)/release

clean:
	rm -rf $(BUILD)
