# make run    the proxy in the foreground, with config/pinproxy.yaml
# make test   every test; with SANITIZE=address under the address sanitizer (docs/testing.md)
# make bench  processor time per request, beside nginx, HAProxy and Squid, and of the table of hosts
#             (see Benchmarks/README.md)
#
# Each does its own set-up on Debian 12 with a Swift toolchain, as root or with sudo, says what it
# installs, and does nothing twice.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

TO_BUILD := git pkg-config libevent-dev libssl-dev libc-ares-dev libsystemd-dev libcrypt-dev \
	libidn2-dev libpsl-dev libmnl-dev libxml2-dev zlib1g-dev libbrotli-dev libzstd-dev libpng-dev \
	libturbojpeg0-dev libgif-dev libwebp-dev libtiff-dev libavif-dev
TO_RUN := ca-certificates publicsuffix
TO_TEST := nginx openssl curl wget python3 python3-venv nodejs dnsmasq-base patch ca-certificates \
	publicsuffix iproute2
TO_BENCH := nginx openssl haproxy squid-openssl wrk proxychains4 python3

# The rooms call each other for every request: without this, generic code isn't specialised across
# them, which costs 6 % more processor time a request (measured, keep-alive).
RELEASE_FLAGS := -Xswiftc -cross-module-optimization
RELEASE := .build/release/pinproxy
PYTHON := .build/python
REQUIREMENTS := Tests/IntegrationTests/Peers/requirements.txt

# Tests at one time. Each of the whole proxy starts several programs: without a bound a machine with few
# processors has hundreds of them at once, and every time-out strikes.
AT_ONCE := $(shell expr 4 '*' $$(nproc))

# A build of its own for each sanitizer. The proxies that the tests start are built with it too, and get the same
# options: what is found there fails the test that started them.
ifdef SANITIZE
SANITIZED := --sanitize=$(SANITIZE) --scratch-path .build-$(SANITIZE)
AT_ONCE := $(shell expr 2 '*' $$(nproc))
export ASAN_OPTIONS ?= detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1
export LSAN_OPTIONS ?= suppressions=$(CURDIR)/Tests/leaks.txt:print_suppressions=0
endif

.PHONY: run release test bench

run: release
	@.ci/first-steps
	@exec $(RELEASE) run --config config/pinproxy.yaml

release:
	@.ci/install-packages $(TO_BUILD) $(TO_RUN)
	swift build -c release --product pinproxy $(RELEASE_FLAGS)

test: $(PYTHON)/installed
	@.ci/install-packages $(TO_BUILD) $(TO_TEST)
	swift build --build-tests $(SANITIZED)
	swift test --skip-build $(SANITIZED) --experimental-maximum-parallelization-width $(AT_ONCE)

bench: release
	@.ci/install-packages $(TO_BENCH)
	python3 Benchmarks/bench.py --pinproxy $(RELEASE)
	swift run -c release $(RELEASE_FLAGS) HostBenchmark

# The packages from PyPI that the tests use as clients, in a folder of their own.
$(PYTHON)/installed: $(REQUIREMENTS)
	@.ci/install-packages python3 python3-venv
	/usr/bin/python3 -m venv $(PYTHON)
	$(PYTHON)/bin/pip install --quiet --disable-pip-version-check --requirement $(REQUIREMENTS)
	@touch $@
