# One command for each task. Missing packages and tools are installed by the command that needs them.

# Outside the clone, so that a fresh clone does not build BoringSSL again.
export QUADRILLE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quadrille
export CARGO_TARGET_DIR ?= $(QUADRILLE_CACHE)/target
# For instance --locked.
export CARGO_FLAGS ?=
# For instance `make run ARGS=--help`, `make compare ARGS=...`.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run build install deb test-deb image test-image release test-release test-helm test-kubernetes test-istio test-monitoring test-post-quantum-clients test-aarch64 nginx-module soak-nginx soak-acme soak-http3 soak-istio test test-all stress bogo
.PHONY: lint fmt bench bench-kernels record-profile compare compare-http3 overload fair docs ptx fuzz hostile clean claim php pecl test-php test-php-zts bench-php

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Serve https://localhost:8443 with a temporary certificate
	bin/quadrille demo $(ARGS)

build: claim ## Build bin/quadrille, and bin/quadrille-provider.so for OpenSSL 3
	@scripts/install-packages.sh build
	@# Includes the load client: building it separately would select other features and recompile BoringSSL.
	scripts/profile-guided/build.sh $(CARGO_FLAGS) --package quadrille-cli --package quadrille-bench-handshakes \
		--package quadrille-openssl-provider
	@install -D -m 755 "$(CARGO_TARGET_DIR)/release/quadrille" bin/quadrille
	@install -D -m 644 "$(CARGO_TARGET_DIR)/release/libquadrille_provider.so" bin/quadrille-provider.so

install: ## Install the output of `make build`: PREFIX=/usr/local, DESTDIR=
	@scripts/install.sh

deb: build ## Build the Debian package bin/quadrille_*.deb
	@scripts/install-packages.sh deb
	@scripts/package-deb.sh

test-deb: deb ## Install, upgrade and purge the Debian package in a fresh Debian 12; needs root and a Debian mirror
	@scripts/install-packages.sh deb-tests
	@scripts/test-deb.sh

image: build ## Build the container image bin/quadrille_*.oci.tar
	@scripts/install-packages.sh image
	@scripts/package-image.sh

test-image: image ## Run the container image like a container engine, with an HTTPS request; needs root
	@scripts/install-packages.sh image-tests
	@scripts/test-image.sh

release: ## Build a release into bin/release, from a clean clone: MINISIGN_KEY=FILE GPG_KEY=ID
	@scripts/install-packages.sh build deb image release
	@scripts/release.sh $(ARGS)

test-release: ## Build a release twice in different folders, compare all artifacts, verify signatures and bills; needs Go
	@scripts/install-packages.sh build deb image release release-tests
	@scripts/test-release.sh

test-helm: build ## Test the Helm chart, with a real kube-apiserver; needs Go 1.26
	@scripts/install-packages.sh helm-tests
	@scripts/test-helm.sh

test-kubernetes: build ## Test `quadrille kubernetes` with a real kube-apiserver and etcd; skipped without Go 1.26
	@scripts/install-packages.sh helm-tests
	@scripts/test-kubernetes.sh

test-istio: claim ## Test under a real istiod and pilot-agent, without a cluster; needs Go 1.26
	@scripts/install-packages.sh build test
	@scripts/istio/build.sh >/dev/null
	@scripts/test.sh -E 'test(/^istio::/)' $(ARGS)

soak-istio: claim ## Follow 1,000 services under a real istiod, next to Envoy, without losing requests while istiod is killed
	@scripts/install-packages.sh build test
	@scripts/istio/build.sh >/dev/null
	@# The whole workspace: a part would select other features and recompile BoringSSL.
	@QUADRILLE_MESH_SERVICES=1000 QUADRILLE_MESH_CHANGES=20 QUADRILLE_MESH_ROUNDS=6 QUADRILLE_MESH_PAUSE=10 \
		"$$(scripts/install-tools.sh cargo-nextest)/cargo-nextest" nextest run $(CARGO_FLAGS) --workspace --no-capture \
		-E 'binary(gateway) and test(/^istio::large::/)'

test-monitoring: build ## Test the alerts and the Grafana dashboard with a real Prometheus
	@scripts/install-packages.sh monitoring-tests
	@scripts/test-monitoring.sh

test-post-quantum-clients: build ## Test ML-DSA certificates with clients of Go 1.27, rustls, BoringSSL and OpenSSL 3.0; needs Go
	@scripts/install-packages.sh build post-quantum-tests
	@scripts/test-post-quantum-clients.sh

nginx-module: ## Build nginx's module for asynchronous handshakes, bin/ngx_quadrille_async_module.so
	@scripts/install-packages.sh nginx-module
	@scripts/build-nginx-module.sh

soak-nginx: nginx-module ## Test that module with 200,000 disconnecting clients, reloads and killed workers
	@scripts/install-packages.sh build test
	cargo build $(CARGO_FLAGS) --workspace
	@# The whole workspace: a part would select other features and recompile BoringSSL.
	@"$$(scripts/install-tools.sh cargo-nextest)/cargo-nextest" nextest run $(CARGO_FLAGS) --workspace --no-capture \
		--run-ignored only -E 'package(quadrille-openssl-provider) and test(a_hundred_thousand)'

soak-acme: claim ## Renew two-minute certificates under load for ten minutes; needs Go
	@scripts/install-packages.sh build test
	@# The whole workspace: a part would select other features and recompile BoringSSL.
	@QUADRILLE_ACME_SOAK=600 "$$(scripts/install-tools.sh cargo-nextest)/cargo-nextest" nextest run $(CARGO_FLAGS) \
		--workspace --no-capture -E 'binary(acme) and test(renewed_under_load)'

