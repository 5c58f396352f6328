# make run    the proxy in the foreground, with config/pinproxy.yaml
# make install  the release, its configuration and its systemd units below $(DESTDIR)$(PREFIX), by default
#             /usr, and $(DESTDIR)$(SYSCONFDIR), by default /etc
# make deb    the Debian package, in .build/deb
# make unit   the tests of the modules below the commands, which start no proxy; RELEASE=trixie: inside a Debian 13
# make test   every test, and test-system of this release where possible; ONLY=StreamingTests: that suite alone;
#             RELEASE=trixie: inside a new Debian 13; SANITIZE=address: under the address sanitizer; CONFINED=yes: under
#             the unit's system call filter (docs/testing.md)
# make test-system  the Debian package, installed, used, upgraded and purged on a booted Debian 12 and 13, and on a
#             machine upgraded from one to the other (docs/testing.md); RELEASE=bookworm or trixie: that one alone
# make lint   the style of Swift, Python and shell (.swift-format, .ruff.toml), and links between pages of docs/; make
#             format corrects most of it
# make site   the pages of docs/ with a search, the man pages and the library's reference, in .build/site
# make test-clients  every program of docs/clients.md against the proxy; writes that page's table (docs/testing.md)
# make test-library  a package that depends on the library and on AsyncHTTPClient, swift-nio and others, built and run
# make test-programs  some 320 programs of a whole Debian 12 under `pinproxy exec`; writes docs/programs.md; ONLY=name:
#             that one, or several (docs/testing.md)
# make fuzz   every parser and state machine that reads a peer's bytes, under libFuzzer and the address sanitizer,
#             TIME=60 seconds each; TARGET=name: one of them. make fuzz-minimize merges the findings into
#             Tests/Fuzz/Corpus (docs/testing.md)

# make desync  mutated requests and responses through the release, against a strict model and real readers
#             (docs/testing.md); COUNT=1000000 messages; SEED= and LANES= repeat a run
# make bench  processor time per request, compared with nginx, HAProxy, Squid and mitmproxy; start; rules; the table of
#             hosts (see Benchmarks/README.md). QUICK=yes: two minutes of it
# make bench-many  10,000 clients with upstream connections, 5,000 connections at once, too few descriptors; memory per
#             client; one worker and two; honest clients beside a thousand slow ones
# make soak   COUNT=1000000 exchanges while origin, network, name server, disk, clock and the proxy itself fail at
#             random; SEED= and LANES= repeat a run (docs/testing.md). Then a million exchanges and ten thousand
#             reloads, during which memory must not grow
# make fleet  MACHINES=200 proxies that take their policy from a signed bundle: a tenth of them detects a bad one,
#             which is withdrawn; what a machine costs the server (docs/testing.md)
# make faults faults planted in the sources, one at a time, and the test that detects each: two hours
# make bench-check  instructions and allocations of the inner loop, compared with the expected ones; WRITE=yes saves the
#             current ones
#
# Each target sets itself up on Debian 12 or 13 with a Swift toolchain, as root or with sudo. It lists what it installs.
# Running it again is harmless.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Package names that both releases have. The packages depend on whatever differs: -dev packages on the libraries that
# are loaded at run time (libavif15, libavif16), default-jdk-headless on the release's Java.
TO_BUILD := git pkg-config libevent-dev libssl-dev libc-ares-dev libsystemd-dev libcrypt-dev \
	libidn2-dev libpsl-dev libmnl-dev libnghttp2-dev libseccomp-dev libsqlite3-dev libyaml-dev libxml2-dev zlib1g-dev \
	libbrotli-dev libzstd-dev libpng-dev \
	libturbojpeg0-dev libgif-dev libwebp-dev libtiff-dev libavif-dev
