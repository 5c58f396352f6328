# make run    the proxy in the foreground, with config/pinproxy.yaml
# make test   every test
# make bench  processor time per request, beside nginx, HAProxy and Squid, and of the table of hosts
#             (see Benchmarks/README.md)
#
# Each does its own set-up on Debian 12 with a Swift toolchain, as root or with sudo, says what it
# installs, and does nothing twice.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

TO_BUILD := git pkg-config libevent-dev libssl-dev libc-ares-dev libsystemd-dev libcrypt-dev \
	libidn2-dev libpsl-dev
TO_RUN := ca-certificates publicsuffix
TO_TEST := nginx openssl curl wget python3 python3-venv nodejs dnsmasq-base patch ca-certificates \
	publicsuffix
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

.PHONY: run release test bench

run: release
	@.ci/first-steps
	@exec $(RELEASE) run --config config/pinproxy.yaml

release:
	@.ci/install-packages $(TO_BUILD) $(TO_RUN)
	swift build -c release --product pinproxy $(RELEASE_FLAGS)

test: $(PYTHON)/installed
	@.ci/install-packages $(TO_BUILD) $(TO_TEST)
	swift build --build-tests
	swift test --skip-build --experimental-maximum-parallelization-width $(AT_ONCE)

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