soak-http3: claim ## Send a GiB over HTTP/3 in each direction
	@scripts/install-packages.sh build test
	@# The whole workspace: a part would select other features and recompile BoringSSL.
	@QUADRILLE_HTTP3_MIB=1024 "$$(scripts/install-tools.sh cargo-nextest)/cargo-nextest" nextest run $(CARGO_FLAGS) \
		--workspace --no-capture -E 'binary(gateway) and test(large_bodies_pass_whole)'

test: claim ## Run the tests that a change must pass, or some: ARGS="-E 'test(fleet::)'"
	@scripts/install-packages.sh build test nginx-module php php-tests
	@scripts/test.sh $(ARGS)

test-all: claim ## Run all tests, including slow ones: all Nodes, soaks, full BoGo and hostile clients, an emulated CPU
	@scripts/install-packages.sh build test nginx-module php php-tests hostile
	@scripts/test.sh --all $(ARGS)

stress: claim ## Run tests many times with busy loops and on one core: ARGS="--times 20 -E 'test(fleet::)'"
	@scripts/install-packages.sh build test nginx-module
	@scripts/build-nginx-module.sh
	@scripts/stress.sh $(ARGS)

test-aarch64: claim ## Test the kernels' portable tier on an emulated aarch64; builds BoringSSL for it, once
	@scripts/install-packages.sh aarch64
	@scripts/test-aarch64.sh

php: claim ## Build the PHP extension, bin/quadrille.so
	@scripts/install-packages.sh php
	@scripts/build-php.sh

pecl: ## Pack the PHP extension's sources for PECL and PIE: bin/quadrille-*.tgz
	@scripts/package-pecl.sh

test-php: php ## Test the encrypted fields in PHP, and the worked application
	@scripts/install-packages.sh build php-tests
	@# The whole workspace: a part would select other features and recompile BoringSSL.
	cargo build $(CARGO_FLAGS) --workspace --bin quadrille
	@scripts/test-php.sh

test-php-zts: claim ## Test the extension in a thread-safe PHP, which is built from Debian's sources, once
	@scripts/install-packages.sh php php-zts php-tests
	@packages/php/tests/threads/test.sh "$$(scripts/build-php-zts.sh)"

bench-php: php ## Compare encrypted fields in PHP with OpenSSL, sodium, Laravel's form and mcrypt
	@scripts/install-packages.sh php-tests php-bench
	@packages/php/bench/run.sh $(ARGS)

lint: claim ## Check format, clippy, layers, links, licences, shell scripts, the systemd unit
	@scripts/install-packages.sh build lint nginx-module php
	@scripts/lint.sh

fmt: ## Format the sources
	cargo fmt --all
	cargo fmt --manifest-path packages/php/extension/Cargo.toml

bench: build nginx-module ## Quick measurements: micro-benchmarks, and a short comparison with other servers
	@if grep -qs '^\[\[bench\]\]' crates/*/Cargo.toml; then cargo bench $(CARGO_FLAGS) --workspace --benches; fi
	bench/compare.sh --quick $(ARGS)

bogo: claim ## Run BoGo, BoringSSL's own protocol tests, with the engine's key exchange; ARGS="-test PATTERN"
	@scripts/install-packages.sh build
	@scripts/bogo.sh $(ARGS)

bench-kernels: claim ## Compare RSA, X25519, ML-KEM and P-256 with OpenSSL, BoringSSL and AWS-LC
	@scripts/install-packages.sh build
	@# With the gateway's features of BoringSSL, as in `build`. The first build of AWS-LC takes some minutes.
	scripts/profile-guided/build.sh $(CARGO_FLAGS) --package quadrille-cli --package quadrille-bench-handshakes \
		--package quadrille-bench-kernels --features quadrille-bench-kernels/aws-lc
	@"$(CARGO_TARGET_DIR)/release/quadrille-bench-kernels" $(ARGS)

record-profile: claim ## Record the profile that `make build` optimizes for; before a release, in a quarter of an hour
	@scripts/install-packages.sh build bench profile
	@scripts/profile-guided/record.sh

compare: build nginx-module ## Compare with other servers in one run, and write bench/REPORT.md
	bench/compare.sh $(ARGS)

compare-http3: build ## Compare HTTP/3 with Envoy
	bench/compare.sh --http3 $(ARGS)

overload: build ## Load this and other servers with four times their capacity
	bench/compare.sh --overload 60 --keys rsa4096,rsa2048 $(ARGS)

fair: build ## Measure a well-behaved client beside 36 kinds of misbehaving ones, for this and other servers; an hour
	bench/compare.sh --fair 2 --origin http1,http2 --filters off,on --servers quadrille,nginx,haproxy,envoy $(ARGS)

docs: claim ## Build a searchable book of the pages, and the code reference
	@scripts/install-packages.sh build
	cargo test --quiet $(CARGO_FLAGS) --package quadrille-structure --test links
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --workspace --no-deps
	scripts/build-book.sh "$(CARGO_TARGET_DIR)/book"
	@echo "book: $(CARGO_TARGET_DIR)/book/book/index.html   code: $(CARGO_TARGET_DIR)/doc/quadrille_gateway/index.html"

ptx: ## Translate the GPU's kernels to the PTX in the repository
	@scripts/install-packages.sh build
	scripts/ptx.sh

fuzz: ## Fuzz each parser of untrusted input for a minute; ARGS=3600 for an hour each
	@scripts/install-packages.sh build
	@scripts/fuzz.sh $(ARGS)

hostile: build ## Attack every mode with testssl.sh, sslyze, slowhttptest, h2spec and the tests' payloads
	@scripts/install-packages.sh build test hostile
	@scripts/hostile.sh $(ARGS)

clean: ## Remove build output
	cargo clean
	rm -rf bin

# Several clones share the target directory; see the script.
claim:
	@scripts/claim-target.sh