# A machine without a toolchain needs the libraries of these packages (those without -dev) and the next. The
# package's dependencies are found while it is built (debian/rules).
TO_RUN := ca-certificates publicsuffix
# The modules' tests start these.
TO_TEST_MODULES := ca-certificates curl dnsmasq-base git iproute2 nodejs openssl publicsuffix python3
TO_TEST := nginx lighttpd lighttpd-mod-openssl openssl curl wget python3 python3-venv nodejs dnsmasq-base patch \
	ca-certificates publicsuffix iproute2 faketime libnss3-tools fish zsh tcsh libwww-perl liblwp-protocol-https-perl \
	prometheus chromium chromium-driver haproxy socat groff-base nghttp2-client nghttp2-server proxychains4 \
	buildah uidmap
# The other clients that `make test-clients` tries.
TO_TEST_CLIENTS := aria2 lftp git-lfs mercurial subversion composer python3-pip libio-socket-ssl-perl ruby \
	php-cli php-curl \
	default-jdk-headless golang-go lynx w3m maven yarnpkg skopeo firefox-esr
TO_DESYNC := nginx curl python3 nodejs golang-go
TO_PACKAGE := dpkg-dev debhelper lintian python3
TO_COUNT := valgrind nginx openssl python3
TO_FLEET := nginx openssl python3 iproute2 util-linux
TO_SOAK := openssl python3 iproute2 nftables faketime
TO_SITE := python3 mandoc
TO_BENCH := nginx openssl haproxy squid-openssl wrk nghttp2-client nghttp2-proxy proxychains4 python3 \
	python3-venv dnsmasq-base

# Modules call each other for every request: without this, generic code isn't specialised across them, which costs 6 %
# more processor time a request (measured, keep-alive).
RELEASE_FLAGS := -Xswiftc -cross-module-optimization
# Relocated data becomes read-only after loading. Relocations are packed into a tenth of the space, since the pages that
# the loader reads stay in memory (1.2 MB). The Swift runtime's own options export every function, which keeps them all
# (0.9 MB).
RELEASE_FLAGS += -Xlinker -z -Xlinker now -Xlinker -z -Xlinker pack-relative-relocs -Xlinker --no-export-dynamic
RELEASE_FLAGS += -Xswiftc -ld-path=$(CURDIR)/.ci/link
# The Swift runtime and its libraries go into the program: it runs on machines without them.
STATIC := --static-swift-stdlib
PROGRAM := .build/release/pinproxy
MANUAL := .build/manual
PREFIX ?= /usr
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
PYTHON := .build/python
REQUIREMENTS := Tests/IntegrationTests/Peers/requirements.txt
MITMPROXY := .build/mitmproxy
SITE := .build/site
SITE_PYTHON := .build/site-python
CLIENTS := .build/clients
CLIENT_REQUIREMENTS := Tests/IntegrationTests/Peers/clients.txt

# SwiftPM passes the package's traits to the compiler in the order of a set. That order is random unless hashing is
# deterministic, and another order compiles everything again.
BUILD := SWIFT_DETERMINISTIC_HASHING=1 swift build

# A module that imports what it doesn't declare is an error (Package.swift). A build with other options compiles
# everything again, so each build of the tests has these.
CHECKED := --explicit-target-dependency-import-check error

# The number of concurrent tests. Those of the whole proxy start several programs each: without a limit a machine with
# few processors would run hundreds of them at once, and every time-out would expire.
AT_ONCE := $(shell expr 4 '*' $$(nproc))

# A separate build for each sanitizer. The proxies that tests start are built with it too, and get the same options: a
# finding there fails the test that started them.
ifdef SANITIZE
SANITIZED := --sanitize=$(SANITIZE) --scratch-path .build-$(SANITIZE)
AT_ONCE := $(shell expr 2 '*' $$(nproc))
export ASAN_OPTIONS ?= detect_leaks=0:detect_stack_use_after_return=1:strict_string_checks=1
export LSAN_OPTIONS ?= suppressions=$(CURDIR)/Tests/leaks.txt:print_suppressions=0
endif

# The proxies that tests start may make the system calls that the unit allows, and are killed if they make others.
ifdef CONFINED
TO_TEST += python3-seccomp systemd
export PINPROXY_TEST_LAUNCHER := /usr/bin/python3 $(CURDIR)/Tests/System/confined.py $(CURDIR)/systemd/pinproxy.service
endif

