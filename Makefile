# What people type; the work is done by CMake and by scripts/.
# SPDX-License-Identifier: Apache-2.0
BUILD ?= build
PREFIX ?= /usr/local
GENERATOR := $(if $(shell command -v ninja),Ninja,Unix Makefiles)

help:
	@echo "make build      build/lade and build/liblade.so (installs what is missing, on Debian as root;"
	@echo "                GPU kernels need nvcc: 300 MB below $(BUILD)/; NO_CUDA=1 does without)"
	@echo "make demo       build, then compress and restore array files, and show what happens"
	@echo "make test       the suite that CI runs; half an hour on two cores"
	@echo "make test-long  soak, a 5 GiB frame, a million chunks, long fuzzing (log: tests/long/log)"
	@echo "make python     the Python package: a wheel in $(BUILD)/python/wheel, installed and tested"
	@echo "make wheel      the same for other machines, with the libraries in it: $(BUILD)/python/dist"
	@echo "make node       the npm package, for Node 18 or later: $(BUILD)/node/dist, installed and tested"
	@echo "make docs       the Python package's pages and reference: $(BUILD)/docs/html/index.html"
	@echo "make fuzz       fuzz every target for SECONDS (default 600), and keep what is new"
	@echo "make bench      the benchmark programs, built and run"
	@echo "make install    into PREFIX (default /usr/local; DESTDIR is heeded)"
	@echo "make format     clang-format on the changed lines; make clean removes $(BUILD)/"

deps:
	@scripts/deps.sh build

nvcc:
	@scripts/nvcc.sh $(BUILD)

build: deps nvcc
	@cmake -S . -B $(BUILD) -G "$(GENERATOR)" -DCMAKE_INSTALL_PREFIX=$(PREFIX) \
		-DLADE_CUDA=$(if $(NO_CUDA),OFF,AUTO) >$(BUILD).log 2>&1 \
		|| { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@cmake --build $(BUILD) --parallel --target lade liblade liblade_static
	@echo "built $(BUILD)/lade and $(BUILD)/liblade.so"

demo: build
	@scripts/demo.sh $(BUILD)

test:
	@scripts/deps.sh test
	@scripts/nvcc.sh $(BUILD)
	@scripts/test.sh $(BUILD)

test-long:
	@scripts/deps.sh test
	@scripts/test_long.sh $(BUILD)

python:
	@scripts/deps.sh build
	@mkdir -p $(BUILD)
	@tests/python/run.sh $(BUILD)

wheel:
	@scripts/deps.sh build
	@scripts/nvcc.sh $(BUILD)
	@LADE_CUDA=$(if $(NO_CUDA),OFF,AUTO) scripts/python.sh $(BUILD)
	@scripts/wheel.sh $(BUILD)

node: build
	@scripts/deps.sh node
	@tests/node/run.sh $(BUILD)

docs:
	@scripts/deps.sh build
	@mkdir -p $(BUILD)
	@scripts/python.sh $(BUILD)
	@scripts/docs.sh $(BUILD)

SECONDS ?= 600
fuzz:
	@scripts/deps.sh test
	@scripts/fuzz.sh $(BUILD) $(SECONDS) keep

bench: build
	@bench/run_all.sh $(BUILD)

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@scripts/format.sh

clean:
	rm -rf $(BUILD)

.PHONY: help deps nvcc build demo test test-long python wheel node docs fuzz bench install format clean
