# make help explains the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
PREFIX ?= /usr/local
N ?= 8
SECONDS_TRACED ?= 5
FUZZ_SECONDS ?= 600
DIST ?= dist
USERLANDS ?= trixie sid

VENV := .venv
BIN := $(VENV)/bin
MACHINE := $(shell uname -m)
BPF_ARCH := $(patsubst x86_64,x86,$(patsubst aarch64,arm64,$(MACHINE)))
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
export DEBIAN_FRONTEND := noninteractive
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without it each command of the tests would compile all of its modules.
unexport PYTHONDONTWRITEBYTECODE

PROBES := $(sort $(wildcard bpf/*.bpf.c))
PROBE_OBJECTS := $(PROBES:bpf/%.bpf.c=build/bpf/%.bpf.o)
BPF_OBJECT := bpf/stallscope.bpf.o
CARRIED := tracers/kernel/carried
BPF_CFLAGS := -g -O2 -Wall -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Ibpf/include

WORKLOAD_PARTS := workload held_device libdemo_cuda libcuda libcudart libnccl libnvidia_ml libshares many_library cuda_calls call_storm nccl_ranks nccl_storm mpi_ranks topk_ranks
WORKLOADS := $(filter-out $(WORKLOAD_PARTS),$(patsubst tests/workloads/%.c,%,$(wildcard tests/workloads/*.c)))
STANDINS := $(addprefix build/workloads/,libcuda.so.1 libcudart.so.12 libnvidia-ml.so.1 libnccl.so.2 cuda_calls cuda_late cuda_static call_storm nccl_ranks nccl_storm nvidia/topk_ranks)
WORKLOAD_FILES := $(WORKLOADS:%=build/workloads/%) build/workloads/libdemo_cuda.so build/workloads/libshares.so $(STANDINS)
# What only tests need: it takes compilers of their own, and more time.
TEST_WORKLOADS := $(addprefix build/workloads/,cpp_frames gloo_ranks rust_frames exec_chain_other many/.made mpi_ranks)
# Frame pointers: see tests/workloads/README.md.
WORKLOAD_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -pthread -fPIC -fvisibility=hidden \
	-fno-omit-frame-pointer -fno-optimize-sibling-calls
# Those whose stacks only unwind tables can tell.
NO_FRAME_POINTERS := call_paths demo exec_chain exec_chain_other jit_mixed libdemo_cuda libshares many_mappings shares
UNWIND_CFLAGS := -O2 -g -D_GNU_SOURCE -DNO_FRAME_POINTERS -Wall -Wextra -Werror -pthread -fPIC -fomit-frame-pointer \
	-fasynchronous-unwind-tables -fvisibility=hidden
$(NO_FRAME_POINTERS:%=build/workloads/%.o): WORKLOAD_CFLAGS := -std=gnu11 $(UNWIND_CFLAGS)

# Tests that trace or measure time: one after the other. The others run on all cores.
TIMED := tests/diagnoses tests/hostile tests/live tests/vm tests/workloads
# Those of them that look at counts, names, stacks and messages, or at times by the clock of the program itself: what
# runs beside changes none of it. Two at a time.
BESIDE := $(patsubst %,tests/live/test_%.py,any_library answer_again around ask ask_events asleep bcc bounds call_tables command compare cuda \
	cuda_ioctls demo embedded eu_stack events func intervals ioctl jobs kernel_addresses names networks peers postgres \
	privileges python python_clients python_steps python_storm ranks retransmissions robust runtimes scan_live \
	scan_page \
	scan_watch scope_of_command slow_links spans sub_interpreters sudo timeline unwind wait_limits wait_objects wrong_input) \
	tests/workloads/test_workload_stacks.py

C_FILES := $(wildcard bpf/*.c bpf/include/*.h tests/diagnoses/programs/*.[ch] tests/hostile/attacks/*.c tests/tracers/engines/ebpf/measures/*.c tests/workloads/*.c tests/workloads/*.cc tests/workloads/*.h tests/vm/nvidia/*.c tracers/engines/bcc/*.c stap/runtime/*.c)

.PHONY: help build demo tutorial tutorial-pictures test test-hostile record-captures record-jobs lint types bench fuzz install uninstall wheel clean \
	workloads test-workloads dev speedscope-schema \
	userland-test vm-test vm-test-all python-versions packages-build packages-lint packages-test packages-bench packages-userland \
	packages-vm packages-vm-kernel FORCE

help: ## this list
	@echo 'stallscope: where the time of a training host goes'
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18
	@echo
	@echo 'Variables: PYTHON (python3; 3.10 or newer), PREFIX (/usr/local), N (processes of the demo, 8),'
	@echo '           REQUIRE_LIVE=1 (a test that cannot trace here fails instead of being skipped)'
	@echo "           USERLANDS ('trixie sid'), USERLAND_REFRESH=1 (they are made anew), USERLAND_MIRROR (of Debian)"
	@echo '           FUZZ_SECONDS (600), FUZZ_TARGETS (all of them)'
	@echo "           USERLANDS=jammy USERLAND_MIRROR=URI: this tree's wheel in Ubuntu 22.04"

build: $(VENV)/.installed $(BPF_OBJECT) ## all that is needed: system packages, .venv, compiled probes

demo: build workloads ## trace N=8 demo processes for 5 s, then their calls; leave the pictures in build/demo/
	@mkdir -p build/demo
	@$(SUDO) $(BIN)/python tests/workloads/demo.py --processes $(N) --seconds $(SECONDS_TRACED)

tutorial: build workloads ## run the commands of docs/tutorial.md, leave its pictures in build/tutorial/
	@$(SUDO) $(BIN)/python tests/workloads/tutorial_pictures.py

# The same, and docs/ gets the pictures.
tutorial-pictures: build workloads
	@$(SUDO) $(BIN)/python tests/workloads/tutorial_pictures.py --publish

test: build dev workloads test-workloads speedscope-schema | packages-test packages-vm ## all tests; those that trace need root
ifdef PYTEST_ARGS
	$(BIN)/python -m pytest $(PYTEST_ARGS)
else
	@status=0; \
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile $(TIMED:%=--ignore=%) || status=$$?; \
	$(BIN)/python -m pytest -n 2 --dist loadfile $(BESIDE) || status=$$?; \
	$(BIN)/python -m pytest $(TIMED) $(BESIDE:%=--ignore=%) || status=$$?; \
	exit $$status
endif

test-hostile: build dev | packages-test ## each attack of tests/hostile on each command (an hour); needs root
	$(SUDO) env HOSTILE=all $(BIN)/python -m pytest tests/hostile

record-captures: build dev test-workloads | packages-test ## trace the programs of tests/diagnoses; tests/recorded keeps their captures
	$(SUDO) $(BIN)/python -m pytest tests/diagnoses
	PYTHONPATH=tests/recorded $(BIN)/python tests/recorded/record.py build/diagnoses/*.pb.gz

record-jobs: build dev ## trace jobs of real programs; tests/recorded keeps their captures (JOBS=name: only this one); needs root
	$(SUDO) env PYTHONPATH=tests/recorded $(BIN)/python tests/recorded/record_jobs.py $(JOBS)

vm-test: build dev workloads test-workloads | packages-vm ## the probes on stock kernels in QEMU: the short set
	$(BIN)/python tests/vm/lane.py $(VM_ARGS)

vm-test-all: build dev workloads test-workloads | packages-vm packages-vm-kernel ## all kernels, all checks; writes docs/kernels.md
	KERNEL_SRC=$(KERNEL_SRC) $(BIN)/python tests/vm/lane.py --all

python-versions: build dev workloads test-workloads | packages-test ## the live tests of Python on each version; writes docs/python-versions.md
	$(SUDO) env PYTHONPATH=tests/vm:tests/workloads $(BIN)/python tests/versions/python_versions.py

userland-test: speedscope-schema $(if $(filter jammy noble,$(USERLANDS)),wheel) | packages-userland ## build, tests, demo and wheel in USERLANDS, other releases of Debian
	@$(SUDO) $(PYTHON) tests/userlands/other_userlands.py $(if $(USERLAND_MIRROR),--mirror $(USERLAND_MIRROR)) \
		$(if $(filter 1,$(USERLAND_REFRESH)),--refresh) $(USERLANDS)

lint: dev | packages-lint ## ruff and clang-format, both only look
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	clang-format --dry-run -Werror $(C_FILES)

types: dev ## mypy --strict
	@mkdir -p build/types/stallscope
	@ln -sfn ../../../converters build/types/stallscope/converters
	@ln -sfn ../../../tracers build/types/stallscope/tracers
	MYPYPATH=build/types $(BIN)/mypy -p stallscope.converters -p stallscope.tracers
	MYPYPATH=build/types $(BIN)/mypy scripts

bench: build dev workloads | packages-bench ## what tracing costs, beside other tools
	@for bench in $(sort $(wildcard tests/bench/*.py)); do echo "== $$bench"; $(SUDO) $(BIN)/python "$$bench"; done

fuzz: dev ## every parser of what others control, for FUZZ_SECONDS=600 on all cores
	$(BIN)/python tests/fuzz/run_fuzz.py --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

install: wheel ## the commands in PREFIX/bin, where sudo finds them
	@mkdir -p $(PREFIX) 2>/dev/null && [[ -w $(PREFIX) ]] || as_root=$(SUDO); \
	$(BIN)/python -I -m pip freeze --exclude-editable --quiet | grep -E '^[A-Za-z0-9._-]+==' >$(DIST)/versions.txt; \
	$${as_root:-} "$$(command -v $(PYTHON))" -I scripts/installer.py install $(PREFIX) $(DIST)/stallscope-*.whl $(DIST)/versions.txt

uninstall: ## remove exactly what install put there
	@[[ -w $(PREFIX) ]] || as_root=$(SUDO); \
	$${as_root:-} "$$(command -v $(PYTHON))" -I scripts/installer.py uninstall $(PREFIX)

# The libraries that it carries are in the tree only while it is built: what runs from the tree has the system's.
wheel: build ## DIST/stallscope-*.whl with the compiled probes and libbpf, for this architecture
	@rm -rf build/wheel $(DIST)/stallscope-*.whl
	@trap 'rm -rf $(CARRIED)' EXIT; \
	platform=$$($(BIN)/python scripts/carried_libraries.py $(CARRIED)); \
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(DIST) \
		--config-settings=--build-option=--plat-name=$$platform .
	@ls $(DIST)/stallscope-*.whl

clean: ## remove what was built; .venv stays
	rm -rf build $(DIST)/stallscope-*.whl $(BPF_OBJECT) $(CARRIED) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find bpf converters scripts stap tests tracers -name __pycache__ -type d -prune -exec rm -rf {} +

# System packages: asked for every time (it takes 0.1 s), so that one that was removed comes back.
packages-build packages-lint packages-test packages-bench packages-userland packages-vm packages-vm-kernel: packages-%:
	@scripts/system-packages.sh $*

# The virtual environment, then the test tools in it: one after the other, pip does not like company.
$(VENV)/.installed: setup.cfg pyproject.toml scripts/installer.py | packages-build
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo '$(PYTHON) is not Python 3.10 or newer: name one that is, as in make build PYTHON=python3.12' >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || \
		{ echo 'no virtual environment: $(PYTHON) lacks ensurepip (Debian: the package python3-venv of its version)' >&2; exit 1; }
	$(BIN)/python -m pip install --quiet 'pip>=23' -e .
	@$(BIN)/python -I scripts/installer.py isolate
	@touch $@

dev: $(VENV)/.dev
$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet -e '.[lint,test]'
	@$(BIN)/python -I scripts/installer.py isolate
	@touch $@

# The probes: each to an object, all linked into one.
build/bpf/%.bpf.o: bpf/%.bpf.c Makefile | packages-build
	@mkdir -p $(@D)
	clang $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

build/bpf/probes: FORCE
	@mkdir -p $(@D)
	@cmp -s $@ <<<'$(PROBES)' || echo '$(PROBES)' >$@

$(BPF_OBJECT): $(PROBE_OBJECTS) build/bpf/probes tracers/kernel/linker.py | $(VENV)/.installed
	$(BIN)/python -m stallscope.tracers.kernel.linker build/bpf/stallscope.linked.o $(PROBE_OBJECTS)
	llvm-strip -g -o build/bpf/stallscope.stripped.o build/bpf/stallscope.linked.o
	@mv build/bpf/stallscope.stripped.o $@

# The workloads.
workloads: $(WORKLOAD_FILES)

test-workloads: workloads $(TEST_WORKLOADS)

build/workloads/%.o: tests/workloads/%.c Makefile | packages-build
	@mkdir -p $(@D)
	gcc $(WORKLOAD_CFLAGS) -MMD -MP -c $< -o $@

# After the compiler, for no assembler takes such names from it.
build/workloads/hostile.o: tests/workloads/hostile.c tests/workloads/hostile.syms Makefile | packages-build
	@mkdir -p $(@D)
	gcc $(WORKLOAD_CFLAGS) -MMD -MP -c $< -o $@
	objcopy --redefine-syms=tests/workloads/hostile.syms $@

build/workloads/libdemo_cuda.so build/workloads/libshares.so: build/workloads/%.so: build/workloads/%.o
	gcc -pthread -shared -Wl,-soname,$(@F) -o $@ $<

build/workloads/demo: build/workloads/libdemo_cuda.so
build/workloads/shares: build/workloads/libshares.so
build/workloads/demo build/workloads/shares: build/workloads/%: build/workloads/%.o build/workloads/workload.o
	gcc -pthread -Wl,-z,now -o $@ $^ -Wl,-rpath,'$$ORIGIN'

$(filter-out build/workloads/demo build/workloads/shares,$(WORKLOADS:%=build/workloads/%)): build/workloads/%: build/workloads/%.o build/workloads/workload.o
	gcc -pthread -Wl,-z,now -o $@ $^

build/workloads/ioctls: build/workloads/held_device.o

# Stand-ins for CUDA's libraries, and programs that call them: see cuda_calls.c.
build/workloads/libcuda.o: WORKLOAD_CFLAGS := $(filter-out -fno-optimize-sibling-calls,$(WORKLOAD_CFLAGS))
build/workloads/libcuda.so.1 build/workloads/libcudart.so.12: build/workloads/%: build/workloads/libcuda.o build/workloads/libcudart.o
	gcc -pthread -shared -Wl,-soname,$(@F) -o $@ build/workloads/$(firstword $(subst ., ,$(@F))).o

build/workloads/libnvidia-ml.so.1: build/workloads/libnvidia_ml.o
	gcc -pthread -shared -Wl,-soname,$(@F) -o $@ $<

# Without frame pointers, as NCCL is.
build/workloads/libnccl.o: WORKLOAD_CFLAGS := -std=gnu11 $(UNWIND_CFLAGS)
build/workloads/libnccl.so.2: build/workloads/libnccl.o
	gcc -pthread -shared -Wl,-soname,$(@F) -o $@ $<

build/workloads/nccl_ranks build/workloads/nccl_storm: build/workloads/%: build/workloads/%.o build/workloads/workload.o build/workloads/libnccl.so.2 build/workloads/libcuda.so.1 build/workloads/libcudart.so.12
	gcc -pthread -Wl,-z,lazy -o $@ $(filter %.o,$^) build/workloads/libnccl.so.2 build/workloads/libcudart.so.12 -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'

build/workloads/cuda_late.o: tests/workloads/cuda_calls.c Makefile | packages-build
	@mkdir -p $(@D)
	gcc $(WORKLOAD_CFLAGS) -DLATE -MMD -MP -c $< -o $@

build/workloads/cuda_static: build/workloads/cuda_calls.o build/workloads/libcudart.o
build/workloads/cuda_calls: build/workloads/cuda_calls.o build/workloads/libcudart.so.12
build/workloads/cuda_late: build/workloads/cuda_late.o
build/workloads/cuda_static build/workloads/cuda_calls build/workloads/cuda_late: build/workloads/%: build/workloads/held_device.o build/workloads/workload.o build/workloads/libcuda.so.1 build/workloads/libcudart.so.12
	gcc -pthread -Wl,-z,lazy -o $@ $(filter %.o,$^) $(if $(filter cuda_calls,$*),build/workloads/libcudart.so.12) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'

build/workloads/call_storm: build/workloads/call_storm.o build/workloads/workload.o build/workloads/libcuda.so.1 build/workloads/libcudart.so.12
	gcc -pthread -Wl,-z,lazy -o $@ $(filter %.o,$^) build/workloads/libcudart.so.12 -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'

# The same libraries without frame pointers, for a driver's device: see topk_ranks.c.
build/workloads/nvidia/%.o: tests/workloads/%.c Makefile | packages-build
	@mkdir -p $(@D)
	gcc -std=gnu11 $(UNWIND_CFLAGS) -fno-optimize-sibling-calls -MMD -MP -c $< -o $@

build/workloads/nvidia/libcuda.so.1 build/workloads/nvidia/libcudart.so.12: build/workloads/nvidia/libcuda.o build/workloads/nvidia/libcudart.o
	gcc -pthread -shared -Wl,-soname,$(@F) -o $@ $(@D)/$(firstword $(subst ., ,$(@F))).o

build/workloads/nvidia/topk_ranks: build/workloads/nvidia/topk_ranks.o build/workloads/workload.o build/workloads/nvidia/libcuda.so.1 build/workloads/nvidia/libcudart.so.12
	gcc -pthread -Wl,-z,lazy -o $@ $(filter %.o,$^) $(@D)/libcudart.so.12 -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'

# Lazily bound, as most programs are: calls go through the PLT.
build/workloads/cpp_frames: build/workloads/cpp_frames.o build/workloads/workload.o
	g++ -pthread -Wl,-z,lazy -o $@ $^

build/workloads/cpp_frames.o: tests/workloads/cpp_frames.cc Makefile | packages-test
	@mkdir -p $(@D)
	g++ -std=gnu++17 $(UNWIND_CFLAGS) -MMD -MP -c $< -o $@

# A stand-in for PyTorch's Gloo, and its ranks.
build/workloads/libtorch_cpu.o build/workloads/gloo_ranks.o: build/workloads/%.o: tests/workloads/%.cc Makefile | packages-test
	@mkdir -p $(@D)
	g++ -std=gnu++17 $(UNWIND_CFLAGS) -fno-optimize-sibling-calls -MMD -MP -c $< -o $@

build/workloads/libtorch_cpu.so: build/workloads/libtorch_cpu.o
	g++ -pthread -shared -Wl,-soname,$(@F) -o $@ $<

build/workloads/gloo_ranks: build/workloads/gloo_ranks.o build/workloads/workload.o build/workloads/libtorch_cpu.so
	g++ -pthread -Wl,-z,lazy -o $@ $^ -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'

# The system's own compiler, whose standard library has no frame pointers, where there is one.
build/workloads/rust_frames: tests/workloads/rust_frames.rs Makefile | packages-test
	$(firstword $(wildcard /usr/bin/rustc) rustc) --edition 2021 -C opt-level=2 -g -D warnings -o $@ $<

# Of a real MPI, whose compiler knows where its headers and libraries are.
build/workloads/mpi_ranks: tests/workloads/mpi_ranks.c build/workloads/workload.o Makefile | packages-test
	mpicc $(WORKLOAD_CFLAGS) -MMD -MP -MF $@.d -Wl,-z,lazy -o $@ $(filter %.c %.o,$^)

build/workloads/exec_chain_other.o: tests/workloads/exec_chain.c Makefile | packages-build
	@mkdir -p $(@D)
	gcc $(WORKLOAD_CFLAGS) -DOTHER -MMD -MP -c $< -o $@

build/workloads/exec_chain_other: build/workloads/exec_chain_other.o build/workloads/workload.o
	gcc -pthread -Wl,-z,now -o $@ $^

# Many small libraries, each with a build id of its own, from a few with frames of their own sizes.
MANY_VARIANTS := 0 1 2 3 4 5 6 7
build/workloads/many/.made: tests/workloads/many_library.c Makefile | packages-build
	@mkdir -p $(@D)
	@for variant in $(MANY_VARIANTS); do \
		gcc -std=gnu11 $(UNWIND_CFLAGS) -DVARIANT=$$variant -c $< -o $(@D)/variant_$$variant.o; \
	done
	@library() { ld -shared --eh-frame-hdr --build-id -soname $$1.so -o $(@D)/$$1.so $(@D)/variant_$$2.o; }; \
	for i in {000..511}; do library many_$$i $$((10#$$i % 8)); done; \
	for i in 0 5; do library reload_$$i $$i; done
	@touch $@

# speedscope as it is released, page and JSON schema, for the tests of its writer.
SPEEDSCOPE := build/npm/node_modules/speedscope
speedscope-schema:
	@[[ ! -e $(SPEEDSCOPE)/dist/release/index.html ]] || exit 0; \
	if ! command -v npm >/dev/null; then \
		[[ $${REQUIRE_LIVE:-} == 1 ]] || { echo 'no npm: the tests with speedscope are skipped'; exit 0; }; \
		scripts/system-packages.sh npm; \
	fi; \
	mkdir -p $(SPEEDSCOPE); \
	npm pack --silent --pack-destination build/npm speedscope@1 >/dev/null; \
	tar -xzf build/npm/speedscope-*.tgz -C $(SPEEDSCOPE) --strip-components=1 package/package.json package/dist/release

.SECONDARY:
-include $(PROBE_OBJECTS:.o=.d) $(patsubst %,build/workloads/%.d,$(WORKLOADS) $(WORKLOAD_PARTS) cpp_frames gloo_ranks libtorch_cpu exec_chain_other) $(wildcard build/workloads/nvidia/*.d)