# This machine's Debian. Builds for another one run inside it, into .build-NAME.
HERE := $(shell . /etc/os-release && echo $$VERSION_CODENAME)
RELEASES := bookworm trixie
in = $(if $(filter-out $(HERE),$(1)),python3 -B Tests/System/release.py $(1) )
folder = $(if $(filter-out $(HERE),$(1)),.build-$(1),.build)

.PHONY: compiled suite run release install manual packages deb test test-clients test-library test-programs \
	test-system bench bench-many soak fleet bench-check faults fuzz fuzz-minimize desync lint format unit unit-one \
	unit-other site

run: release
	@.ci/first-steps
	@exec $(PROGRAM) run --config config/pinproxy.yaml

release:
	@.ci/install-packages $(TO_BUILD) $(TO_RUN)
	@test -e $(PROGRAM) || echo "The first build compiles everything: 3 to 8 minutes on two cores, longer on a busy" \
		"machine. Later ones take what has changed. Swift counts the steps, as [12/190]; the last ones are the longest."
	$(BUILD) -c release --product pinproxy $(STATIC) $(RELEASE_FLAGS)

# Existing files below $(SYSCONFDIR) are kept.
install: release
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/pinproxy
	strip $(DESTDIR)$(PREFIX)/bin/pinproxy
	install -d $(DESTDIR)$(SYSCONFDIR)/pinproxy $(DESTDIR)$(UNITDIR)
	for file in pinproxy.yaml pins.yaml; do \
		[ -e $(DESTDIR)$(SYSCONFDIR)/pinproxy/$$file ] || \
		install -m 644 config/$$file $(DESTDIR)$(SYSCONFDIR)/pinproxy/$$file; done
	for unit in systemd/*.service systemd/*.socket; do \
		[ ! -e $$unit ] || sed -e 's,/usr/bin/pinproxy,$(PREFIX)/bin/pinproxy,' -e 's,/etc/pinproxy,$(SYSCONFDIR)/pinproxy,' \
		$$unit > $(DESTDIR)$(UNITDIR)/$${unit##*/}; done
	@# The unit of further instances is the first one's, with separate files and directories.
	sed -e 's,pinproxy/pinproxy[.]yaml,pinproxy/%i.yaml,' -e 's,^StateDirectory=pinproxy$$,&-instances/%i,' \
		-e 's,^RuntimeDirectory=pinproxy$$,&-%i,' -e 's,/run/pinproxy/,/run/pinproxy-%i/,' -e 's,^Description=.*,& (%i),' \
		$(DESTDIR)$(UNITDIR)/pinproxy.service > $(DESTDIR)$(UNITDIR)/pinproxy@.service
	install -D -m 644 systemd/pinproxy.catalog $(DESTDIR)$(PREFIX)/lib/systemd/catalog/pinproxy.catalog
	install -D -m 644 systemd/pinproxy.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/pinproxy.conf
	install -d $(DESTDIR)$(PREFIX)/share/pinproxy/monitoring
	install -m 644 docs/monitoring/alerts.yml docs/monitoring/grafana.json $(DESTDIR)$(PREFIX)/share/pinproxy/monitoring
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	$(PROGRAM) --generate-completion-script bash | sed 1d > $(DESTDIR)$(BASHDIR)/pinproxy
	$(PROGRAM) --generate-completion-script zsh > $(DESTDIR)$(ZSHDIR)/_pinproxy
	$(PROGRAM) --generate-completion-script fish > $(DESTDIR)$(FISHDIR)/pinproxy.fish

# The man pages: one for each command, from what --help is made of, and of the shipped files, from their comments.
manual: release
	$(BUILD) --package-path .build/checkouts/swift-argument-parser --scratch-path .build/generate-manual \
		--product generate-manual
	rm -rf $(MANUAL)
	mkdir -p $(MANUAL)/pages
	.build/generate-manual/debug/generate-manual $(PROGRAM) --multi-page --output-directory $(MANUAL)
	@# The pages of subcommands are named as git's are: pinproxy-ca(1), which "man pinproxy ca" shows too.
	for page in $(MANUAL)/*.1; do name=$$(basename $$page .1); \
		sed -e 's/^$$/.Pp/' -e 's/^[.]Nd "\(.*\)"$$/.Nd \1/' \
			-e "/^.Sh SYNOPSIS/,/^.Sh DESC/s/^[.]Nm$$/.Nm \"$${name//./ }\"/" \
			-e "/^.Sh NAME/,/^.Nd/s/^[.]Nm .*/.Nm $${name//./-}/" -e '/^[.]\(Dt\|Xr\) /s/[.]/-/2g' \
			$$page > $(MANUAL)/pages/$${name//./-}.1; done
	$(PROGRAM) --experimental-dump-help | python3 -B docs/commands.py $(MANUAL)/pages/pinproxy.1
	python3 -B docs/manual.py config/pinproxy.yaml config/pins.yaml $(MANUAL)/pages

# The package. Errors and warnings of lintian fail, unless debian/pinproxy.lintian-overrides explains them.
deb: release
	@.ci/install-packages $(TO_PACKAGE)
	rm -rf .build/deb
	mkdir -p .build/deb
	dpkg-buildpackage --build=binary --no-sign --no-pre-clean --post-clean \
		--buildinfo-file=.build/deb/pinproxy.buildinfo --buildinfo-option=-u.build/deb \
		--changes-file=.build/deb/pinproxy.changes --changes-option=-u.build/deb
	lintian --fail-on error,warning --no-cfg --display-info --allow-root .build/deb/pinproxy_*.deb

# The machine is booted while the tests are compiled. Either output comes in one piece.
TESTED := $(or $(RELEASE),$(HERE))
test:
ifeq ($(SANITIZE)$(CONFINED)$(ONLY),)
	@$(MAKE) --no-print-directory packaged-$(TESTED)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target booted-$(TESTED) compiled
endif
	@$(MAKE) --no-print-directory suite

# The test targets with the suites of ONLY, which may be a regular expression: no others are built.
ifdef ONLY
override WANTED := $(sort $(shell grep -rlE '\b(struct|class|extension|enum) ($(ONLY))\b' Tests --include='*.swift' | \
	cut -d/ -f2 | grep 'Tests$$'))
$(if $(WANTED),,$(error There is no suite "$(ONLY)" below Tests))
export PINPROXY_TESTS := $(WANTED)
endif

# Targets that depend on the program or start it are left out.
MODULES := Addresses EventLoop TLS HTTPWire Caching HTTP2 Security Serialization DiskStore Reachability LocalPeers \
	Transport Isolation Session PinnedSession Bundles Configuration Records Clients Daemon
# Half of the work.
FIRST_MODULES := Session PinnedSession TLS Bundles Reachability Clients HTTPWire
ifneq ($(filter-out $(HERE),$(RELEASE)),)
unit:
	@.ci/install-packages python3 debootstrap
	$(call in,$(RELEASE))make unit
else
unit: export PINPROXY_TESTS := $(MODULES:%=%Tests)
unit:
	@.ci/install-packages $(TO_BUILD) $(TO_TEST_MODULES)
	$(BUILD) --build-tests $(CHECKED)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit-one unit-other

# One process leaves a processor idle while a test waits on its thread. SwiftPM would lock the build folder.
FIRST := ^($(subst $() ,|,$(FIRST_MODULES)))Tests[.]
RUN_MODULES = .build/debug/pinproxyPackageTests.xctest --testing-library swift-testing \
	--experimental-maximum-parallelization-width $(AT_ONCE)
unit-one:
	@$(RUN_MODULES) --filter '$(FIRST)'
unit-other:
	@$(RUN_MODULES) --skip '$(FIRST)'
endif

# What the release, its package and the modules' tests need.
packages:
	@.ci/install-packages $(TO_BUILD) $(TO_RUN) $(TO_PACKAGE) $(TO_TEST_MODULES)

# Without the booted machine; SKIP=IntegrationTests leaves those out.
ifneq ($(filter-out $(HERE),$(RELEASE)),)
compiled suite:
	@.ci/install-packages python3 debootstrap
	$(call in,$(RELEASE))make $@ SANITIZE=$(SANITIZE) CONFINED=$(CONFINED) SKIP=$(SKIP) $(ONLY:%=ONLY='%')
else
compiled: $(PYTHON)/installed
	@.ci/install-packages $(TO_BUILD) $(TO_TEST)
	python3 -B Tests/Faults/plant.py --check
	$(BUILD) --build-tests $(CHECKED) $(SANITIZED)

suite: compiled
	@# Failures are repeated at the end, with the runner's last line: a truncated log still has them there.
	swift test --skip-build $(SANITIZED) $(ONLY:%=--filter '%') $(SKIP:%=--skip %) \
		--experimental-maximum-parallelization-width $(AT_ONCE) |& tee .build/tests.log || \
		{ awk '/^(◇|✔|✘) / { n = /^✘ Test .* recorded an issue/ ? 30 : 0 } n-- > 0' .build/tests.log | cut -c 1-400; \
		grep -a '^✘ Test run with' .build/tests.log; exit 1; }
endif

test-clients: $(CLIENTS)/installed $(PYTHON)/installed
	@.ci/install-packages $(TO_BUILD) $(TO_TEST) $(TO_TEST_CLIENTS)
	$(BUILD) --build-tests $(CHECKED)
	PINPROXY_TEST_CLIENTS=all swift test --skip-build \
		--filter 'ClientMatrixTests|DoctorTests|HTTP2ClientTests|HTTP2OriginTests' \
		--experimental-maximum-parallelization-width $$(expr 2 '*' $$(nproc))
	@git diff --stat -- docs/clients.md

# The consumer's build stays in .build/consumer.
test-library:
	@.ci/install-packages $(TO_BUILD) $(TO_TEST) binutils
	$(BUILD) --package-path Tests/Consumer --scratch-path .build/consumer
	$(BUILD) --build-tests $(CHECKED)
	PINPROXY_TEST_LIBRARY=$(CURDIR)/.build/consumer/debug/Consumer swift test --skip-build --filter ConsumerTests

# Each program under `pinproxy exec`, inside a new Debian. ONLY has names that a shell needn't quote.
test-programs: release
	@.ci/install-packages python3 debootstrap
	python3 -B Tests/Programs/run.py $(PROGRAM) $(if $(ONLY),--only '$(ONLY)')

# Style: Swift by .swift-format, Python by .ruff.toml, shell by shellcheck, and 120 columns; links between the pages.
WITH_COLUMNS := --include=*.swift --include=*.c --include=*.h --include=*.py --include=*.sh
lint: $(PYTHON)/installed
	@.ci/install-packages shellcheck
	swift format lint --recursive --parallel --strict Package.swift Sources Tests Benchmarks
	$(PYTHON)/bin/ruff check --no-cache --quiet .
	$(PYTHON)/bin/ruff format --no-cache --quiet --check .
	python3 -B .ci/site/sources.py --check
	shellcheck --severity=warning $$(grep -rlE '^#!/bin/(ba)?sh' .ci debian Tests)
	@long=$$({ LC_ALL=C.UTF-8 grep -rnE '^.{121,}' $(WITH_COLUMNS) Sources Tests Benchmarks docs .ci/site; \
		LC_ALL=C.UTF-8 grep -nE -d skip '^.{121,}' Package.swift Makefile .ci/* debian/rules; } || true); \
		[ -z "$$long" ] || { echo "$$long"; echo "More than 120 columns."; exit 1; }

# The pages as a site (docs/CONTRIBUTING.md). Nothing is compiled for it: what needs a build is left out, and named.
# A warning or a link that leads nowhere is an error.
site: $(SITE_PYTHON)/installed
	@.ci/install-packages $(TO_SITE)
	rm -rf $(SITE) $(SITE)-pages
	mkdir -p $(SITE)/reference
	@[ -e $(MANUAL)/pages ] || echo "Without the man pages: make manual"
	@if [ -e .build/debug/Modules ]; then .ci/reference $(SITE)/reference; \
		else echo "Without the library's reference: swift build"; fi
	/usr/bin/python3 -B .ci/site/beside.py $(SITE)/reference
	/usr/bin/python3 -B .ci/site/sources.py $(SITE)-pages
	$(SITE_PYTHON)/bin/sphinx-build --quiet --fail-on-warning --fresh-env -c .ci/site \
		--doctree-dir $(SITE)-pages/.doctrees $(SITE)-pages $(SITE)
	/usr/bin/python3 -B .ci/site/check.py $(SITE)
	@echo "$(SITE)/index.html"

# Fixes what `make lint` reports, as far as the formatters can.
format: $(PYTHON)/installed
	swift format format --in-place --recursive --parallel Package.swift Sources Tests Benchmarks
	$(PYTHON)/bin/ruff format --no-cache --quiet .

faults: $(PYTHON)/installed
	@.ci/install-packages $(TO_BUILD) $(TO_TEST)
	python3 -B Tests/Faults/plant.py

# A separate build with the fuzzer's runtime and the sanitizer, which the default linker can't link.
FUZZ_BUILD := PINPROXY_FUZZ=1 $(BUILD) -c release --product PinproxyFuzz --scratch-path .build-fuzz \
	-Xswiftc -sanitize=fuzzer,address -Xswiftc -use-ld=lld
TIME ?= 60

fuzz:
	@.ci/install-packages $(TO_BUILD) $(TO_RUN) python3
	$(FUZZ_BUILD)
	@python3 -B Tests/Fuzz/fuzz.py --time $(TIME) $(if $(TARGET),--target $(TARGET))

fuzz-minimize:
	$(FUZZ_BUILD)
	@python3 -B Tests/Fuzz/fuzz.py --minimize $(if $(TARGET),--target $(TARGET))

desync: release $(PYTHON)/installed
	@.ci/install-packages $(TO_DESYNC)
	$(PYTHON)/bin/python3 -B Tests/Desync/desync.py --pinproxy $(PROGRAM) --count $(or $(COUNT),20000) \
		$(if $(SEED),--seed $(SEED)) $(if $(LANES),--lanes $(LANES))

bench: release
	@.ci/install-packages $(TO_BENCH)
ifdef QUICK
	python3 Benchmarks/bench.py --pinproxy $(PROGRAM) --quick
else
	@$(MAKE) --no-print-directory $(MITMPROXY)/installed
	python3 Benchmarks/bench.py --pinproxy $(PROGRAM) --peers pinproxy,nginx,haproxy,squid,mitmproxy
	python3 Benchmarks/http2.py --pinproxy $(PROGRAM)
	python3 Benchmarks/start.py --pinproxy $(PROGRAM)
	python3 Benchmarks/commands.py --pinproxy $(PROGRAM)
	python3 Benchmarks/pieces.py --pinproxy $(PROGRAM)
	python3 Benchmarks/rules.py --pinproxy $(PROGRAM)
	python3 Benchmarks/cache.py --pinproxy $(PROGRAM)
	python3 Benchmarks/bundles.py --pinproxy $(PROGRAM)
	$(BUILD) -c release --product PinproxyHostBenchmark $(STATIC) $(RELEASE_FLAGS)
	.build/release/PinproxyHostBenchmark
	$(BUILD) -c release --product PinproxySerializationBenchmark $(STATIC) $(RELEASE_FLAGS)
	.build/release/PinproxySerializationBenchmark
	$(BUILD) -c release --package-path Benchmarks/Library --scratch-path .build/library-benchmark
	python3 Benchmarks/library.py
endif

bench-many: release $(PYTHON)/installed
	@.ci/install-packages $(TO_BENCH)
	python3 Benchmarks/many.py --pinproxy $(PROGRAM)
	python3 Benchmarks/memory.py --pinproxy $(PROGRAM)
	python3 Benchmarks/workers.py --pinproxy $(PROGRAM)
	python3 Benchmarks/loris.py --pinproxy $(PROGRAM)

soak: release $(PYTHON)/installed
	@.ci/install-packages $(TO_BENCH) $(TO_SOAK)
	$(PYTHON)/bin/python3 -B Tests/Soak/soak.py --pinproxy $(PROGRAM) --count $(or $(COUNT),1000000) \
		$(if $(SEED),--seed $(SEED)) $(if $(LANES),--lanes $(LANES)) $(if $(CLIENTS),--clients $(CLIENTS))
	python3 Benchmarks/flat.py --pinproxy $(PROGRAM) \
		$(if $(COUNT),--exchanges $(COUNT) --reloads $(shell expr $(COUNT) / 100))

fleet: release
	@.ci/install-packages $(TO_FLEET)
	python3 -B Tests/Fleet/simulate.py --pinproxy $(PROGRAM) --machines $(or $(MACHINES),200)

bench-check: release
	@.ci/install-packages $(TO_COUNT)
	python3 Benchmarks/check.py --pinproxy $(PROGRAM) $(if $(TOLERANCE),--tolerance $(TOLERANCE)) $(if $(WRITE),--write)

# The package, installed on a Debian that is booted for it. Where that is impossible, it says so and does nothing.
test-system: $(if $(RELEASE),test-system-$(RELEASE),$(RELEASES:%=test-system-%) test-system-upgrade)

$(RELEASES:%=test-system-%): test-system-%:
	@$(MAKE) --no-print-directory packaged-$*
	@$(MAKE) --no-print-directory booted-$*

# The package of a release, if its machine can boot here.
$(RELEASES:%=packaged-%): packaged-%:
	@.ci/install-packages python3
	@[ -n "$$(python3 -B Tests/System/machine.py $*)" ] || \
	{ .ci/install-packages debootstrap systemd-container && $(call in,$*)make deb; }

# That package on its machine.
$(RELEASES:%=booted-%): booted-%:
	@reason=$$(python3 -B Tests/System/machine.py $*); \
	if [ -n "$$reason" ]; then echo "SKIP  the package on a booted machine: $$reason"; exit 0; fi; \
	python3 -B Tests/System/run.py $* $(call folder,$*)/deb/pinproxy_*.deb

# The first release's package, on a machine that is upgraded to the second.
test-system-upgrade: $(RELEASES:%=test-system-%)
	@packages=$$(ls $(foreach release,$(RELEASES),$(call folder,$(release))/deb/pinproxy_*.deb)) || exit 0; \
	python3 -B Tests/System/run.py $(firstword $(RELEASES)) $$packages

# The packages from PyPI that the tests use as clients, in a separate folder.
$(PYTHON)/installed: $(REQUIREMENTS)
	@.ci/install-packages python3 python3-venv
	/usr/bin/python3 -m venv $(PYTHON)
	$(PYTHON)/bin/pip install --quiet --disable-pip-version-check --requirement $(REQUIREMENTS)
	@touch $@

# The generator of the site.
$(SITE_PYTHON)/installed: .ci/site/requirements.txt
	@.ci/install-packages python3 python3-venv
	/usr/bin/python3 -m venv $(SITE_PYTHON)
	$(SITE_PYTHON)/bin/pip install --quiet --disable-pip-version-check --requirement .ci/site/requirements.txt
	@touch $@

# A proxy to compare with.
$(MITMPROXY)/installed:
	/usr/bin/python3 -m venv $(MITMPROXY)
	$(MITMPROXY)/bin/pip install --quiet --disable-pip-version-check mitmproxy==11.0.2
	@touch $@

# The clients of `make test-clients`, which are many and large.
$(CLIENTS)/installed: $(CLIENT_REQUIREMENTS)
	@.ci/install-packages python3 python3-venv
	/usr/bin/python3 -m venv $(CLIENTS)
	$(CLIENTS)/bin/pip install --quiet --disable-pip-version-check --requirement $(CLIENT_REQUIREMENTS)
	@touch $@
